package limits

import (
	"slices"
	"time"

	"github.com/google/uuid"
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

// work is one decision while it is made. Each tenant has one, which its lock
// guards.
type work struct {
	t       *tenant
	at      instant
	list    []charge // the plan's, then each candidate's
	plan    span
	chosen  span   // of the candidate that fits, or would fit soonest
	scopes  uint32 // of the sets that were asked
	pending int    // charges that nobody has weighed
	verdict verdict
	windows []unloaded
	figures figures // of the call

	model, user string // of the call; user is a hash
	served      string // of the candidate at hand
	userKnown   bool
	id          uuid.UUID // of the reservation that was made
	self        *waiter   // of a call that waits
	moves       bool      // it is admitted already, and stands in no line
	makes       bool      // some ledger was made for it
}

type span struct{ from, to int }

// begin locks the tenant and reads the clock: the one reading that the operation
// goes by.
func (m *Memory) begin(tenant uuid.UUID, plan []*Set) *work {
	t := m.home(tenant, plan)
	t.mu.Lock()
	return t.work(t.begin(m.now()))
}

// work is the tenant's, at the beginning of a decision.
func (t *tenant) work(at instant) *work {
	w := &t.scratch
	w.t, w.at = t, at
	w.user, w.userKnown, w.id, w.self, w.moves = "", false, uuid.Nil, nil, false
	w.plan, w.chosen, w.scopes, w.pending, w.verdict = span{}, span{}, 0, 0, verdict{}
	return w
}

// home is the tenant, which its sets remember.
func (m *Memory) home(u uuid.UUID, plan []*Set) *tenant {
	if len(plan) == 0 || plan[0] == nil {
		return m.tenant(u)
	}
	if t := plan[0].home.Load(); t != nil && t.id == u && t.memory == m {
		return t
	}
	t := m.tenant(u)
	plan[0].home.Store(t)
	return t
}

// done gives back what was made for this decision and not kept.
func (w *work) done() {
	for i := 0; i < len(w.list) && w.makes; i++ {
		if c := &w.list[i]; c.made {
			w.t.give(c.ref)
		}
	}
	w.makes = false
	w.list, w.windows, w.scopes, w.pending, w.verdict = w.list[:0], w.windows[:0], 0, 0, verdict{}
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

// weigh brings the ledger of a charge up to the instant and to the limit as it
// is now, and finds how long the charge would wait. ahead is what others ask for
// before it. It is false where a window has to be loaded first. The ledger is
// where its rule found it last, or else in the index.
func (w *work) weigh(c *charge, ahead sum) bool {
	t, r, now := w.t, c.rule, w.at.ms
	c.ref = ref(r.hint.Load())
	if c.ref.kind() != r.kind && !w.find(c) {
		return false
	}
	var ms int64
	switch r.kind {
	case kindBucket:
		b := t.buckets.peek(c.ref.place())
		if b == nil || b.id != c.id {
			if !w.find(c) {
				return false
			}
			b = t.buckets.at(c.ref.place())
		}
		b.touch(r.amount, r.ceiling, now, &t.rooms)
		ms = b.wait(c.cost.n, ahead.n)
	case kindMinute, kindRolling:
		if !t.is(c.ref, c.id) && !w.find(c) {
			return false
		}
		s := t.slider(c.ref)
		s.touch(r.amount, now)
		ms = s.wait(c.cost.n, ahead.n, now)
	case kindCalendar:
		l := t.calendars.peek(c.ref.place())
		if l == nil || l.id != c.id {
			if !w.find(c) {
				return false
			}
			l = t.calendars.at(c.ref.place())
		}
		if l.touch(r, w.at.wallMS); l.fits(c.cost, ahead) {
			return true
		}
		if ms = never; !c.cost.above(l.amount) {
			ms = c.until(l.end*1000 - w.at.micros)
		}
	case kindGauge:
		g := t.gauges.peek(c.ref.place())
		if g == nil || g.id != c.id {
			if !w.find(c) {
				return false
			}
			g = t.gauges.at(c.ref.place())
		}
		g.amount = r.amount
		if ms = g.wait(c.cost.n, ahead.n); ms == slotWait {
			ms = c.until(slotWait * 1000)
		}
	}
	if ms != 0 {
		c.refuses, c.never = true, ms == never
		if !c.never {
			c.wait = (ms + w.at.behind) * 1000
		}
	}
	return true
}

// until refuses a charge for a time in µs of the caller's own clock.
func (c *charge) until(micros int64) int64 {
	c.refuses, c.wait = true, micros
	return 0
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

// verdict is what some charges come to.
type verdict struct {
	refuses bool
	never   bool
	wait    int64 // µs
}

func (v *verdict) add(c *charge) {
	if !c.rule.shadow {
		v.refuses = true
		v.never = v.never || c.never
		v.wait = max(v.wait, c.wait)
	}
}

// sooner tells whether v would pass before w.
func (v verdict) sooner(w verdict) bool {
	if v.never != w.never {
		return w.never
	}
	return v.wait < w.wait
}

// judge weighs the charges of a span that nobody has weighed yet, and says what
// all of them come to. It is false where windows have to be loaded first.
func (w *work) judge(s span) (v verdict, ready bool) {
	for i := s.from; i < s.to && w.pending > 0; i++ {
		if c := &w.list[i]; c.pending {
			c.pending = false
			w.pending--
			w.put(c)
		}
	}
	v, ready = w.verdict, len(w.windows) == 0
	w.verdict = verdict{}
	return v, ready
}

// put puts a charge on the scales.
func (w *work) put(c *charge) {
	var ahead sum
	if len(w.t.waiting) > 0 && !w.moves {
		ahead = w.ahead(c.id)
	}
	if w.weigh(c, ahead) && c.refuses {
		w.verdict.add(c)
	}
}

// state tells of one charge what its ledger holds.
func (w *work) state(c *charge) State {
	s := State{Limit: c.rule.limit, Ledger: w.name(c), Requested: c.cost.up(), Refuses: c.refuses}
	w.t.fill(&s, c.ref, &w.at)
	return s
}

// violation is the state of a charge that refuses.
func (w *work) violation(c *charge) State {
	s := w.state(c)
	s.RetryAfter, s.Never = time.Duration(c.wait)*time.Microsecond, c.never
	return s
}

func (w *work) violations(s span) (list []State) {
	for i := s.from; i < s.to; i++ {
		if c := &w.list[i]; c.refuses && !c.rule.shadow {
			list = append(list, w.violation(c))
		}
	}
	return list
}

func (w *work) states(list []State, s span) []State {
	list = slices.Grow(list, s.to-s.from)
	for i := s.from; i < s.to; i++ {
		c := &w.list[i]
		if c.refuses && c.rule.shadow {
			list = append(list, w.violation(c))
			continue
		}
		list = append(list, w.state(c))
	}
	return list
}
