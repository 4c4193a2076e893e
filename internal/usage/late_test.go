package usage

import (
	"testing"
	"time"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

func TestSettlingAgainAnswersAlikeHoweverLate(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	d := m.admit(m.call(true)) // for a minute
	r := Result{Outcome: OK, Tokens: used}
	_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, r)
	must(t, err)
	m.drain()
	for _, after := range []time.Duration{0, time.Minute, time.Hour, time.Hour, time.Hour} {
		m.clock.advance(after)
		m.meter.Sweep()
		got, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, r)
		if err != nil || got.Event.Tokens != used {
			t.Errorf("%s after its admission the same settlement is %v, %+v", m.clock.now().Sub(d.At), err, got.Event.Tokens)
		}
	}
}

func TestALateSettlementRepeatedAfterItIsForgottenAnswersAlike(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	d := m.admit(m.call(true))
	m.clock.advance(2 * time.Minute)
	m.meter.Sweep() // it expired
	r := Result{Outcome: OK, Tokens: used}
	first, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, r)
	must(t, err)
	if !first.Late {
		t.Fatalf("got %+v", first)
	}
	m.drain()
	m.clock.advance(4 * time.Hour)
	m.meter.Sweep()
	if _, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, r); err != nil {
		t.Fatalf("the very settlement that was accepted is now %v", err)
	}
}

// killed ends a metering's process by kill -9 and begins the next one on its spool.
func (m *metering) killed(t *testing.T) *Meter {
	t.Helper()
	crash(m.spool)
	spool, rec := fastSpool(t, m.dir)
	_, alive, err := CloseOpen(t.Context(), spool, rec.Open, nil, m.clock.now())
	must(t, err)
	engine := limits.NewMemory(limits.MemoryOptions{Now: m.clock.now, Unclean: true})
	next := NewMeter(engine, spool, m.reports, quiet(t), m.clock.now)
	next.Recovered(rec.Tail)
	must(t, next.Restore(t.Context(), alive))
	return next
}

func TestALateSettlementCorrectsAfterARestartToo(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	d := m.admit(m.call(true))
	m.clock.advance(90 * time.Second)
	m.meter.Sweep() // it expired half a minute ago: for an hour a settlement still corrects
	m.drain()
	next := m.killed(t)
	got, err := next.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
	if err != nil || !got.Late {
		t.Fatalf("what really happened is in no books: %v", err)
	}
}

func TestASettledReservationIsKnownRightAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBooks(t) // no queue, no worker: nothing is committed yet
	clock, tenant := newClock(), id.New()
	m := &metering{t: t, clock: clock, dir: t.TempDir(), tenant: tenant, reports: NewReports(b.App, time.Now)}
	l := limits.Default(limits.Limit{ID: id.New(), Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: id.New()}, Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 10})
	m.plan = []limits.Limit{l}
	m.spool, _ = fastSpool(t, m.dir)
	m.engine = limits.NewMemory(limits.MemoryOptions{Now: clock.now})
	m.meter = NewMeter(m.engine, m.spool, m.reports, quiet(t), clock.now)
	d := m.admit(m.call(true))
	r := Result{Outcome: OK, Tokens: used}
	_, err := m.meter.Settle(t.Context(), tenant, d.Reservation.ID, r)
	must(t, err)
	next := m.killed(t)
	if _, err := next.Settle(t.Context(), tenant, d.Reservation.ID, r); fault.Is(err, fault.NotFound) {
		t.Fatalf("a reservation that was settled a moment ago: %v", err)
	}
}

func TestAnExtensionNeverBringsTheEndNearer(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	d := m.admit(m.call(true)) // for a minute
	ends, err := m.meter.Extend(t.Context(), m.tenant, d.Reservation.ID, m.clock.now().Add(time.Second))
	must(t, err)
	if !ends.Equal(d.ExpiresAt) {
		t.Errorf("it says %v", ends)
	}
	m.clock.advance(5 * time.Second)
	next := m.killed(t)
	if _, err := next.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used}); err != nil {
		t.Fatalf("a reservation of a minute, after 5 s and a restart: %v", err)
	}
}

func TestACallThatComesAgainIsOneEventAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(true)
	c.Once = limits.Once{Key: id.New(), Body: id.New()}
	first := m.admit(c)
	if again := m.admit(c); !again.Again || again.Reservation.ID != first.Reservation.ID {
		t.Fatalf("%+v", again)
	}
	next := m.killed(t)
	again, err := next.Admit(t.Context(), c)
	must(t, err)
	if !again.Again || again.Reservation.ID != first.Reservation.ID {
		t.Fatalf("after a restart: %+v", again)
	}
	got, err := next.Settle(t.Context(), m.tenant, first.Reservation.ID, Result{Outcome: OK, Tokens: used})
	if err != nil || !got.First || got.Late {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestAReservationThatNobodyWasToldOfIsGivenBackAfterItRanOut(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	reserve := func() limits.Reservation {
		d, err := m.engine.Reserve(t.Context(), limits.Request{
			Tenant: m.tenant, Model: "gpt-4o", Plan: []*limits.Set{limits.Compile(m.plan)}, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 500}}, TTL: time.Minute,
		})
		must(t, err)
		return d.Reservation
	}
	reserve() // whose answer was lost
	ended := reserve()
	e := call(m.tenant, m.clock.now()) // as an earlier life ended it
	e.ID, e.Tokens, e.Charges = ended.ID, limits.Tokens{Input: 70}, ended.ChargesAt(limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 70}})
	must(t, m.spool.Admit(&Admission{Event: e, Reservation: ended}))
	must(t, m.spool.Finish(&e))
	m.drain()

	m.clock.advance(time.Minute + time.Second)
	m.meter.Sweep()
	if m.day() != 1000 {
		t.Fatalf("the cap holds %d: their admissions may be on their way", m.day())
	}
	m.clock.advance(time.Minute)
	m.meter.Sweep()
	if m.day() != 70 {
		t.Fatalf("the cap holds %d, the books 70", m.day())
	}
}

func TestACorrectionThatIsOnItsWayToTheBooksIsNotWrittenTwice(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	d := m.admit(m.call(true))
	m.clock.advance(90 * time.Second)
	m.meter.Sweep() // it expired
	m.drain()
	r := Result{Outcome: OK, Tokens: used}
	_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, r)
	must(t, err)
	next := m.killed(t) // the correction is in the spool only
	if _, err := next.Settle(t.Context(), m.tenant, d.Reservation.ID, r); !fault.Is(err, fault.Unavailable) || fault.Of(err).Code != "reservation_pending" {
		t.Fatalf("the same settlement, while the first is on its way: %v", err)
	}
}
