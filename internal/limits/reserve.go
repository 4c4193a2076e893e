package limits

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
)

// How long a reservation may stay unsettled.
const (
	DefaultTTL = 10 * time.Minute
	MaxTTL     = 60 * time.Minute
)

// Reserve decides one call: every ledger that it touches is charged, or none is.
// A refusal is a Decision that is not Admitted; it has changed no ledger beyond
// its refill. An error says why there is no decision: Invalid for counts or a
// TTL out of range, Conflict for an id that is reserved already, Unavailable
// (limiter_unavailable) when the limiter can't decide.
func (m *Memory) Reserve(ctx context.Context, r Request) (Decision, error) {
	if err := r.check(); err != nil {
		return Decision{}, err
	}
	lists, err := r.charges()
	if err != nil {
		return Decision{}, err
	}
	t, at, err := m.ready(ctx, r.Tenant, lists...)
	if err != nil {
		return Decision{}, err
	}
	defer t.mu.Unlock()
	if _, taken := t.calls[r.ID]; taken && !r.DryRun {
		return Decision{}, fault.New(fault.Conflict, "reservation_exists", "This id is reserved already.")
	}
	return m.decide(t, r, lists[0], lists[1:], at)
}

func (r Request) check() error {
	if wrong := r.Estimate.Check(); wrong != nil {
		return fault.InvalidFields(wrong...)
	}
	return checkTTL(r.TTL)
}

func checkTTL(ttl time.Duration) error {
	if ttl < 0 || ttl > MaxTTL {
		return fault.InvalidFields(fault.Field{
			Pointer: "/ttl_seconds", Code: "out_of_range",
			Message: "A reservation lasts from 1 to 3,600 seconds.",
		})
	}
	return nil
}

// charges are the plan's, then each candidate's without what the plan charges.
func (r Request) charges() ([][]charge, error) {
	plan, err := charges(r.Plan, r.Model, r.Estimate, false)
	if err != nil {
		return nil, err
	}
	lists := make([][]charge, 1, 1+len(r.Candidates))
	lists[0] = plan
	for _, candidate := range r.Candidates {
		list, err := charges(candidate.Limits, candidate.Model, r.Estimate, true)
		if err != nil {
			return nil, err
		}
		lists = append(lists, slices.DeleteFunc(list, func(c charge) bool {
			return slices.ContainsFunc(plan, func(p charge) bool { return p.key == c.key })
		}))
	}
	return lists, nil
}

func (m *Memory) decide(t *tenant, r Request, plan []charge, candidates [][]charge, at instant) (Decision, error) {
	m.draw(t, plan, at)
	v := judge(plan, at)
	chosen, provider := m.choose(t, candidates, at)
	d := Decision{Candidate: -1, At: at.wall}
	list := plan
	if v.fits() && provider.fits() {
		d.Admitted, d.Candidate = true, chosen
		if chosen >= 0 {
			list = slices.Concat(plan, candidates[chosen])
		}
		if !r.DryRun {
			if err := m.admit(t, r, list, at, &d); err != nil {
				return Decision{}, err
			}
		}
	} else {
		d.refuse(v, provider)
	}
	d.States = make([]State, len(list))
	for i := range list {
		d.States[i] = list[i].state(at)
	}
	return d, nil
}

// choose is the first candidate that fits, or the verdict on the one that would
// fit soonest. Without candidates the provider has nothing to say.
func (m *Memory) choose(t *tenant, candidates [][]charge, at instant) (int, verdict) {
	var best verdict
	for i, list := range candidates {
		m.draw(t, list, at)
		v := judge(list, at)
		if v.fits() {
			return i, v
		}
		if i == 0 || v.sooner(best) {
			best = v
		}
	}
	return -1, best
}

func (d *Decision) refuse(plan, provider verdict) {
	d.ProviderFull = plan.fits() || provider.never && !plan.never
	d.Violations = plan.refusing
	if d.ProviderFull {
		d.Violations = provider.refusing
	}
	if d.TooLarge = plan.never || provider.never; !d.TooLarge {
		d.RetryAfter = max(plan.wait, provider.wait)
	}
}

// admit charges every ledger of the list and keeps the reservation.
func (m *Memory) admit(t *tenant, r Request, list []charge, at instant, d *Decision) error {
	if err := m.keep(t, list, at); err != nil {
		return err
	}
	c := &call{id: r.ID, model: r.Model, at: at.wall, estimate: r.Estimate, forget: r.Forget, holds: make([]hold, len(list))}
	if c.id == uuid.Nil {
		c.id = made(at.wall)
	}
	c.expires = at.wall.Add(DefaultTTL)
	if r.TTL > 0 {
		c.expires = at.wall.Add(r.TTL)
	}
	for i := range list {
		h := &c.holds[i]
		*h = hold{limit: t.ledgers[list[i].key].limit, key: list[i].key, amount: list[i].cost, candidate: list[i].candidate, open: true}
		list[i].ledger.charge(h, at)
	}
	t.calls[c.id] = c
	t.open.put(c, c.expires)
	d.ExpiresAt, d.Reservation = c.expires, c.reservation(r.Tenant)
	return nil
}

// made is a UUIDv7 of this instant.
func made(at time.Time) uuid.UUID {
	u, ms := id.New(), at.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	return u
}

// Live states the ledgers of the limits that apply to model, each with the wait
// of the smallest call. Without a model it leaves out those that have a ledger
// per model. It charges nothing. Errors are as for Reserve.
func (m *Memory) Live(ctx context.Context, tenant uuid.UUID, limits []Limit, model string) ([]State, error) {
	list, err := looks(limits, model)
	if err != nil {
		return nil, err
	}
	t, at, err := m.ready(ctx, tenant, list)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	m.draw(t, list, at)
	states := make([]State, len(list))
	for i := range list {
		states[i] = list[i].state(at)
		wait, ever := list[i].ledger.wait(1, at)
		states[i].NextCallAfter, states[i].Never, states[i].Requested = wait, !ever, 0
	}
	return states, nil
}
