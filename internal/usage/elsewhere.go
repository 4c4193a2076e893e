package usage

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
)

// A reservation of the decision API may be ended by any process on one Redis. Its
// admission is kept there beside it. Whoever ends it first in the engine writes the
// event, and has the admission in its own spool before; the engine remembers who
// that was, so that a process that died in between, or does not know, finds out
// whether the event is its own to write.

// share lets other processes end a reservation. Where that fails, only this one
// can.
func (m *Meter) share(ctx context.Context, a Admission) {
	if m.shared == nil || !a.Decision {
		return
	}
	body, err := encode(a)
	if err == nil {
		err = m.shared.Keep(ctx, &a.Reservation, body)
	}
	if err != nil && !fault.Is(err, fault.Unavailable) {
		m.log.Error("admission not shared", "reservation", a.Reservation.ID, "error", err)
	}
}

// elsewhere is an open reservation that another process admitted. NotFound is an
// id that the engine does not know, or no reservation; Unavailable
// (reservation_pending) one that has ended, and whose event is on its way.
func (m *Meter) elsewhere(ctx context.Context, tenant, call uuid.UUID) (*metered, error) {
	if m.shared == nil {
		return nil, m.unknown(call)
	}
	f, err := m.shared.Find(ctx, tenant, call)
	switch {
	case fault.Is(err, fault.NotFound), err == nil && f.Note == nil:
		return nil, m.unknown(call)
	case err != nil:
		return nil, err
	case f.Ended, f.Told:
		return nil, beingStored()
	}
	c := &metered{until: f.Reservation.ExpiresAt, foreign: true}
	if err := decodeOwn(f.Note, &c.admission); err != nil {
		return nil, err
	}
	c.admission.Reservation = f.Reservation
	return c, nil
}

// enter locks a call that is to be ended. One that another process admitted is
// admitted in this spool first.
func (m *Meter) enter(c *metered) (*metered, error) {
	call := c.admission.Event.ID
	m.mu.Lock()
	if known := m.calls[call]; known != nil {
		c = known
	} else if c.foreign {
		m.calls[call] = c
	}
	m.mu.Unlock()
	c.mu.Lock()
	if c.written || !c.foreign {
		return c, nil
	}
	if err := m.spool.Admit(&c.admission); err != nil {
		m.drop(call)
		c.mu.Unlock()
		return nil, err
	}
	c.written = true
	return c, nil
}

func (m *Meter) drop(call uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, call)
}

// leave forgets a call whose event is another process's. The call is locked.
func (m *Meter) leave(c *metered) {
	if err := m.spool.Leave(c.admission.Event.ID); fault.Is(err, fault.Unavailable) {
		return // it is looked at again
	}
	m.drop(c.admission.Event.ID)
}

// endedElsewhere answers an outcome that the engine knows already, and this
// process does not: the event is its own to write where it died or was cut off in
// between, and else another's. The call is locked.
func (m *Meter) endedElsewhere(ctx context.Context, c *metered, o limits.Outcome, r Result) (Settled, error) {
	tenant, call := c.admission.Event.Tenant, c.admission.Event.ID
	f, err := m.shared.Find(ctx, tenant, call)
	if err != nil {
		return Settled{}, beingStored()
	}
	if f.Mine {
		s := m.ends(c, o, r)
		s.First = false
		return s, nil
	}
	m.leave(c)
	past, err := m.recalled(ctx, tenant, call)
	if err != nil {
		return Settled{}, err
	}
	if !past.ended() {
		return Settled{}, beingStored()
	}
	s, err := past.again(r)
	s.Limits = o.States
	return s, err
}

const (
	// heardAfter is how long after its end a reservation is asked about of which
	// this process has not heard: another one may have ended or extended it.
	heardAfter = 5 * time.Second
	// askedAtOnce is how many are asked about in one round.
	askedAtOnce = 50
)

// checkOthers asks about reservations that ran out without a word.
func (m *Meter) checkOthers(now time.Time) {
	var due []*metered
	m.mu.Lock()
	for _, c := range m.calls {
		if !c.admission.Decision || !c.written || !c.forgetAt.IsZero() || len(due) == askedAtOnce {
			continue
		}
		if c.checkAt.IsZero() {
			c.checkAt = c.admission.Reservation.ExpiresAt.Add(heardAfter)
		}
		if c.checkAt.Before(now) {
			due = append(due, c)
		}
	}
	m.mu.Unlock()
	for _, c := range due {
		m.check(context.Background(), c, now)
	}
}

func (m *Meter) check(ctx context.Context, c *metered, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.event != nil {
		return
	}
	e := c.admission.Event
	f, err := m.shared.Find(ctx, e.Tenant, e.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		m.forgotten(ctx, c, now)
	case err != nil:
		m.checkLater(c, now)
	case f.Ended && f.Mine:
		m.ends(c, f.Outcome, unheard(f.Outcome))
	case !f.Mine:
		m.leave(c)
	case f.Told:
		m.expire(c, now)
	default:
		m.stillOpen(c, f.Reservation.ExpiresAt, now)
	}
}

// unheard is how a call ended whose outcome only the engine knows.
func unheard(o limits.Outcome) Result {
	r := Result{Outcome: OK, Tokens: o.Actual.Tokens, Units: o.Actual.Units}
	if o.State == limits.StateCancelled {
		r.Outcome = Aborted
	}
	return r
}

// forgotten ends a call that the engine does not know any more, unless its event
// is in the books.
func (m *Meter) forgotten(ctx context.Context, c *metered, now time.Time) {
	e := c.admission.Event
	_, err := m.past.EventByID(ctx, e.Tenant, e.ID)
	switch {
	case err == nil:
		m.leave(c)
	case fault.Is(err, fault.NotFound) && now.Sub(c.until) > 2*unknownFor:
		m.expire(c, now)
	default:
		m.checkLater(c, now)
	}
}

// stillOpen takes over that another process extended a reservation.
func (m *Meter) stillOpen(c *metered, until, now time.Time) {
	if until.After(c.until) && m.spool.Extend(c.admission.Event.ID, until) == nil {
		c.until = until
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.checkAt = c.until.Add(heardAfter); c.checkAt.Before(now) {
		c.checkAt = now.Add(heardAfter)
	}
}

func (m *Meter) checkLater(c *metered, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.checkAt = now.Add(heardAfter)
}

func beingStored() error {
	return fault.New(fault.Unavailable, "reservation_pending", "How this reservation ended is just being stored. Try again in a second.").After(time.Second)
}
