package usage

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/redistest"
)

// onRedis makes the engine of a metering one that other processes share.
func (m *metering) onRedis(url string) *limits.Redis {
	m.t.Helper()
	r, err := limits.DialRedis(url, limits.RedisOptions{Owner: m.spool.Instance().String()})
	must(m.t, err)
	m.t.Cleanup(r.Close)
	m.meter = NewMeter(r, m.spool, m.reports, quiet(m.t), m.clock.now)
	return r
}

func TestWhoEndedAReservationWritesItsEventThoughItDiedInBetween(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	engine := m.onRedis(redistest.Start(t).URL())
	asked, unheard := m.call(true), m.call(true)
	settled := func(c Call) uuid.UUID {
		d := m.admit(c)
		_, err := engine.Settle(t.Context(), m.tenant, d.Reservation.ID, limits.Settlement{Actual: limits.Cost{Tokens: used}})
		must(t, err) // and then the process was killed
		return d.Reservation.ID
	}
	again, never := settled(asked), settled(unheard)

	_, err := m.meter.Settle(t.Context(), m.tenant, again, Result{Outcome: OK, Tokens: limits.Tokens{Input: 1}})
	if fault.Of(err).Code != "reservation_settled" {
		t.Fatalf("other figures: %v", err)
	}
	for range 2 {
		s, err := m.meter.Settle(t.Context(), m.tenant, again, Result{Outcome: OK, Tokens: used})
		if must(t, err); s.First || s.State != limits.StateSettled {
			t.Fatalf("got %+v", s)
		}
	}
	m.clock.advance(time.Minute + 2*heardAfter)
	m.meter.Sweep()
	for c, call := range map[uuid.UUID]Call{again: asked, never: unheard} {
		if got := m.stored(call.RequestID); len(got) != 1 || got[0].ID != c || got[0].Tokens != used || got[0].Outcome != OK {
			t.Fatalf("got %+v", got)
		}
	}
}

func TestAReservationThatAnotherProcessEndedIsLeftToItsEvent(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	url := redistest.Start(t).URL()
	m.onRedis(url)
	here := m.meter
	spool, _ := fastSpool(t, t.TempDir())
	other := metering{t: t, clock: m.clock, tenant: m.tenant, plan: m.plan, spool: spool, reports: m.reports}
	other.onRedis(url)
	d := m.admit(m.call(true))
	if _, err := other.meter.Settle(t.Context(), id.New(), d.Reservation.ID, Result{Outcome: OK, Tokens: used}); fault.Of(err).Code != "reservation_not_found" {
		t.Fatalf("of another tenant: %v", err)
	}
	s, err := other.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
	if must(t, err); !s.First || s.Event.ID != d.Reservation.ID || s.Event.Instance != spool.Instance() {
		t.Fatalf("got %+v", s)
	}
	if _, err := here.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used}); fault.Of(err).Code != "reservation_pending" {
		t.Fatalf("before its event is stored: %v", err)
	}
	m.clock.advance(time.Minute + 2*heardAfter)
	here.Sweep()
	other.meter.Sweep()
	for _, s := range []*Spool{m.spool, spool} {
		if at := s.oldestOpen(); !at.IsZero() {
			t.Fatalf("a spool holds the call open since %s", at)
		}
	}
	if n := m.spool.progress().given; n != (progress{}).given {
		t.Fatalf("it wrote events: %v", n)
	}
}
