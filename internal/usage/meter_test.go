package usage

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/queue/queuetest"
)

// metering is a meter on a real engine, spool, queue and database.
type metering struct {
	t       *testing.T
	books   books
	clock   *clock
	dir     string
	spool   *Spool
	engine  *limits.Memory
	meter   *Meter
	drain   func()
	reports *Reports
	tenant  uuid.UUID
	plan    []limits.Limit
}

func newMetering(t *testing.T) *metering {
	t.Helper()
	b, q := newBooks(t), queuetest.New(t).Connect()
	m := &metering{t: t, books: b, clock: newClock(), dir: t.TempDir(), tenant: id.New(), reports: NewReports(b.App, time.Now)}
	scope := limits.Scope{Kind: limits.ScopeCustomer, ID: id.New(), Name: "Starter"}
	for _, l := range []limits.Limit{
		{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 10},
		{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 10_000, Zone: "UTC"},
	} {
		l.ID, l.Scope = id.New(), scope
		m.plan = append(m.plan, limits.Default(l))
	}
	m.spool, _ = fastSpool(t, m.dir)
	m.engine = limits.NewMemory(limits.MemoryOptions{Now: m.clock.now})
	m.meter = NewMeter(m.engine, m.spool, m.reports, quiet(t), m.clock.now)
	working(t, q, b.Worker)
	p, _ := publishing(t, m.spool, q, b.App)
	m.drain = func() { t.Helper(); drained(t, p); balanced(t, b.Worker) }
	return m
}

func (m *metering) call(decision bool) Call {
	return Call{
		RequestID: id.New(), Tenant: m.tenant, Zones: limits.Zones{Zone: "UTC"}, Customer: m.plan[0].Scope.ID, Key: id.New(), Counter: id.New(),
		Kind: map[bool]string{true: KindDecision, false: "chat"}[decision], Model: "gpt-4o", Currency: "USD", Plan: []*limits.Set{limits.Compile(m.plan)},
		Rates:    []Rate{{Price: id.New(), Class: Input, MicrosPerMillion: 2_000_000}, {Price: id.New(), Class: Output, MicrosPerMillion: 4_000_000}},
		Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 100, Output: 400}}, Decision: decision, TTL: time.Minute,
	}
}

func (m *metering) admit(c Call) limits.Decision {
	m.t.Helper()
	d, err := m.meter.Admit(m.t.Context(), c)
	must(m.t, err)
	return d
}

// day is what the daily cap holds in the engine.
func (m *metering) day() int64 {
	m.t.Helper()
	states, err := m.engine.Live(m.t.Context(), m.tenant, m.plan[1:], "gpt-4o", "")
	must(m.t, err)
	return states[0].Used + states[0].Held
}

// stored are the events of a request, once they are in the books.
func (m *metering) stored(request uuid.UUID) []Event {
	m.t.Helper()
	m.drain()
	e, more, err := m.reports.RequestByID(m.t.Context(), m.tenant, request)
	must(m.t, err)
	return append([]Event{e}, more...)
}

var used = limits.Tokens{Input: 90, Output: 110}

func TestASettledCallHasOneEventWithItsActualFigures(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(false)
	d := m.admit(c)
	if m.day() != 500 {
		t.Fatalf("held %d", m.day())
	}
	_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
	must(t, err)
	got := m.stored(c.RequestID)
	if len(got) != 1 || got[0].ID != d.Reservation.ID || got[0].Tokens != used || got[0].Outcome != OK || got[0].Requests != 1 || got[0].Charge.String() != "620000000" {
		t.Fatalf("got %+v", got)
	}
	want := []limits.Charge{{Ledger: m.plan[1].Ledger("gpt-4o"), WindowStart: limits.DayStart(m.clock.now(), time.UTC), Amount: 200}}
	if diff := cmp.Diff(want, got[0].Charges); diff != "" || m.day() != 200 {
		t.Fatalf("the cap holds %d, the event charges %s", m.day(), diff)
	}
}

func TestARefusedCallIsAnEventAndChangesNoLedger(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(false)
	c.Estimate.Tokens.Input = 20_000
	if d := m.admit(c); d.Admitted || !d.TooLarge {
		t.Fatalf("got %+v", d)
	}
	got := m.stored(c.RequestID)
	if got[0].Outcome != "refused_tokens_day" || got[0].Refused != 1 || got[0].Requests != 0 || got[0].Refusal.Code != "request_too_large" || m.day() != 0 {
		t.Fatalf("got %+v, %+v; the cap holds %d", got[0], got[0].Refusal, m.day())
	}
}

