package limits

import (
	"encoding/json"

	"github.com/google/uuid"
)

// farCall is a reservation as Redis keeps it (record.lua).
type farCall struct {
	phase                         phase
	at, expires                   int64 // µs
	requests                      int64
	estimate                      Cost
	model, user                   string
	late, withRequest             bool
	actual                        string // figures; empty: none yet
	moves, candidate              int
	holds                         []farHold
	definitions                   []string
	reservationID, reservationTen uuid.UUID
	once                          Once
	owner                         string // who tells of its end
}

// farHold is a hold of it.
type farHold struct {
	rule                     *rule
	ledger                   string
	amount                   sum
	window                   window
	candidate, ended, others bool
	suffix, entry            string // of its ledger: of its group (empty: as the hold before), and in it
}

// record reads a reservation out of an answer.
func (r *Redis) record(from *unpacker, tenant, id uuid.UUID) farCall {
	a := unpacker{s: from.long()}
	c := farCall{reservationID: id, reservationTen: tenant, phase: phase(a.byte())}
	a.flag() // forget
	c.late, c.withRequest = a.flag(), a.flag()
	c.holds = make([]farHold, a.count())
	c.at, c.expires = a.int(), a.int()
	a.int() // when to forget it
	c.requests, c.moves, c.candidate = a.int(), int(a.int()), int(a.int())
	for i := range c.holds {
		c.holds[i].window = window{a.int(), a.int()}
		a.int() // which making of its ledger
	}
	defined := make([]int, 2*len(c.holds))
	names := make([]string, len(c.holds))
	for i := range c.holds {
		names[i] = c.holds[i].read(&a, defined[2*i:])
	}
	c.actual = a.text()
	a.text() // how the last attempt ended
	c.estimate = costOf(a.text(), c.requests)
	c.model, c.user = a.text(), a.text()
	c.owner = a.text()
	if once := a.text(); len(once) == 32 {
		c.once = Once{idOf(once[:16]), idOf(once[16:])}
	}
	c.definitions = make([]string, a.count())
	for i := range c.definitions {
		c.definitions[i] = a.long()
	}
	for i := range c.holds {
		if a.err == nil {
			a.err = r.define(&c, &c.holds[i], defined[2*i:], names[i])
		}
	}
	if from.err == nil {
		from.err = a.err
	}
	return c
}

// read reads a hold: which definition and which of its limits it is of, and a name.
func (h *farHold) read(a *unpacker, defined []int) (name string) {
	if h.suffix, h.entry = a.str(), a.str(); len(h.entry) < 2 {
		a.err = errPacked
	}
	flags := a.byte()
	h.candidate, h.ended, h.others = flags&holdCandidate != 0, flags&holdEnded != 0, flags&holdOthers != 0
	counts := a.byte()
	h.amount = sum{a.int(), a.int()}
	a.take(16) // amount and ceiling of the limit
	defined[0], defined[1] = a.count(), a.count()
	name = a.text()
	if counts == farCountsTokens {
		a.take(5 * 8)
	}
	return name
}

func (r *Redis) define(c *farCall, h *farHold, defined []int, name string) error {
	definition, place := defined[0], defined[1]
	if definition < 1 || definition > len(c.definitions) {
		return errPacked
	}
	set := r.defined(c.definitions[definition-1])
	if set == nil || place < 1 || place > len(set.rules) {
		return errPacked
	}
	h.rule = &set.rules[place-1]
	h.name(c, name)
	return nil
}

// name finds the name of the ledger: of a restored hold it is told whole.
func (h *farHold) name(c *farCall, told string) {
	switch r := h.rule; {
	case h.others:
		h.ledger = r.name + othersSuffix
	case !r.named():
		h.ledger = r.name
	case len(told) > len(r.name) && told[:len(r.name)] == r.name:
		h.ledger = told
	case h.candidate:
		h.ledger = string(r.appendName(nil, told, c.user))
	default:
		h.ledger = string(r.appendName(nil, c.model, c.user))
	}
}

// mostDefinitions is how many sets of other processes are kept compiled.
const mostDefinitions = 10_000

// defined is a set by its definitions, or nil if they cannot be read.
func (r *Redis) defined(definitions string) *Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.known[definitions]; s != nil {
		return s
	}
	var list []Limit
	raw, err := unsqueezed(definitions)
	if err != nil || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	s := Compile(list)
	if s.broken != nil {
		return nil
	}
	if len(r.known) >= mostDefinitions {
		clear(r.known)
	}
	r.known[definitions] = s
	return s
}

func (c *farCall) reservation() Reservation {
	r := Reservation{
		ID: c.reservationID, Tenant: c.reservationTen, Model: c.model, At: wall(c.at), ExpiresAt: wall(c.expires),
		Estimate: c.estimate, Holds: make([]Hold, len(c.holds)), Moves: c.moves, Once: c.once,
	}
	for i := range c.holds {
		h := &c.holds[i]
		r.Holds[i] = Hold{Limit: h.rule.limit, Ledger: h.ledger, Amount: h.amount.n, Pico: h.amount.pico, Candidate: h.candidate, Ended: h.ended}
		if h.rule.kind == kindCalendar {
			r.Holds[i].WindowStart, r.Holds[i].WindowEnd = h.window.from(), h.window.to()
		}
	}
	return r
}

// tell reads the states of the ledgers that a reservation holds, as tellHold
// states them.
func (c *farCall) tell(a *answer) (states []State) {
	for range a.count() {
		i := a.count()
		a.int()  // no wait
		a.flag() // not of others
		l := a.ledger()
		if i < 1 || i > len(c.holds) {
			a.err = errPacked
			return nil
		}
		states = append(states, c.holds[i-1].state(&l, &a.at))
	}
	return states
}

// swift reads them out of the groups of its holds, in their order.
func (c *farCall) swift(a *answer, groups []farGroup) (states []State) {
	places := map[string]int{}
	suffix := ""
	for i := range c.holds {
		h := &c.holds[i]
		if h.suffix != "" {
			suffix = h.suffix
		}
		place, seen := places[suffix]
		if !seen {
			place = len(places)
			places[suffix] = place
		}
		if h.ended || place >= len(groups) {
			continue
		}
		if l, ok := groups[place].ledger(h.field(), a); ok {
			states = append(states, h.state(&l, &a.at))
		}
	}
	return states
}

func (h *farHold) field() string { return h.entry[1 : len(h.entry)-1] }

func (h *farHold) state(l *farLedger, at *instant) State {
	s := State{Limit: h.rule.limit, Ledger: h.ledger}
	s.Limit.Amount = l.amount
	switch l.kind {
	case kindBucket:
		if l.ceiling != l.amount || s.Limit.Burst != 0 {
			s.Limit.Burst = l.ceiling
		}
		s.Limit.Policy = PolicyBucket
	case kindMinute:
		s.Limit.Burst, s.Limit.Policy = 0, PolicySliding
	case kindCalendar:
		if h.rule.zone != nil && at.wallMS >= l.window.end {
			next := windowAt(&h.rule.limit, at.wallMS, h.rule.zone)
			if next.start != l.window.start {
				l.taken, l.held = 0, 0
			}
			l.window = next
		}
	}
	s.read(l, at)
	return s
}
