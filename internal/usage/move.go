package usage

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
)

// Next is how an admitted call goes on after an attempt that failed.
type Next struct {
	// Ended is that attempt: its Tokens are what it took of its provider.
	Ended Attempt
	// GiveBackRequest: the provider does not count a call that failed.
	GiveBackRequest bool
	// Candidates are tried in order; the first that fits is charged.
	Candidates []limits.Candidate
	EndUser    string
}

// mostAttempts bounds the attempts of one call, and so the size of its event.
const mostAttempts = 64

// Move goes on to the next attempt of an admitted call of the gateway: what ended
// is noted and settled with its provider, and the first of the candidates that
// fits is charged; the plan's part is left alone. The one is in the spool before the
// engine moves, both are when Move returns, so that a process that dies charges each
// provider key with what its attempts took. The meter keeps the attempts: Settle is told the last one only.
//
// Where no candidate fits, the Decision is ProviderFull; the call is still open,
// and Settle ends it. That is the answer without candidates too, and beyond 64
// attempts. NotFound is a call that this process did not admit or that has ended;
// a Conflict (reservation_expired) one that ran out. With any other error
// (limiter_unavailable, metering_unavailable) no candidate is charged, and the
// call is still to be settled.
func (m *Meter) Move(ctx context.Context, tenant, call uuid.UUID, n Next) (limits.Decision, error) {
	m.mu.Lock()
	c := m.calls[call]
	m.mu.Unlock()
	if c == nil || c.admission.Event.Tenant != tenant || c.admission.Decision {
		return limits.Decision{}, noReservation()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.event != nil {
		return limits.Decision{}, fault.New(fault.Conflict, "reservation_expired", "This reservation has expired.")
	}
	if len(c.admission.Event.Attempts) >= mostAttempts-2 { // one more, and the last
		n.Candidates = nil
	}
	to := c.admission.tried(n)
	if err := m.spool.Move(tenant, call, to); err != nil {
		return limits.Decision{}, err
	}
	d, err := m.step(ctx, c, to.ended(), n.Candidates, n.EndUser)
	if err != nil {
		return limits.Decision{}, err
	}
	to.went(n, d)
	to.apply(&c.admission)
	if err := m.spool.Move(tenant, call, to); err != nil {
		m.stepBack(ctx, c)
		return limits.Decision{}, err
	}
	return d, nil
}

// remembering is renew, and where it leaves what the plan was last.
func remembering(renew limits.Renew) (limits.Renew, *[]*limits.Set) {
	if renew == nil {
		return nil, nil
	}
	last := new([]*limits.Set)
	return func(ctx context.Context) ([]*limits.Set, error) {
		plan, err := renew(ctx)
		if err == nil {
			*last = plan
		}
		return plan, err
	}, last
}

// spending are, of the plan that the call was admitted by, the sets that count
// money: what a move looks at.
func (c *Call) spending(renewed *[]*limits.Set) (sets []*limits.Set) {
	plan := c.Plan
	if renewed != nil && *renewed != nil {
		plan = *renewed
	}
	for _, s := range plan {
		if s.Spends() && !c.Decision {
			sets = append(sets, s)
		}
	}
	return sets
}

// step moves a call in the engine. The call is locked.
func (m *Meter) step(ctx context.Context, c *metered, ended limits.Settlement, to []limits.Candidate, endUser string) (limits.Decision, error) {
	r := &c.admission.Reservation
	return m.limiter.Move(ctx, limits.Next{
		Tenant: r.Tenant, ID: r.ID, Attempt: r.Moves, Ended: ended, Plan: c.plan, Candidates: to, EndUser: endUser,
	})
}

// stepBack lets go of a candidate that was charged and is not to be tried. Where
// it cannot, the candidate stays charged as if it had been.
func (m *Meter) stepBack(ctx context.Context, c *metered) {
	d, err := m.step(ctx, c, limits.Settlement{GiveBackRequest: true}, nil, "")
	if err == nil {
		c.admission.Reservation = d.Reservation
	}
}

// Moved is how an open call stands after its attempts so far. Between two notes of
// one move the engine may have gone on or not: there is an attempt more than the
// reservation has moves.
type Moved struct {
	Attempts    []Attempt          `json:"attempts"`              // that have ended
	GaveBack    bool               `json:"gave_back,omitzero"`    // the request of the last of them
	Reservation limits.Reservation `json:"reservation"`           // with what they took, and what the next one holds
	ProviderKey uuid.UUID          `json:"provider_key,omitzero"` // of the last attempt, or the one that runs
	Model       string             `json:"model,omitzero"`
}

// tried is how the admission stands when its attempt has ended.
func (a *Admission) tried(n Next) Moved {
	return Moved{
		Attempts: append(slices.Clip(a.Event.Attempts), n.Ended), GaveBack: n.GiveBackRequest, Reservation: a.Reservation,
		ProviderKey: n.Ended.ProviderKey, Model: n.Ended.Model,
	}
}

// ended is what the last attempt took of its provider.
func (to *Moved) ended() limits.Settlement {
	last := to.Attempts[len(to.Attempts)-1]
	return limits.Settlement{Actual: limits.Cost{Tokens: last.Tokens}, GiveBackRequest: to.GaveBack}
}

// went notes where the engine has gone on to.
func (to *Moved) went(n Next, d limits.Decision) {
	to.Reservation = d.Reservation
	if d.Admitted && d.Candidate < len(n.Candidates) {
		to.ProviderKey, to.Model = n.Candidates[d.Candidate].ProviderKey, n.Candidates[d.Candidate].Model
	}
}

// apply makes the admission what it is after the move. When it expires is left as
// it is.
func (to Moved) apply(a *Admission) {
	until := a.Reservation.ExpiresAt
	a.Reservation = to.Reservation
	a.Reservation.ExpiresAt = until
	a.Event.Attempts, a.Event.Charges = to.Attempts, to.Reservation.Charges()
	a.Event.ProviderKey, a.Event.ModelServed = to.ProviderKey, to.Model
}

// Move notes how an open call stands after an attempt that ended; it replaces what
// the last Move noted. ErrNotOpen if the tenant has no such open call.
func (s *Spool) Move(tenant, id uuid.UUID, to Moved) error {
	b, done, err := framed(kindMoved, id, &to)
	defer done()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o == nil || o.tenant != tenant {
		return ErrNotOpen
	}
	if _, err := s.append(b, 0, 0); err != nil {
		return err
	}
	o.moved = &to
	return nil
}
