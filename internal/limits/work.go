package limits

import (
	"github.com/google/uuid"
)

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
