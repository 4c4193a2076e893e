package limits

import (
	"container/heap"
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// remembered is how long after its expiry the outcome of a reservation is kept.
const remembered = time.Hour

// Settle replaces the estimate of a reservation by what the call really was. The
// first outcome stands: the same again returns it with First false, another is a
// Conflict (reservation_settled) that comes with the outcome that stands;
// neither changes a ledger. The first outcome after an expiry corrects what
// stayed charged, and is Late. Invalid counts are refused before anything is
// touched; NotFound (reservation_not_found) is an id that is unknown, another
// tenant's, or forgotten.
func (m *Memory) Settle(_ context.Context, tenant, id uuid.UUID, s Settlement) (Outcome, error) {
	if wrong := s.Actual.Check(); wrong != nil {
		return Outcome{}, fault.InvalidFields(wrong...)
	}
	return m.end(tenant, id, settled, s)
}

// Cancel ends a reservation whose call never left for the provider: everything
// is given back, the request too. Otherwise it is as Settle.
func (m *Memory) Cancel(_ context.Context, tenant, id uuid.UUID) (Outcome, error) {
	return m.end(tenant, id, cancelled, Settlement{GiveBackRequest: true})
}

func (m *Memory) end(tenantID, id uuid.UUID, as phase, s Settlement) (Outcome, error) {
	t, c, at, err := m.find(tenantID, id)
	if err != nil {
		return Outcome{}, err
	}
	defer t.mu.Unlock()
	s.Actual.Requests = c.estimate.Requests
	if s.GiveBackRequest {
		s.Actual.Requests = 0
	}
	if c.phase >= settled {
		o := m.outcome(t, tenantID, c, at)
		if c.phase != as || c.actual != s.Actual || c.withRequest != s.GiveBackRequest {
			return o, fault.Newf(fault.Conflict, "reservation_settled", "This reservation is %s already, with other figures.", o.State)
		}
		return o, nil
	}
	m.settle(t, c, as, s, at)
	o := m.outcome(t, tenantID, c, at)
	o.First = true
	return o, nil
}

// find locks the tenant, reads the clock and returns the reservation. The caller
// unlocks, unless there is an error.
func (m *Memory) find(tenantID, id uuid.UUID) (*tenant, *call, instant, error) {
	unknown := fault.New(fault.NotFound, "reservation_not_found", "There is no such reservation.")
	v, ok := m.tenants.Load(tenantID)
	if !ok {
		return nil, nil, instant{}, unknown
	}
	t := v.(*tenant)
	t.mu.Lock()
	at := t.begin(m, m.now())
	c, ok := t.calls[id]
	if !ok {
		t.mu.Unlock()
		return nil, nil, instant{}, unknown
	}
	return t, c, at, nil
}

func (m *Memory) settle(t *tenant, c *call, as phase, s Settlement, at instant) {
	switch c.phase {
	case open:
		heap.Remove(&t.open, c.index)
	case expired:
		heap.Remove(&t.ended, c.index)
		c.late = true
	}
	c.phase, c.actual, c.withRequest = as, s.Actual, s.GiveBackRequest
	for i := range c.holds {
		h := &c.holds[i]
		actual := h.limit.Cost(c.actual)
		if k := m.owing(t, h, actual, at); k != nil {
			k.ledger.touch(k.limit, at)
			k.ledger.settle(h, actual, at)
		}
	}
	if c.forget {
		delete(t.calls, c.id)
		return
	}
	t.ended.put(c, c.expires.Add(remembered))
	t.trim(m.maxOutcomes)
}

// owing is the ledger that a hold is settled against, or nil when nothing is
// kept: a bucket that was full owes nothing back, but an overrun still counts.
func (m *Memory) owing(t *tenant, h *hold, actual int64, at instant) *kept {
	k := t.ledgers[h.key]
	if k == nil && h.limit.Policy == PolicyBucket && actual > h.amount {
		k = &kept{ledger: m.fresh(h.limit, nil, at)}
		t.ledgers[h.key] = k
	}
	if k != nil && k.limit == nil {
		k.limit = h.limit
	}
	return k
}

func (m *Memory) outcome(t *tenant, tenantID uuid.UUID, c *call, at instant) Outcome {
	o := Outcome{State: StateSettled, Late: c.late, Actual: c.actual, Reservation: c.reservation(tenantID)}
	if c.phase == cancelled {
		o.State = StateCancelled
	}
	for i := range c.holds {
		h := &c.holds[i]
		if h.limit.Policy == PolicyCalendar {
			amount := h.limit.Cost(c.actual)
			if c.late {
				amount -= h.amount
			}
			o.Charges = append(o.Charges, Charge{h.key, h.window.from(), amount})
		}
		if k := t.ledgers[h.key]; k != nil && k.limit != nil {
			k.ledger.touch(k.limit, at)
			s := State{Limit: *k.limit, Ledger: h.key}
			k.ledger.fill(&s, at)
			o.States = append(o.States, s)
		}
	}
	return o
}

// Extend moves the end of an open reservation to until, at most MaxTTL from now;
// one that ends later already is left as it is. It is a Conflict when the
// reservation has an outcome (reservation_settled) or is over
// (reservation_expired).
func (m *Memory) Extend(_ context.Context, tenant, id uuid.UUID, until time.Time) error {
	t, c, at, err := m.find(tenant, id)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	switch {
	case c.phase >= settled:
		return fault.New(fault.Conflict, "reservation_settled", "This reservation is settled already.")
	case c.phase != open:
		return fault.New(fault.Conflict, "reservation_expired", "This reservation has expired.")
	}
	if err := checkTTL(max(until.Sub(at.wall), 0)); err != nil {
		return err
	}
	if until.After(c.expires) {
		c.expires = until.UTC().Truncate(time.Microsecond)
		c.due = c.expires
		heap.Fix(&t.open, c.index)
	}
	return nil
}
