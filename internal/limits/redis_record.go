package limits

import (
	"encoding/json"

	"github.com/google/uuid"
)

// farCall is a reservation as Redis keeps it (ledgers.lua).
type farCall struct {
	phase                         phase
	at, expires                   int64 // µs
	requests                      int64
	estimate                      Cost
	model, served, user           string
	late, withRequest             bool
	actual                        string // figures; empty: none yet
	moves, candidate              int
	holds                         []farHold
	definitions                   []string
	reservationID, reservationTen uuid.UUID
	once                          Once
}

// farHold is a hold of it.
type farHold struct {
	rule                     *rule
	ledger                   string
	amount                   sum
	window                   window
	candidate, ended, others bool
}

// record reads a reservation.
func (r *Redis) record(a *unpacker, tenant, id uuid.UUID) farCall {
	a.array()
	c := farCall{phase: phase(a.int()), at: a.int(), expires: a.int(), reservationID: id, reservationTen: tenant}
	estimate := a.str()
	c.requests = a.int()
	c.estimate = costOf(estimate, c.requests)
	c.model, c.served, c.user = a.str(), a.str(), a.str()
	a.int() // forget
	c.late, c.actual, c.withRequest = a.flag(), a.str(), a.flag()
	c.moves = int(a.int())
	a.str() // how the last attempt ended
	c.candidate = int(a.int())
	c.definitions = make([]string, a.array())
	for i := range c.definitions {
		c.definitions[i] = a.str()
	}
	c.holds = make([]farHold, a.array())
	for i := range c.holds {
		r.hold(a, &c, &c.holds[i])
	}
	a.int() // when to forget it
	a.str() // who tells of its end
	if once := a.str(); len(once) == 32 {
		c.once = Once{idOf(once[:16]), idOf(once[16:])}
	}
	return c
}

func (r *Redis) hold(a *unpacker, c *farCall, h *farHold) {
	a.array()
	a.str() // group
	a.str() // field
	a.int() // kind
	h.amount = sum{a.int(), a.int()}
	h.window = window{a.int(), a.int()}
	a.int() // gen
	flags := a.int()
	h.candidate, h.ended, h.others = flags&1 != 0, flags&2 != 0, flags&4 != 0
	a.skip() // counts
	definition, place := int(a.int()), int(a.int())
	a.int() // amount
	a.int() // ceiling
	name := a.str()
	if definition < 1 || definition > len(c.definitions) {
		a.err = errPacked
		return
	}
	set := r.defined(c.definitions[definition-1])
	if set == nil || place < 1 || place > len(set.rules) {
		a.err = errPacked
		return
	}
	h.rule = &set.rules[place-1]
	h.name(c, name)
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
	if err := json.Unmarshal([]byte(definitions), &list); err != nil {
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
	n := a.array()
	for i := range n {
		v := a.list()
		if a.err != nil || i >= len(c.holds) || len(v) < 4 {
			continue
		}
		h := &c.holds[i]
		s := State{Limit: h.rule.limit, Ledger: h.ledger}
		for len(v) < 7 {
			v = append(v, 0)
		}
		switch kind(v[1]) {
		case kindBucket:
			if s.Limit.Amount = v[6]; v[4] != v[6] || s.Limit.Burst != 0 {
				s.Limit.Burst = v[4]
			}
			s.Limit.Policy = PolicyBucket
		case kindMinute:
			s.Limit.Amount, s.Limit.Burst, s.Limit.Policy = v[4], 0, PolicySliding
		case kindRolling:
			s.Limit.Amount = v[4]
		case kindCalendar:
			s.Limit.Amount = v[4]
			if h.rule.zone != nil && a.at.wallMS >= v[6] {
				next := windowAt(&h.rule.limit, a.at.wallMS, h.rule.zone)
				if next.start != v[5] {
					v[2], v[3] = 0, 0
				}
				v[5], v[6] = next.start, next.end
			}
		case kindGauge:
			s.Limit.Amount = v[3]
		}
		s.read(v, &a.at)
		states = append(states, s)
	}
	return states
}
