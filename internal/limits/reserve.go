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

// askPlan adds what a set of the plan asks. With candidates, what counts the
// provider's price is theirs.
func (w *work) askPlan(s *Set, r *Request) {
	mayShare := w.mayShare(s)
	for i := range s.rules {
		rule := &s.rules[i]
		if !rule.plain {
			if !rule.applies(r.Model) {
				continue
			}
			w.know(rule, r.EndUser)
		}
		if rule.provider && len(r.Candidates) > 0 {
			continue
		}
		w.ask(rule, r.Model, &r.Estimate, false, mayShare)
	}
}

// choose is the first candidate that fits, or the verdict on the one that would
// fit soonest, whose charges are w.chosen. Without candidates the provider has
// nothing to say.
func (w *work) choose(plan []*Set, candidates []Candidate, estimate *Cost, endUser string) (int, verdict, bool) {
	var best verdict
	var bestSpan span
	ready := true
	planScopes := w.scopes
	for i := range candidates {
		c := &candidates[i]
		w.served, w.scopes = c.Model, planScopes
		w.chosen = span{from: len(w.list)}
		w.askCandidate(plan, c, estimate, endUser)
		w.chosen.to = len(w.list)
		v, known := w.judge(w.chosen)
		if ready = ready && known; known && !v.refuses {
			return i, v, ready
		}
		if i == 0 || v.sooner(best) {
			best, bestSpan = v, w.chosen
		}
	}
	w.chosen = bestSpan
	return -1, best, ready
}

// askCandidate adds a candidate's part: its own limits, and of the plan's what
// counts the provider's price.
func (w *work) askCandidate(plan []*Set, c *Candidate, estimate *Cost, endUser string) {
	cost := *estimate
	cost.ProviderPico = c.ProviderPico
	for _, s := range plan {
		if s != nil && s.spends {
			w.askProvider(s, &cost, endUser, true)
		}
	}
	if c.Limits != nil {
		w.askProvider(c.Limits, &cost, endUser, false)
	}
}

