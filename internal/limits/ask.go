package limits

import (
	"slices"
)

// charge is what one call asks of one ledger.
type charge struct {
	rule      *rule
	id        ident
	cost      sum
	ref       ref
	candidate bool
	others    bool  // shared by those beyond the bound on names
	made      bool  // for this call, in no index
	refuses   bool  // it does not fit now
	never     bool  // it can never fit
	pending   bool  // nobody has weighed it
	wait      int64 // until it fits, in µs
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

// ask adds what a call of cost c asks by one rule. Where two limits of one call
// share a ledger, the smaller stands for both, and one that enforces for one
// that does not. A candidate adds nothing to a ledger of the plan.
func (w *work) ask(r *rule, model string, c *Cost, candidate, mayShare bool) {
	id := r.id
	if r.named() {
		var buf [512]byte
		id = identify(r.appendName(buf[:0], model, w.user))
	}
	if mayShare && w.shared(r, id, c, candidate) {
		return
	}
	if len(w.list) == cap(w.list) {
		w.list = slices.Grow(w.list, 16)
	}
	w.list = w.list[:len(w.list)+1]
	a := &w.list[len(w.list)-1]
	*a = charge{rule: r, id: id, candidate: candidate}
	if r.flat {
		a.cost.n = w.figures[r.counts]
	} else {
		a.cost = r.cost(c)
	}
	if mayShare {
		a.pending = true
		w.pending++
	} else {
		w.put(a)
	}
}

// shared tells whether the ledger is charged by another limit of the call.
func (w *work) shared(r *rule, id ident, c *Cost, candidate bool) bool {
	for i := range w.list {
		o := &w.list[i]
		if o.id != id || candidate && i >= w.plan.to && i < w.chosen.from {
			continue
		}
		if o.candidate == candidate && tighter(r, o.rule) {
			w.replace(o, r, c)
		}
		return true
	}
	return false
}

// replace lets a stricter rule stand for a charge, which is weighed once more.
func (w *work) replace(o *charge, r *rule, c *Cost) {
	o.rule, o.cost, o.refuses, o.never, o.wait = r, r.cost(c), false, false, 0
	if o.made {
		w.t.give(o.ref)
		o.made = false
	}
	if !o.pending {
		o.pending = true
		w.pending++
	}
}

// mayShare tells whether a rule of the set may share a ledger with another one
// that was asked, and notes that the set is asked.
func (w *work) mayShare(s *Set) bool {
	may := s.doubled || w.scopes&s.scopes != 0
	w.scopes |= s.scopes
	return may
}

func tighter(r, than *rule) bool {
	if r.shadow != than.shadow {
		return than.shadow
	}
	return r.amount < than.amount
}

// know works out the hash of the end user, if a rule asks for it.
func (w *work) know(r *rule, endUser string) {
	if r.user && !w.userKnown {
		w.user, w.userKnown = hashed(endUser), true
	}
}

// locate finds the ledger of a charge, which its rule does not know.
func (t *tenant) locate(c *charge) {
	r := c.rule
	if c.ref = t.index[c.id]; c.ref != 0 {
		if !r.named() {
			r.hint.Store(uint32(c.ref))
		}
		return
	}
	if r.named() && (t.families.size(r.id) >= t.memory.maxNames || len(t.index) >= t.memory.mostNamed()) {
		c.id, c.others = r.others, true
		c.ref = t.index[c.id]
	}
}

// find finds the ledger of a charge or makes it. It is false where a window has
// to be loaded first.
func (w *work) find(c *charge) bool {
	if w.t.locate(c); c.ref == 0 {
		return w.make(c)
	}
	if c.ref.kind() != c.rule.kind {
		w.t.convert(c, &w.at)
	}
	return true
}

// make is a ledger for a charge that has none. It is kept only if the call is
// admitted.
func (w *work) make(c *charge) bool {
	if c.rule.kind == kindCalendar && w.t.memory.books != nil {
		if win := windowAt(&c.rule.limit, w.at.wallMS, c.rule.zone); w.t.memory.loadable(win) {
			name := w.name(c)
			w.windows = append(w.windows, unloaded{WindowKey{name, win.from()}, win, c.rule, c.id})
			return false
		}
	}
	c.ref, c.made, w.makes = w.t.fresh(c.rule, c.id, &w.at), true, true
	return true
}

func (w *work) name(c *charge) string {
	if c.others {
		return c.rule.name + othersSuffix
	}
	if !c.rule.named() {
		return c.rule.name
	}
	model := w.model
	if c.candidate {
		model = w.served
	}
	return string(c.rule.appendName(nil, model, w.user))
}