func TestACallOfTheGatewayIsNobodysReservation(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	d := m.admit(m.call(false))
	if _, err := m.meter.Owner(t.Context(), m.tenant, d.Reservation.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("under way: %v", err)
	}
	_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
	must(t, err)
	if _, err := m.meter.Owner(t.Context(), m.tenant, d.Reservation.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("ended: %v", err)
	}
}

func TestACancelledCallCountsNothing(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(true)
	d := m.admit(c)
	for range 2 {
		s, err := m.meter.Cancel(t.Context(), m.tenant, d.Reservation.ID)
		if err != nil || s.State != limits.StateCancelled {
			t.Fatalf("got %+v, %v", s, err)
		}
	}
	if got := m.stored(c.RequestID); len(got) != 1 || got[0].Requests != 0 || !got[0].Charge.IsZero() || m.day() != 0 {
		t.Fatalf("got %+v; the cap holds %d", got, m.day())
	}
}

func TestAnExpiredReservationIsBilledNothingUntilALateSettleCorrectsItOnce(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(true)
	d := m.admit(c)
	m.clock.advance(2 * time.Minute)
	m.meter.Sweep()
	if got := m.stored(c.RequestID); len(got) != 1 || got[0].Outcome != Expired || !got[0].Charge.IsZero() || got[0].Tokens.Total() != 500 || m.day() != 500 {
		t.Fatalf("expired: %+v; the cap holds %d", got, m.day())
	}
	for _, first := range []bool{true, false} {
		s, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
		if err != nil || s.First != first || !s.Late {
			t.Fatalf("got %+v, %v", s, err)
		}
	}
	got := m.stored(c.RequestID)
	if len(got) != 2 || got[1].Outcome != Correction || got[1].Corrects != got[0].ID || m.day() != 200 {
		t.Fatalf("got %+v; the cap holds %d", got, m.day())
	}
	if sum := got[0].Charge.Add(got[1].Charge); sum.String() != "620000000" || got[0].Tokens.Total()+got[1].Tokens.Total() != 200 || got[0].Requests+got[1].Requests != 1 {
		t.Fatalf("together: %s, %+v", sum, got)
	}
}

func TestALateSettleThatMeetsTheSweepStillCorrects(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	const n = 10
	var calls []Call
	var ids []uuid.UUID
	for range n {
		c := m.call(true)
		calls, ids = append(calls, c), append(ids, m.admit(c).Reservation.ID)
	}
	m.clock.advance(2 * time.Minute)
	var group sync.WaitGroup
	for range 4 {
		group.Go(m.meter.Sweep)
		group.Go(func() {
			for _, call := range ids {
				if _, err := m.meter.Settle(t.Context(), m.tenant, call, Result{Outcome: OK, Tokens: used}); err != nil {
					t.Errorf("settle: %v", err)
				}
			}
		})
	}
	group.Wait()
	m.meter.Sweep()
	for _, c := range calls {
		var tokens, requests int64
		for _, e := range m.stored(c.RequestID) {
			tokens, requests = tokens+e.Tokens.Total(), requests+e.Requests
		}
		if tokens != 200 || requests != 1 {
			t.Errorf("%d tokens, %d requests", tokens, requests)
		}
	}
	if m.day() != 200*n {
		t.Errorf("the cap holds %d", m.day())
	}
}

func TestAnOutcomeStandsWhateverComesAfter(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(true)
	d := m.admit(c)
	settle := func(r Result) error {
		_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, r)
		return err
	}
	must(t, settle(Result{Outcome: OK, Tokens: used}))
	must(t, settle(Result{Outcome: OK, Tokens: used}))
	for name, err := range map[string]error{
		"other figures": settle(Result{Outcome: OK, Tokens: limits.Tokens{Input: 1}}),
		"other outcome": settle(Result{Outcome: ProviderError, Tokens: used}),
		"cancel":        func() error { _, err := m.meter.Cancel(t.Context(), m.tenant, d.Reservation.ID); return err }(),
	} {
		if f := fault.Of(err); f == nil || f.Code != "reservation_settled" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.meter.Settle(t.Context(), id.New(), d.Reservation.ID, Result{Outcome: OK, Tokens: used}); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if got := m.stored(c.RequestID); len(got) != 1 || got[0].Tokens != used {
		t.Fatalf("got %+v", got)
	}
	// Long after, the books answer alike.
	m.clock.advance(4 * time.Hour)
	m.meter.Sweep()
	must(t, settle(Result{Outcome: OK, Tokens: used}))
	if f := fault.Of(settle(Result{Outcome: OK, Tokens: limits.Tokens{Input: 1}})); f == nil || f.Code != "reservation_settled" {
		t.Errorf("from the books: %v", f)
	}
}

