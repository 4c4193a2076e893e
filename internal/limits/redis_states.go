package limits

import "time"

// farState is the state of a charge's ledger, and what was charged.
type farState struct {
	State
	charge *farCharge
}

// told reads the states of a span, as charges.lua tells of them.
func (q *farAsk) told(a *answer, s span, served string) []farState {
	if a.count() != s.to-s.from {
		a.err = errPacked
		return nil
	}
	list := make([]farState, s.to-s.from)
	for i := range list {
		c := &q.list[s.from+i]
		c.wait = a.int()
		c.others = a.flag()
		list[i] = q.state(a, c, served, a.ledger())
	}
	return list
}

func (q *farAsk) state(a *answer, c *farCharge, served string, l farLedger) farState {
	st := State{Limit: c.rule.limit, Requested: c.cost.up(), Refuses: c.wait != 0}
	if st.Ledger = c.rule.name + othersSuffix; !c.others {
		st.Ledger = c.rule.name + q.within(c, served)
	}
	st.read(&l, &a.at)
	q.r.away.sees(c, st.Remaining, &a.at)
	return farState{st, c}
}

// usually is how many charges the usual call has: with the first candidate.
func (q *farAsk) usually() int {
	if len(q.spans) > 0 {
		return q.spans[0].to
	}
	return q.plan
}

// swift reads the states of the plan and of the first candidate out of the groups
// that swift_reserve.lua tells of; no waits: every charge fits.
func (q *farAsk) swift(a *answer, waits []int64) (plan, provider []farState) {
	groups := a.groups()
	list := make([]farState, q.usually())
	for i := range list {
		c, served := &q.list[i], ""
		if c.wait, c.others = 0, false; waits != nil {
			c.wait = waits[i]
		}
		if i >= q.plan {
			served = q.names[0]
		}
		list[i] = q.state(a, c, served, find(groups, c, a))
	}
	return list[:q.plan:q.plan], list[q.plan:]
}

// farGroup is a group's ledgers, packed (value.lua).
type farGroup []farPacked

type farPacked struct {
	field   string
	kind    kind
	numbers string
}

// groupNumbers is how many numbers a ledger has in a group.
const groupNumbers = 11

// groups reads those that are left in an answer, in the order of their keys.
func (a *answer) groups() (list []farGroup) {
	for a.s != "" && a.err == nil {
		g := make(farGroup, a.count())
		a.count() // the directory's length
		a.take(16)
		follow := 0
		for i := range g {
			g[i].numbers = a.take(8 * groupNumbers)
			u := unpacker{s: g[i].numbers}
			u.take(8 * (groupNumbers - 1))
			follow += int(u.int())
		}
		for i := range g {
			g[i].field, g[i].kind = a.str(), kind(a.byte())
			a.count() // its place
		}
		a.take(8 * follow)
		list = append(list, g)
	}
	return list
}

// ledger is one of a group, brought up to date.
func (g farGroup) ledger(field string, a *answer) (farLedger, bool) {
	for _, l := range g {
		if l.field == field {
			u := unpacker{s: l.numbers}
			return u.numbers(l.kind, groupNumbers, &a.at), true
		}
	}
	return farLedger{}, false
}

// find is the ledger of a charge, brought up to date: a new one where there is none.
func find(groups []farGroup, c *farCharge, a *answer) farLedger {
	if i := c.group - 2; i < len(groups) {
		if l, ok := groups[i].ledger(c.field, a); ok {
			return l
		}
	}
	return farLedger{kind: c.rule.kind, amount: c.rule.limit.Amount, ceiling: c.rule.ceiling, window: c.window}
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
