package limits

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// What a decision is for.
const (
	farReserve = iota
	farDryRun
	farLook
)

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
				q.charges(r, &req.Estimate, req.Model, req.EndUser, -1)
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
					q.charges(r, &cost, c.Model, endUser, from)
				}
			}
		}
		if c.Limits != nil {
			for j := range c.Limits.rules {
				if r := &c.Limits.rules[j]; r.applies(c.Model) {
					q.charges(r, &cost, c.Model, endUser, from)
				}
			}
		}
		q.spans = append(q.spans, span{from, len(q.list)})
		q.names = append(q.names, c.Model)
	}
}

// charges adds what a call of cost c asks by one rule: of the plan, or of the
// candidate whose charges begin at from. Limits that share a ledger are one
// charge, as for Memory.
func (q *farAsk) charges(r *rule, c *Cost, model, endUser string, from int) {
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

// write packs the charges of a span.
func (q *farAsk) write(p *packer, s span, served string, wallMS int64) {
	p.array(s.to - s.from)
	for i := s.from; i < s.to; i++ {
		q.charge(p, &q.list[i], served, wallMS)
	}
}

func (q *farAsk) charge(p *packer, c *farCharge, served string, wallMS int64) {
	r := c.rule
	f := &r.set.told().rules[r.place]
	suffix, members := f.base, 11
	if r.kind == kindCalendar {
		members = 13
	}
	if r.named() {
		suffix, members = f.of(q.within(c, served)), 14
	}
	p.array(members)
	p.int(int64(2 + q.key(suffix)))
	p.str(f.field)
	p.ints(int64(r.kind), r.limit.Amount, r.ceiling, c.cost.n, c.cost.pico)
	var flags int64
	if r.limit.Mode == ModeShadow {
		flags = 1
	}
	if q.r.killed != nil && older(r.limit.Scope.ID, q.r.killed.Before) {
		flags += 8
	}
	p.int(flags)
	p.b = append(p.b, f.counts...)
	p.ints(int64(1+indexOf(&q.sets, r.set)), int64(1+r.place))
	if members < 13 {
		return
	}
	var win window
	if r.kind == kindCalendar {
		win = f.window(r, wallMS)
	}
	p.ints(win.start, win.end)
	if members == 14 {
		p.array(4)
		p.str("N" + f.base + f.field)
		p.str(f.base)
		p.str(f.othersField())
		p.int(int64(q.r.maxNames))
	}
}

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

func (q *farAsk) definitions(p *packer) {
	p.array(len(q.sets))
	for _, s := range q.sets {
		p.str(s.told().definitions)
	}
}

func (q *farAsk) models(p *packer) {
	p.array(len(q.names))
	for _, n := range q.names {
		p.str(n)
	}
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

// Reserve is Memory's, on Redis.
func (r *Redis) Reserve(ctx context.Context, req Request) (Decision, error) {
	if err := req.check(); err != nil {
		return Decision{}, err
	}
	q := r.ask(r.tenant(req.Tenant), req.Model)
	q.resolve(&req)
	d, err := q.reserve(ctx, &req)
	if err == nil && !d.Admitted && req.MaxWait > 0 {
		d, err = q.wait(ctx, &req, d)
	}
	if isAway(err) {
		return r.reserveAway(ctx, &req, err)
	}
	return d, err
}

// reserve is one decision.
func (q *farAsk) reserve(ctx context.Context, req *Request) (Decision, error) {
	what := farReserve
	if req.DryRun {
		what = farDryRun
	}
	q.lineUp()
	a, err := q.r.run(ctx, req.Tenant, q.t, func(wallMS int64) asked { return q.decision(what, req, wallMS) })
	if err != nil {
		return Decision{}, err
	}
	switch a.status {
	case farDone:
		return q.decided(&a, req)
	case farAgain:
		return q.r.standing(&a, req.Tenant)
	}
	return Decision{}, refusal(a.status)
}

// decision packs a request for decide.lua.
func (q *farAsk) decision(what int, req *Request, wallMS int64) asked {
	p := packer{make([]byte, 0, 512)}
	p.int(int64(what))
	q.write(&p, span{0, q.plan}, "", wallMS)
	p.array(len(q.spans))
	for i, s := range q.spans {
		q.write(&p, s, q.names[i], wallMS)
	}
	members := 4
	if what == farReserve {
		q.keep(&p, req)
	} else {
		p.int(0)
	}
	if len(q.ahead) > 0 {
		members++
		q.aheads(&p)
	}
	return asked{q.t, q.r.decide, q.keys, p, members, q.ledger}
}

func (q *farAsk) keep(p *packer, req *Request) {
	p.array(13)
	if req.ID == uuid.Nil {
		p.str("")
	} else {
		p.str(string(req.ID[:]))
	}
	p.str(madeTail())
	ttl := DefaultTTL
	if req.TTL > 0 {
		ttl = req.TTL
	}
	p.int(ttl.Microseconds())
	p.str(packFigures(&req.Estimate))
	p.int(req.Estimate.Requests)
	p.str(req.Model)
	p.str(q.user)
	p.flag(req.Forget)
	q.definitions(p)
	p.int(int64(q.r.maxOpen))
	q.models(p)
	p.str(q.r.owner)
	p.str(req.Once.packed())
}

// madeTail is a UUIDv7 but for its first six bytes, which are its instant.
func madeTail() string {
	var u [10]byte
	a, b := rand.Uint64(), rand.Uint64()
	u[0], u[1] = 0x70|byte(a)&0x0f, byte(a>>8)
	for i := range 8 {
		u[2+i] = byte(b >> (8 * i))
	}
	u[2] = u[2]&0x3f | 0x80
	return string(u[:])
}

// decided reads the verdict of decide.lua.
func (q *farAsk) decided(a *answer, req *Request) (Decision, error) {
	q.refusing = q.refusing[:0]
	admitted, chosen := a.flag(), int(a.int())
	plan := verdict{refuses: a.flag(), never: !a.flag(), wait: a.int()}
	provider := verdict{refuses: a.flag(), never: !a.flag(), wait: a.int()}
	id, expires := a.str(), a.int()
	d := Decision{Admitted: admitted, Candidate: -1, At: wall(a.at.micros)}
	planStates := q.told(a, span{0, q.plan}, "")
	var chosenStates []farState
	if chosen > 0 {
		chosenStates = q.told(a, q.spans[chosen-1], q.names[chosen-1])
	} else {
		a.skip()
	}
	q.r.away.born(q.t, a.int())
	if a.err != nil {
		return d, out(a.err)
	}
	d.States = statesOf(planStates)
	if !admitted {
		d.refuse(plan, provider)
		q.refuses(planStates, chosenStates)
		if d.ProviderFull {
			d.Violations = violationsOf(chosenStates)
		} else {
			d.Violations = violationsOf(planStates)
		}
		return d, nil
	}
	d.Candidate = chosen - 1
	d.States = append(d.States, statesOf(chosenStates)...)
	if id != "" {
		d.ExpiresAt = wall(expires)
		d.Reservation = Reservation{
			ID: idOf(id), Tenant: req.Tenant, Model: req.Model, At: d.At, ExpiresAt: d.ExpiresAt, Estimate: req.Estimate, Once: req.Once,
			Holds: append(holdsOf(make([]Hold, 0, len(d.States)), planStates), holdsOf(nil, chosenStates)...),
		}
		q.r.owes(q.t, expires)
		q.r.away.reserved(&d.Reservation, req.Forget)
	}
	return d, nil
}

// farState is the state of a charge's ledger, and what was charged.
type farState struct {
	State
	charge *farCharge
}

func (q *farAsk) told(a *answer, s span, served string) []farState {
	n := a.array()
	if n != s.to-s.from {
		a.err = errPacked
		return nil
	}
	list := make([]farState, n)
	for i := range list {
		c := &q.list[s.from+i]
		values := a.list()
		if len(values) < 4 {
			a.err = errPacked
			return nil
		}
		c.wait = values[0]
		if values[1] > 10 {
			c.others, values[1] = true, values[1]-10
		}
		st := State{Limit: c.rule.limit, Requested: c.cost.up(), Refuses: c.wait != 0}
		if st.Ledger = c.rule.name + othersSuffix; !c.others {
			st.Ledger = c.rule.name + q.within(c, served)
		}
		st.read(values, &a.at)
		list[i] = farState{st, c}
		q.r.away.sees(c, st.Remaining, &a.at)
	}
	return list
}

// read states a ledger as ledgers.lua tells of it, as fill does.
func (s *State) read(v []int64, at *instant) {
	for len(v) < 7 {
		v = append(v, 0)
	}
	switch kind(v[1]) {
	case kindBucket:
		s.add(v[2], v[3], v[4])
		if v[5] < 0 {
			v[5] = never
		}
		s.full(at, v[5])
	case kindMinute, kindRolling:
		s.add(v[2], v[3], v[4])
		s.full(at, v[5])
	case kindCalendar:
		s.add(v[2], v[3], v[4])
		w := window{v[5], v[6]}
		s.WindowStart, s.ResetAt = w.from(), w.to()
		s.Full = max(at.until(w.end), 0)
	case kindGauge:
		s.Held, s.Remaining = v[2], max(v[3]-v[2], 0)
	}
}

// refused adds to the state of a charge that refuses how long it has to wait.
func (s farState) refused() State {
	if s.Never = s.charge.wait < 0; !s.Never {
		s.RetryAfter = time.Duration(s.charge.wait) * time.Microsecond
	}
	return s.State
}

func statesOf(list []farState) []State {
	states := make([]State, len(list))
	for i, s := range list {
		if states[i] = s.State; s.Refuses && s.Limit.Mode == ModeShadow {
			states[i] = s.refused()
		}
	}
	return states
}

func violationsOf(list []farState) (states []State) {
	for _, s := range list {
		if s.Refuses && s.Limit.Mode == ModeEnforce {
			states = append(states, s.refused())
		}
	}
	return states
}

func holdsOf(holds []Hold, list []farState) []Hold {
	for _, s := range list {
		if s.Refuses {
			continue
		}
		h := Hold{Limit: s.Limit, Ledger: s.Ledger, Amount: s.charge.cost.n, Pico: s.charge.cost.pico, Candidate: s.charge.candidate}
		if s.charge.rule.kind == kindCalendar {
			h.WindowStart, h.WindowEnd = s.WindowStart, s.ResetAt
		}
		holds = append(holds, h)
	}
	return holds
}

// Live is Memory's, on Redis.
func (r *Redis) Live(ctx context.Context, tenant uuid.UUID, limits []Limit, model, endUser string) ([]State, error) {
	set := Compile(limits)
	if set.broken != nil {
		return nil, out(set.broken)
	}
	t := r.tenant(tenant)
	q := r.ask(t, model)
	for i := range set.rules {
		rule := &set.rules[i]
		if rule.shown(model, endUser) {
			q.charges(rule, &Cost{}, model, endUser, -1)
		}
	}
	q.plan = len(q.list)
	for i := range q.list {
		q.list[i].cost = sum{n: 1} // the smallest call
	}
	a, err := r.run(ctx, tenant, t, func(wallMS int64) asked { return q.decision(farLook, nil, wallMS) })
	if err != nil {
		return nil, err
	}
	if a.status != farDone {
		return nil, refusal(a.status)
	}
	for range 8 {
		a.int()
	}
	a.str()
	a.int()
	list := q.told(&a, span{0, q.plan}, "")
	if a.err != nil {
		return nil, out(a.err)
	}
	states := make([]State, len(list))
	for i, s := range list {
		s.Requested, s.Refuses = 0, false
		s.Never = s.charge.wait < 0
		if !s.Never {
			s.NextCallAfter = time.Duration(s.charge.wait) * time.Microsecond
		}
		states[i] = s.State
	}
	return states, nil
}

// refuse makes the decision a refusal.
func (d *Decision) refuse(plan, provider verdict) {
	d.ProviderFull = !plan.refuses || provider.never && !plan.never
	if d.TooLarge = plan.never || provider.never; !d.TooLarge {
		d.RetryAfter = time.Duration(max(plan.wait, provider.wait)) * time.Microsecond
	}
}
