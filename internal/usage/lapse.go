package usage

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
)

// KindDecision is the kind of a call that was admitted by the decision API.
const KindDecision = "decision"

// sweepEvery is how often reservations that ran out are looked for.
const sweepEvery = 250 * time.Millisecond

// Run ends what nobody ends: it writes the event of every reservation that ran
// out, forgets old outcomes, and empties the backlog. It returns when ctx ends.
func (m *Meter) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.Sweep()
		}
	}
}

// Sweep is one round of Run.
func (m *Meter) Sweep() {
	now := m.now()
	for _, r := range append(m.dueAgain(now), m.limiter.Expire(now)...) {
		m.lapse(r, now)
	}
	m.mu.Lock()
	for call, c := range m.calls {
		if !c.forgetAt.IsZero() && c.forgetAt.Before(now) {
			delete(m.calls, call)
		}
	}
	waiting := m.backlog
	m.backlog = nil
	m.mu.Unlock()
	for _, e := range waiting {
		m.finish(e)
	}
	m.settleStorms(false)
	if m.shared != nil {
		m.checkOthers(now)
	}
}

// Close is the last round: what was counted and not written is written now. No
// call may be admitted any more.
func (m *Meter) Close() {
	m.Sweep()
	m.settleStorms(true)
}

// lapsed is a reservation that ran out, and that this process does not know.
type lapsed struct {
	limits.Reservation
	again time.Time // when to look at it again
}

func (m *Meter) dueAgain(now time.Time) (due []limits.Reservation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.early = slices.DeleteFunc(m.early, func(l lapsed) bool {
		if l.again.After(now) {
			return false
		}
		due = append(due, l.Reservation)
		return true
	})
	return due
}

// lapse writes that a reservation expired. One that is still being admitted
// comes back in the next round.
func (m *Meter) lapse(r limits.Reservation, now time.Time) {
	m.mu.Lock()
	c := m.calls[r.ID]
	pending := m.tail[r.ID]
	m.mu.Unlock()
	switch {
	case c != nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		m.expire(c, now)
	case pending || now.Sub(r.ExpiresAt) < unknownFor:
		m.lookAgain(r, now.Add(sweepEvery))
	default:
		if err := m.disown(context.Background(), r); err != nil {
			m.lookAgain(r, now.Add(unknownFor/6))
		}
	}
}

// unknownFor is how long after its end a reservation may turn out to be known.
const unknownFor = time.Minute

func (m *Meter) lookAgain(r limits.Reservation, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.early = append(m.early, lapsed{r, at})
}

// disown corrects what the engine was charged by a reservation without an open
// admission: to what its event says, which an earlier life wrote, or to nothing
// where the call was never let through, because the engine's answer was lost.
func (m *Meter) disown(ctx context.Context, r limits.Reservation) error {
	e, err := m.past.EventByID(ctx, r.Tenant, r.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		_, err = m.limiter.Cancel(ctx, r.Tenant, r.ID)
	case err == nil && (e.Outcome == Expired && e.Kind == KindDecision || !e.admitted()):
		return nil // it stays charged until it is settled late
	case err == nil:
		_, err = m.limiter.Settle(ctx, r.Tenant, r.ID, Admission{Event: e, Reservation: r}.settlement(e))
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

// expire writes the event that says expired, unless the call has an event. The
// call is locked. A late settlement corrects it.
func (m *Meter) expire(c *metered, now time.Time) {
	if c.event != nil {
		return
	}
	e := c.admission.expired(now)
	c.event = &e
	m.forgetLater(c)
	m.finish(&e)
}

// expired is the event of a call that nobody settled in time.
func (a Admission) expired(now time.Time) Event {
	e := a.Event
	e.EndedAt = now.UTC().Truncate(time.Microsecond)
	if a.Decision {
		e.Unsettled = &Unsettled{a.Reservation, a.Rates}
	}
	return e
}

// Recovered tells which calls ended in an earlier life and may not be in the
// books yet.
func (m *Meter) Recovered(tail []Ended) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tail = make(map[uuid.UUID]bool, len(tail))
	for _, e := range tail {
		m.tail[e.ID] = true
	}
}

// Restore takes back the reservations that live on from an earlier life. What ran
// out so long ago that the engine may have forgotten it is left to the books.
func (m *Meter) Restore(ctx context.Context, alive []Admission) error {
	var list []limits.Reservation
	for _, a := range alive {
		if m.now().Sub(a.Reservation.ExpiresAt) < time.Hour {
			list = append(list, a.Reservation)
		}
	}
	if err := m.limiter.Restore(ctx, list); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range alive {
		m.calls[a.Event.ID] = &metered{admission: a, until: a.Reservation.ExpiresAt, written: true}
	}
	return nil
}
