package limits

import (
	"container/heap"
	"math"
	"time"

	"github.com/google/uuid"
)

// phase is where a reservation stands. It moves forward only.
type phase int

const (
	open      phase = iota
	lapsed          // past its expiry: slots freed, not yet handed out as expired
	expired         // handed out by Expire; one late outcome still corrects it
	settled         // the outcome stands
	cancelled       // the outcome stands: it never left for the provider
)

// call is a reservation in the process.
type call struct {
	id       uuid.UUID
	model    string
	at       time.Time
	expires  time.Time
	estimate Cost
	holds    []hold
	forget   bool

	phase       phase
	late        bool
	actual      Cost
	withRequest bool // the request was given back

	due   time.Time // when its queue has to look at it
	index int       // in its queue
}

// hold is what a call charged to one ledger.
type hold struct {
	limit     *Limit // as it was then: its weights hold until the settlement
	key       string
	amount    int64
	candidate bool
	open      bool   // the ledger counts it as held
	since     int64  // bucket: its turn then
	window    window // calendar
}

// unseen is the since of a call that the bucket in the process has never seen:
// it gets nothing back from it.
const unseen = math.MinInt64

func (c *call) reservation(tenant uuid.UUID) Reservation {
	r := Reservation{
		ID: c.id, Tenant: tenant, Model: c.model, At: c.at, ExpiresAt: c.expires, Estimate: c.estimate,
		Holds: make([]Hold, len(c.holds)),
	}
	for i, h := range c.holds {
		r.Holds[i] = Hold{Limit: *h.limit, Ledger: h.key, Amount: h.amount, Candidate: h.candidate}
		if h.limit.Policy == PolicyCalendar {
			r.Holds[i].WindowStart, r.Holds[i].WindowEnd = h.window.from(), h.window.to()
		}
	}
	return r
}

// queue is a heap of calls by due.
type queue []*call

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
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

func (q *queue) put(c *call, due time.Time) {
	c.due = due
	heap.Push(q, c)
}
