package limits

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// myCall is an open reservation of this process.
type myCall struct {
	Reservation
	forget bool
	ended  *pendingEnd // while Redis was out
	note   string      // kept with it (Keep)
	born   int64       // since when the Redis that knows it has lost nothing; 0: none does
	more   int         // moves that Redis has of it and this process does not count
	owed   int         // moves that Redis has to hear of before its end
}

// pendingEnd is an outcome, or a move, that Redis has to hear of.
type pendingEnd struct {
	tenant, id uuid.UUID
	move       *Next       // nil: an outcome
	to         Reservation // what the move made of it
	as         phase
	settlement Settlement
	at         time.Time
}

func (w *away) reserved(r *Reservation, forget bool, born int64) {
	if w.budget == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mine[r.ID] = &myCall{Reservation: *r, forget: forget, born: born}
}

// restoreLater notes open reservations of an earlier life that Redis is to know.
func (w *away) restoreLater(t *farTenant, list []Reservation) {
	t.losses.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range list {
		w.mine[o.ID] = &myCall{Reservation: o}
	}
	w.emptied = true
}

func (w *away) forget(id uuid.UUID) {
	if w.budget == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mine, id)
}

// How long ended calls are remembered, and how many: where Redis loses its state,
// what the books lack of them is told again.
const (
	recentFor  = 2 * time.Minute
	mostRecent = 200_000
)

// finished forgets an open call, but not yet what it came to in the Redis that
// began at an instant.
func (w *away) finished(e pendingEnd, born int64) {
	if w.budget == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mine[e.id]
	if c == nil {
		return
	}
	delete(w.mine, e.id)
	c.ended, c.born = &e, born
	w.remember(&aloneCall{myCall: *c}, e.at)
}

// remember keeps an ended call for a while; w.mu is held.
func (w *away) remember(c *aloneCall, now time.Time) {
	old := 0
	for old < len(w.recent) && (now.Sub(w.recent[old].ended.at) > recentFor || len(w.recent)-old >= mostRecent) {
		old++
	}
	w.recent = append(w.recent[old:], c)
}

// born notes since when the Redis that has answered has lost nothing of a tenant.
// What the answer tells of has been noted before: where a Redis answered that is
// gone, it is told again.
func (w *away) born(t *farTenant, ms int64) {
	was := t.born.Load()
	for was < ms && !t.born.CompareAndSwap(was, ms) {
		was = t.born.Load()
	}
	if was == 0 || was == ms || w.budget == 0 {
		return
	}
	t.losses.Add(1)
	told := make(chan struct{})
	t.lost.CompareAndSwap(nil, &told)
	w.mu.Lock()
	w.emptied = true
	w.mu.Unlock()
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

func (w *away) extended(id uuid.UUID, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.mine[id]; c != nil && until.After(c.ExpiresAt) {
		c.ExpiresAt = until
	}
}

// remade takes a reservation of this process back into a Redis that has lost it.
func (r *Redis) remade(ctx context.Context, tenant, id uuid.UUID) bool {
	t := r.tenant(tenant)
	t.mending.Lock()
	defer t.mending.Unlock()
	r.away.mu.Lock()
	c := r.away.mine[id]
	r.away.mu.Unlock()
	return c != nil && c.ended == nil && c.Tenant == tenant && c.ExpiresAt.After(r.now()) && r.restore(ctx, tenant, []Reservation{c.Reservation}, 0) == nil
}

// endAway ends a call while Redis is out: one that was admitted meanwhile, or one
// that this process reserved before.
func (r *Redis) endAway(ctx context.Context, tenant, id uuid.UUID, as phase, s Settlement, cause error) (Outcome, error) {
	w := &r.away
	if a := w.itself(); a != nil {
		if a.has(id) {
			return a.end(ctx, tenant, id, as, s)
		}
		_, _ = a.local.Settle(ctx, tenant, id, s) // it may have moved meanwhile
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mine[id]
	if c == nil || c.Tenant != tenant {
		return Outcome{}, out(cause)
	}
	first := c.ended == nil
	if first {
		c.ended = &pendingEnd{tenant: tenant, id: id, as: as, settlement: s, at: r.now()}
		w.pending = append(w.pending, *c.ended)
	}
	o := c.outcome()
	o.First = first
	if !first && (c.ended.as != as || c.ended.settlement != s) {
		return o, fault.Newf(fault.Conflict, "reservation_settled", "This reservation is %s already, with other figures.", o.State)
	}
	return o, nil
}

// outcome is what the reservation comes to, without the state of ledgers.
func (c *myCall) outcome() Outcome {
	s := c.ended.settlement
	s.Actual.Requests = c.Estimate.Requests
	if s.GiveBackRequest {
		s.Actual.Requests = 0
	}
	o := Outcome{State: StateSettled, Actual: s.Actual, Charges: c.ChargesAt(s.Actual)}
	if c.ended.as == cancelled {
		o.State = StateCancelled
	}
	return o
}

func (w *away) extend(ctx context.Context, tenant, id uuid.UUID, until time.Time) bool {
	if a := w.itself(); a != nil && a.has(id) {
		return a.local.Extend(ctx, tenant, id, until) == nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mine[id]
	if c != nil && until.After(c.ExpiresAt) {
		c.ExpiresAt = until
	}
	return c != nil
}
