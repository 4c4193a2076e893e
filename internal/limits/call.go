package limits

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// phase is where a reservation stands. It moves forward only.
type phase int8

const (
	open      phase = iota
	lapsed          // past its expiry: slots freed, not yet handed out as expired
	expired         // handed out by Expire; one late outcome still corrects it
	settled         // the outcome stands
	cancelled       // the outcome stands: it never left for the provider
)

// call is a reservation in the process. Times are in µs of the wall clock.
type call struct {
	id       uuid.UUID
	model    string
	served   string // the candidate's model
	user     string // hash of the end user, where a limit asks for it
	at       int64
	expires  int64
	estimate Cost
	holds    []hold
	forget   bool
	once     Once

	phase       phase
	late        bool
	withRequest bool // the request was given back
	actual      Cost

	moves     int // attempts that have ended
	moved     Settlement
	candidate int // of the last decision; -1: none

	due   int64 // when its queue has to look at it
	index int   // in its queue
}

// hold is what a call charged to one ledger.
type hold struct {
	rule   *rule // as it was then: its weights hold until the settlement
	id     ident
	amount sum
	mark   int64 // bucket: its turn then; sliding: the sub-bucket; calendar: the window's start
	end    int64 // calendar: the window's end
	ref    ref
	gen    uint32 // of the ledger then; 0: no ledger of this process was charged

	open      bool // the ledger counts it as held
	candidate bool // the provider's part
	ended     bool // of an attempt that has ended: the amount is what it really was
	others    bool // shared by those beyond the bound on names
}

func (h *hold) name(c *call) string {
	if h.others {
		return h.rule.name + othersSuffix
	}
	if !h.rule.named() {
		return h.rule.name
	}
	model := c.model
	if h.candidate {
		model = c.served
	}
	return string(h.rule.appendName(nil, model, c.user))
}

func wall(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func (c *call) reservation(tenant uuid.UUID) Reservation {
	r := Reservation{
		ID: c.id, Tenant: tenant, Model: c.model, At: wall(c.at), ExpiresAt: wall(c.expires), Estimate: c.estimate,
		Holds: make([]Hold, len(c.holds)), Moves: c.moves, Once: c.once,
	}
	for i := range c.holds {
		h := &c.holds[i]
		r.Holds[i] = Hold{Limit: h.rule.limit, Ledger: h.name(c), Amount: h.amount.n, Pico: h.amount.pico, Candidate: h.candidate, Ended: h.ended}
		if h.rule.kind == kindCalendar {
			w := window{h.mark, h.end}
			r.Holds[i].WindowStart, r.Holds[i].WindowEnd = w.from(), w.to()
		}
	}
	return r
}

// made is a UUIDv7 of an instant. The generator is the runtime's ChaCha8.
func made(micros int64) (u uuid.UUID) {
	ms, a, b := micros/1000, rand.Uint64(), rand.Uint64()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6], u[7] = 0x70|byte(a)&0x0f, byte(a>>8)
	for i := range 8 {
		u[8+i] = byte(b >> (8 * i))
	}
	u[8] = u[8]&0x3f | 0x80
	return u
}

// queue is a heap of calls by due.
type queue []*call

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is heap's.
func (q *queue) Push(x any) {
	c := x.(*call)
	c.index = len(*q)
	*q = append(*q, c)
}

// Pop is heap's.
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return c
}
