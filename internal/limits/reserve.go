package limits

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// How long a reservation may stay unsettled.
const (
	DefaultTTL = 10 * time.Minute
	MaxTTL     = 60 * time.Minute
)

// Reserve decides one call: every ledger that it touches is charged, or none is.
// A refusal is a Decision that is not Admitted; it has changed no ledger beyond
// its refill. An open reservation of the same id and figures is answered again,
// and charged no second time; so is one under the same key (Once), open or
// ended. An error says why there is no decision: Invalid for counts or times out
// of range, Conflict (reservation_exists) for an id that is reserved with other
// figures or has ended, and for a key that another request has, Unavailable
// (limiter_unavailable) when the limiter can't decide.
//
// With MaxWait, a call that would pass within that time waits instead of being
// refused: first come, first served at each ledger, and a call that comes later
// leaves room for those who wait, whether it waits or not. It is refused at once
// where the wait can't fit, or where a hundred calls of its customer wait. For
// room at a candidate it waits no longer than RouteWait after it came. A
// waiting call holds nothing, and ends with ctx (limiter_unavailable); what holds
// for it by then is asked of Renew.
func (m *Memory) Reserve(ctx context.Context, r Request) (Decision, error) {
	w, d, err := m.decide(ctx, &r, nil)
	if err == nil && !d.admitted && r.MaxWait > 0 {
		w, d, err = m.wait(ctx, &r, w, d)
	}
	if err != nil {
		return Decision{}, err
	}
	defer w.unlock()
	if d.again {
		return w.t.again(&r, &w.at)
	}
	return w.told(d, r.Candidates), nil
}

// unlock ends a decision that has been told.
func (w *work) unlock() {
	w.done()
	w.t.mu.Unlock()
}

// decision is a Decision before anything is told of ledgers.
type decision struct {
	admitted, again, tooLarge, providerFull bool
	candidate                               int
	wait                                    int64 // µs
}

// told is a decision with what it says of the ledgers.
func (w *work) told(d decision, candidates []Candidate) Decision {
	out := Decision{
		Admitted: d.admitted, Candidate: d.candidate, At: wall(w.at.micros), TooLarge: d.tooLarge, ProviderFull: d.providerFull,
		RetryAfter: time.Duration(d.wait) * time.Microsecond,
	}
	if !d.admitted {
		if d.providerFull {
			out.Violations = w.violations(w.chosen)
		} else {
			out.Violations = w.violations(w.plan)
		}
	}
	n := w.plan.to
	if d.admitted && d.candidate >= 0 {
		n += w.chosen.to - w.chosen.from
	}
	out.States = w.states(make([]State, 0, n), w.plan)
	if d.admitted && d.candidate >= 0 {
		w.served = candidates[d.candidate].Model
		out.States = w.states(out.States, w.chosen)
	}
	if w.id != uuid.Nil {
		c := w.t.calls[w.id]
		out.Reservation, out.ExpiresAt = c.reservation(w.t.id), wall(c.expires)
	}
	return out
}

// decide is Reserve without telling of ledgers; self is the caller's place in
// line, if it has one. Unless there is an error, it leaves the tenant locked.
func (m *Memory) decide(ctx context.Context, r *Request, self *waiter) (*work, decision, error) {
	if err := r.check(); err != nil {
		return nil, decision{}, err
	}
	for {
		w := m.begin(r.Tenant, r.Plan)
		w.self = self
		if !r.DryRun && w.t.before(r) != nil {
			return w, decision{again: true}, nil
		}
		d, ready := w.decide(r)
		if ready {
			if !d.admitted || r.DryRun {
				return w, d, nil
			}
			if err := w.keep(r, d.candidate); err != nil {
				w.unlock()
				return nil, decision{}, err
			}
			return w, d, nil
		}
		t, missing := w.t, slices.Clone(w.windows)
		w.unlock()
		if err := m.load(ctx, t, missing); err != nil {
			return nil, decision{}, err
		}
	}
}

// decide judges the plan, and the candidates in their order. It is false where
// windows have to be loaded first.
func (w *work) decide(r *Request) (decision, bool) {
	w.model, w.figures = r.Model, r.Estimate.figures()
	for _, s := range r.Plan {
		if s != nil {
			w.askPlan(s, r)
		}
	}
	w.plan = span{0, len(w.list)}
	v, ready := w.judge(w.plan)
	d := decision{candidate: -1}
	if len(r.Candidates) == 0 {
		d.conclude(v, verdict{})
		return d, ready
	}
	chosen, provider, readyToo := w.choose(r.Plan, r.Candidates, &r.Estimate, r.EndUser)
	if d.conclude(v, provider); d.admitted {
		d.candidate = chosen
	}
	return d, ready && readyToo
}

func (d *decision) conclude(plan, provider verdict) {
	if d.admitted = !plan.refuses && !provider.refuses; d.admitted {
		return
	}
	d.providerFull = !plan.refuses || provider.never && !plan.never
	if d.tooLarge = plan.never || provider.never; !d.tooLarge {
		d.wait = max(plan.wait, provider.wait)
	}
}

func (r *Request) check() error {
	if !r.Estimate.sane() {
		return fault.InvalidFields(r.Estimate.Check()...)
	}
	if err := checkSets(r.Plan, r.Candidates); err != nil {
		return err
	}
	if r.MaxWait < 0 || r.MaxWait > MaxWait || r.RouteWait < 0 {
		return fault.InvalidFields(fault.Field{Pointer: "/max_wait_ms", Code: "out_of_range", Message: "A call waits at most 60,000 ms."})
	}
	return checkTTL(r.TTL)
}

func checkSets(plan []*Set, list []Candidate) error {
	for _, s := range plan {
		if s != nil && s.broken != nil {
			return out(s.broken)
		}
	}
	for i := range list {
		if s := list[i].Limits; s != nil && s.broken != nil {
			return out(s.broken)
		}
		if p := list[i].ProviderPico; p < 0 || p > MaxPico {
			return fault.InvalidFields(fault.Field{Pointer: "/candidates", Code: "out_of_range", Message: "A provider's price is out of range."})
		}
	}
	return nil
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