func (w *work) askProvider(s *Set, c *Cost, endUser string, ofPlan bool) {
	mayShare := w.mayShare(s)
	for i := range s.rules {
		rule := &s.rules[i]
		asked := w.served
		if ofPlan {
			if !rule.provider {
				continue
			}
			asked = w.model
		}
		if !rule.plain {
			if !rule.applies(asked) {
				continue
			}
			w.know(rule, endUser)
		}
		w.ask(rule, w.served, c, true, mayShare)
	}
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

// keep charges every ledger of an admitted call and keeps the reservation.
func (w *work) keep(r *Request, candidate int) error {
	t := w.t
	if len(t.open) >= t.memory.maxOpen || !w.room(w.plan, w.chosen) {
		return out(errCrowded)
	}
	c := t.newCall()
	c.id, c.model, c.user, c.at, c.estimate, c.forget, c.once = r.ID, r.Model, w.user, w.at.micros, r.Estimate, r.Forget, r.Once
	if c.id == uuid.Nil {
		c.id = made(c.at)
	}
	ttl := DefaultTTL
	if r.TTL > 0 {
		ttl = r.TTL
	}
	c.expires, c.candidate = c.at+ttl.Microseconds(), candidate
	w.take(c, w.plan)
	if candidate >= 0 {
		c.served = r.Candidates[candidate].Model
		w.take(c, w.chosen)
	}
	t.know(c)
	t.put(&t.open, c, c.expires)
	w.id = c.id
	return nil
}

// room tells whether the tenant may have the ledgers that were made. When it has
// too many, some that say nothing are dropped first. What client tokens make, of
// which there may be any number, leaves room for others.
func (w *work) room(spans ...span) bool {
	missing, most := 0, w.t.memory.maxLedgers
	for _, s := range spans {
		for i := s.from; i < s.to; i++ {
			if c := &w.list[i]; c.made {
				missing++
				if c.rule.limit.Scope.Kind == ScopeClientToken {
					most = w.t.memory.mostNamed()
				}
			}
		}
	}
	if missing == 0 || len(w.t.index)+missing <= most {
		return true
	}
	w.t.sweep(&w.at, sweptCrowded, w.list)
	return len(w.t.index)+missing <= most
}

// take charges a span to a call. A shadow limit that would refuse is charged
// nothing.
func (w *work) take(c *call, s span) {
	for i := s.from; i < s.to; i++ {
		ch := &w.list[i]
		if ch.refuses {
			continue
		}
		if ch.made {
			ch.made = false
			w.t.enter(ch.ref, ch.rule)
			if !ch.rule.named() {
				ch.rule.hint.Store(uint32(ch.ref))
			}
		}
		c.holds = append(c.holds, hold{rule: ch.rule, id: ch.id, amount: ch.cost, ref: ch.ref, candidate: ch.candidate, others: ch.others})
		w.t.charge(&c.holds[len(c.holds)-1])
	}
}

// newCall is an empty call, perhaps one that was used before.
func (t *tenant) newCall() *call {
	n := len(t.spare)
	if n == 0 {
		return new(call)
	}
	c := t.spare[n-1]
	t.spare[n-1], t.spare = nil, t.spare[:n-1]
	return c
}

// maxSpare is how many calls a tenant keeps for use again.
const maxSpare = 1024

// forgetCall drops a call that nobody will ask about.
func (t *tenant) forgetCall(c *call) {
	delete(t.calls, c.id)
	if t.keyed[c.once.Key] == c {
		delete(t.keyed, c.once.Key)
	}
	if len(t.spare) < maxSpare {
		clear(c.holds)
		*c = call{holds: c.holds[:0]}
		t.spare = append(t.spare, c)
	}
}

// know makes a call known, by its id and its key.
func (t *tenant) know(c *call) {
	t.calls[c.id] = c
	if c.once.Key != uuid.Nil {
		t.keyed[c.once.Key] = c
	}
}

// before is the call that the same request has made already, or nil.
func (t *tenant) before(r *Request) *call {
	if r.ID != uuid.Nil && t.calls[r.ID] != nil {
		return t.calls[r.ID]
	}
	if r.Once.Key == uuid.Nil {
		return nil
	}
	if c := t.keyed[r.Once.Key]; c != nil && c.phase != cancelled {
		return c
	}
	return nil
}

// again answers a reserve that was answered before.
func (t *tenant) again(r *Request, at *instant) (Decision, error) {
	c := t.before(r)
	if r.Once.Key != uuid.Nil && c.once.Key == r.Once.Key {
		if c.once.Body != r.Once.Body {
			return Decision{}, fault.New(fault.Conflict, "reservation_exists", "This key is another reservation's.")
		}
		return t.standing(c, at), nil
	}
	if c.phase != open || c.estimate != r.Estimate || c.model != r.Model || c.moves > 0 {
		return Decision{}, fault.New(fault.Conflict, "reservation_exists", "This id is reserved already.")
	}
	return t.standing(c, at), nil
}

// standing is the decision that an open call stands on.
func (t *tenant) standing(c *call, at *instant) Decision {
	d := Decision{
		Admitted: true, Again: true, Candidate: c.candidate, At: wall(c.at), ExpiresAt: wall(c.expires),
		Reservation: c.reservation(t.id),
	}
	for i := range c.holds {
		if h := &c.holds[i]; !h.ended {
			d.States = t.tellHold(d.States, c, h, at)
		}
	}
	return d
}

// Live states the ledgers of the limits that apply to model, each with the wait
// of the smallest call. Without a model it leaves out those that have a ledger
// per model, without an end user those that have one per end user. It charges
// nothing. Errors are as for Reserve.
func (m *Memory) Live(ctx context.Context, tenant uuid.UUID, limits []Limit, model, endUser string) ([]State, error) {
	set := Compile(limits)
	if set.broken != nil {
		return nil, out(set.broken)
	}
	var none Cost
	for {
		w := m.begin(tenant, nil)
		w.model, w.figures = model, none.figures()
		for i := range set.rules {
			r := &set.rules[i]
			if r.shown(model, endUser) {
				w.know(r, endUser)
				w.ask(r, model, &none, false, true)
			}
		}
		w.plan = span{0, len(w.list)}
		if _, ready := w.judge(w.plan); ready {
			defer w.unlock()
			return w.lives(), nil
		}
		t, missing := w.t, slices.Clone(w.windows)
		w.unlock()
		if err := m.load(ctx, t, missing); err != nil {
			return nil, err
		}
	}
}

func (w *work) lives() []State {
	states := make([]State, len(w.list))
	for i := range w.list {
		c := &w.list[i]
		s := w.state(c)
		wait, ever := w.t.look(c, &w.at)
		s.NextCallAfter, s.Never, s.Requested, s.Refuses = wait, !ever, 0, false
		states[i] = s
	}
	return states
}
