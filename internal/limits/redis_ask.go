package limits

import "slices"

// farAsk is a request on its way to the script.
type farAsk struct {
	r           *Redis
	t           *farTenant
	model, user string // of the call; user is a hash
	list        []farCharge
	plan        int    // how many of the list are the plan's
	spans       []span // of the candidates
	names       []string
	keys        []string
	sets        []*Set

	self     *waiter // once it waits
	ahead    []sum   // what those before it ask of the ledger of each charge; none: nobody waits
	refusing []*farCharge
}

// farCharge is what a call asks of one ledger.
type farCharge struct {
	rule      *rule
	id        ident
	cost      sum
	candidate bool
	others    bool  // shared by those beyond the bound on names
	wait      int64 // until it fits, in µs; 0: it does; below 0: it never will

	group  int    // the place of its ledger's group among the keys, from 1
	field  string // in it
	window window
}

func (r *Redis) ask(t *farTenant, model string) *farAsk {
	return &farAsk{r: r, t: t, model: model, keys: []string{t.key}}
}

// resolve lists what a request asks of each ledger.
func (q *farAsk) resolve(req *Request) {
	for _, s := range req.Plan {
		if s == nil {
			continue
		}
		for i := range s.rules {
			if r := &s.rules[i]; (!r.provider || len(req.Candidates) == 0) && r.applies(req.Model) {
				q.asks(r, &req.Estimate, req.Model, req.EndUser, -1)
			}
		}
	}
	q.plan = len(q.list)
	q.candidates(req.Plan, req.Candidates, req.Estimate, req.EndUser)
}

// candidates lists what each candidate is asked: its own limits, and of the
// plan's what counts the provider's price.
func (q *farAsk) candidates(plan []*Set, list []Candidate, cost Cost, endUser string) {
	for i := range list {
		c := &list[i]
		cost.ProviderPico = c.ProviderPico
		from := len(q.list)
		for _, s := range plan {
			if s == nil || !s.spends {
				continue
			}
			for j := range s.rules {
				if r := &s.rules[j]; r.provider && r.applies(q.model) {
					q.asks(r, &cost, c.Model, endUser, from)
				}
			}
		}
		if c.Limits != nil {
			for j := range c.Limits.rules {
				if r := &c.Limits.rules[j]; r.applies(c.Model) {
					q.asks(r, &cost, c.Model, endUser, from)
				}
			}
		}
		q.spans = append(q.spans, span{from, len(q.list)})
		q.names = append(q.names, c.Model)
	}
}

// asks adds what a call of cost c asks by one rule: of the plan, or of the
// candidate whose charges begin at from. Limits that share a ledger are one
// charge, as for Memory.
func (q *farAsk) asks(r *rule, c *Cost, model, endUser string, from int) {
	candidate, id := from >= 0, r.id
	if r.user && q.user == "" {
		q.user = hashed(endUser)
	}
	if r.named() {
		id = identify(r.appendName(nil, model, q.user))
	}
	for i := range q.list {
		o := &q.list[i]
		if o.id != id || candidate && i >= q.plan && i < from {
			continue
		}
		if o.candidate == candidate && tighter(r, o.rule) {
			o.rule, o.cost = r, r.cost(c)
		}
		return
	}
	q.list = append(q.list, farCharge{rule: r, id: id, cost: r.cost(c), candidate: candidate})
}

// within is what follows the limit's own name in that of the ledger of a charge.
func (q *farAsk) within(c *farCharge, served string) string {
	if !c.rule.named() {
		return ""
	}
	model := q.model
	if c.candidate {
		model = served
	}
	return string(c.rule.appendName(nil, model, q.user)[len(c.rule.name):])
}

// farCharges are charges being packed for the scripts (swift_reserve.lua), and
// what their reservation keeps of them: of the plan, and of each candidate.
type farCharges struct {
	numbers, entries, flags, names packer
	plan                           packer
	candidates                     []packer
}

func (q *farAsk) charges(wallMS int64) *farCharges {
	w := &farCharges{candidates: make([]packer, len(q.spans))}
	suffix := ""
	for i := range q.plan {
		suffix = q.charge(w, &w.plan, &q.list[i], "", suffix, wallMS)
	}
	for i, s := range q.spans {
		suffix = ""
		for j := s.from; j < s.to; j++ {
			suffix = q.charge(w, &w.candidates[i], &q.list[j], q.names[i], suffix, wallMS)
		}
	}
	return w
}

// pack puts them together.
func (w *farCharges) pack(p *packer, q *farAsk) {
	p.count(q.plan)
	p.count(len(q.list))
	p.count(len(w.entries.b))
	p.count(len(q.spans))
	for _, s := range q.spans {
		p.count(s.to - s.from)
	}
	p.b = slices.Concat(p.b, w.numbers.b, w.entries.b, w.flags.b, w.names.b)
}

// charge packs a charge, whose predecessor's group had this suffix, and tells that
// of its own.
func (q *farAsk) charge(w *farCharges, hold *packer, c *farCharge, served, before string, wallMS int64) string {
	r := c.rule
	f := &r.set.told().rules[r.place]
	k := keptHold{rule: r, suffix: f.base, field: f.field, cost: c.cost, definition: 1 + indexOf(&q.sets, r.set)}
	flags := 0
	if r.limit.Mode == ModeShadow {
		flags = chargeShadow
	}
	if q.r.killed != nil && older(r.limit.Scope.ID, q.r.killed.Before) {
		flags |= chargeOld
		k.flags |= holdOld
	}
	if r.named() {
		flags |= chargeNamed
		k.suffix = f.of(q.within(c, served))
		w.names.str("N" + f.base + f.field)
		w.names.str(f.base)
		w.names.str(f.othersField())
		w.names.ints(int64(q.r.maxNames))
	}
	if c.candidate {
		k.name = served
		k.flags |= holdCandidate
	}
	c.window = window{}
	if r.kind == kindCalendar {
		c.window = f.window(r, wallMS)
	}
	c.group, c.field = 2+q.key(k.suffix), f.field
	w.numbers.ints(int64(c.group), int64(r.kind), r.limit.Amount, r.ceiling, c.cost.n, c.cost.pico)
	w.entries.entry(f.field, r.kind)
	w.flags.byte(flags)
	w.flags.ints(c.window.start, c.window.end)
	k.pack(hold, before)
	return k.suffix
}

// The flags of a charge.
const (
	chargeShadow = 1
	chargeOld    = 8
	chargeNamed  = 16
)

// key is the place of a group among the keys, after the head.
func (q *farAsk) key(suffix string) int {
	for i, k := range q.keys[1:] {
		if k[len(q.keys[0]):] == suffix {
			return i
		}
	}
	q.keys = append(q.keys, q.keys[0]+suffix)
	return len(q.keys) - 2
}

// ledger is the name of a ledger that a charge asks for.
func (q *farAsk) ledger(suffix, field string) string {
	for i := range q.list {
		c := &q.list[i]
		f, served := &c.rule.set.told().rules[c.rule.place], ""
		for j, s := range q.spans {
			if i >= s.from && i < s.to {
				served = q.names[j]
			}
		}
		name := q.within(c, served)
		if f.base == suffix && c.rule.named() && f.othersField() == field {
			return c.rule.name + othersSuffix
		}
		if f.field == field && (name == "" && f.base == suffix || name != "" && f.of(name) == suffix) {
			return c.rule.name + name
		}
	}
	return ""
}