func TestACallThatCannotBeRecordedIsNotAdmittedAndHoldsNothing(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	must(t, m.spool.Close(nil))
	_, err := m.meter.Admit(t.Context(), m.call(false))
	if f := fault.Of(err); f == nil || f.Code != "metering_unavailable" || f.Kind != fault.Unavailable {
		t.Fatalf("got %v", err)
	}
	if m.day() != 0 {
		t.Fatalf("the cap holds %d", m.day())
	}
}

func TestAfterAKillGatewayCallsAreClosedAndReservationsLiveOn(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	plain, streamed, reserved, over := m.call(false), m.call(false), m.call(true), m.call(true)
	over.TTL = 10 * time.Second
	m.admit(plain)
	s := m.admit(streamed)
	must(t, m.spool.Checkpoint(m.tenant, s.Reservation.ID, limits.Tokens{Input: 100, Output: 42}))
	alive := m.admit(reserved)
	m.admit(over)
	crash(m.spool)

	m.clock.advance(30 * time.Second)
	spool, rec := fastSpool(t, m.dir)
	if len(rec.Open) != 4 || rec.Clean {
		t.Fatalf("recovered %+v", rec)
	}
	ended, live, err := CloseOpen(t.Context(), spool, rec.Open, nil, m.clock.now())
	must(t, err)
	if len(ended) != 3 || len(live) != 1 {
		t.Fatalf("%d ended, %d live on", len(ended), len(live))
	}
	amounts := map[uuid.UUID]int64{}
	for _, e := range ended {
		amounts[e.ID] = e.Charges[0].Amount
	}
	if amounts[s.Reservation.ID] != 142 || len(amounts) != 3 {
		t.Fatalf("charged %v", amounts)
	}
	engine := limits.NewMemory(limits.MemoryOptions{Now: m.clock.now})
	again := NewMeter(engine, spool, m.reports, quiet(t), m.clock.now)
	must(t, again.Restore(t.Context(), live))
	done, err := again.Settle(t.Context(), m.tenant, alive.Reservation.ID, Result{Outcome: OK, Tokens: used})
	if err != nil || done.Late || done.Event.Tokens != used || done.Event.RequestID != reserved.RequestID {
		t.Fatalf("got %+v, %v", done, err)
	}
}

func TestACallsDayIsThatOfTheZoneThatCountsAtItsAdmission(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	c := m.call(false)
	m.clock.advance(-48 * time.Hour)
	now := m.clock.now()
	ends := limits.DayEnd(now, time.UTC)
	c.Zones = limits.Zones{Zone: "Asia/Kolkata", Past: []limits.PastZone{{Zone: "UTC", UntilMS: now.UnixMilli()}}}
	for _, want := range []time.Time{limits.DayStart(now, time.UTC), ends} {
		c.RequestID = id.At(m.clock.now())
		d := m.admit(c)
		_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
		must(t, err)
		if got := m.stored(c.RequestID)[0].LocalDay; !got.Equal(want) {
			t.Fatalf("a call of %s is on the day from %s, want %s", m.clock.now(), got, want)
		}
		m.clock.advance(ends.Sub(m.clock.now()))
	}
}

// TestACallOverMidnightBelongsToTheDayOfItsAdmission: in its event, the sums, the
// caps and the engine. F27 of the faults.
func TestACallOverMidnightBelongsToTheDayOfItsAdmission(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	midnight := limits.DayStart(m.clock.now(), time.UTC)
	m.clock.advance(midnight.Add(-100 * time.Millisecond).Sub(m.clock.now()))
	c := m.call(false)
	d := m.admit(c)
	m.clock.advance(10100 * time.Millisecond)
	_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
	must(t, err)
	m.drain()
	yesterday := limits.DayStart(midnight.Add(-time.Hour), time.UTC)
	e := m.stored(c.RequestID)[0]
	if !e.LocalDay.Equal(yesterday) || !e.StartedAt.Before(midnight) || !e.EndedAt.After(midnight) {
		t.Errorf("the event is of %s, from %s to %s", e.LocalDay, e.StartedAt, e.EndedAt)
	}
	for _, sum := range []string{
		"select bool_and(bucket = $1) from usage_day", "select bool_and(bucket < $1::timestamptz + interval '1 day') from usage_quarter",
		"select bool_and(window_start = $1) and sum(used) = " + strconv.FormatInt(used.Total(), 10) + " from cap_totals",
	} {
		if !query[bool](t, m.books.Worker, sum, yesterday) {
			t.Errorf("not of the day of its admission: %s", sum)
		}
	}
	if n := m.day(); n != 0 {
		t.Errorf("the new day holds %d", n)
	}
}
