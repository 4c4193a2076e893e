package limits

import (
	"github.com/google/uuid"

	"weir/internal/fault"
)

// keep charges every ledger of an admitted call and keeps the reservation.
func (w *work) keep(r *Request, candidate int) error {
	t := w.t
	if len(t.open) >= t.memory.maxOpen || !w.room(w.plan, w.chosen) {
		return out(errCrowded)
	}
	c := t.newCall()
	c.id, c.model, c.user, c.at, c.estimate, c.forget, c.once = r.ID, r.Model, w.user, w.at.micros, r.Estimate, r.Forget, r.Once
	if c.id == uuid.Nil {
		c.id = made(c.at)
	}
	ttl := DefaultTTL
	if r.TTL > 0 {
		ttl = r.TTL
	}
	c.expires, c.candidate = c.at+ttl.Microseconds(), candidate
	w.take(c, w.plan)
	if candidate >= 0 {
		c.served = r.Candidates[candidate].Model
		w.take(c, w.chosen)
	}
	t.know(c)
	t.put(&t.open, c, c.expires)
	w.id = c.id
	return nil
}

// room tells whether the tenant may have the ledgers that were made. When it has
// too many, some that say nothing are dropped first. What client tokens make, of
// which there may be any number, leaves room for others.
func (w *work) room(spans ...span) bool {
	missing, most := 0, w.t.memory.maxLedgers
	for _, s := range spans {
		for i := s.from; i < s.to; i++ {
			if c := &w.list[i]; c.made {
				missing++
				if c.rule.limit.Scope.Kind == ScopeClientToken {
					most = w.t.memory.mostNamed()
				}
			}
		}
	}
	if missing == 0 || len(w.t.index)+missing <= most {
		return true
	}
	w.t.sweep(&w.at, sweptCrowded, w.list)
	return len(w.t.index)+missing <= most
}

// take charges a span to a call. A shadow limit that would refuse is charged
// nothing.
func (w *work) take(c *call, s span) {
	for i := s.from; i < s.to; i++ {
		ch := &w.list[i]
		if ch.refuses {
			continue
		}
		if ch.made {
			ch.made = false
			w.t.enter(ch.ref, ch.rule)
			if !ch.rule.named() {
				ch.rule.hint.Store(uint32(ch.ref))
			}
		}
		c.holds = append(c.holds, hold{rule: ch.rule, id: ch.id, amount: ch.cost, ref: ch.ref, candidate: ch.candidate, others: ch.others})
		w.t.charge(&c.holds[len(c.holds)-1])
	}
}

// newCall is an empty call, perhaps one that was used before.
func (t *tenant) newCall() *call {
	n := len(t.spare)
	if n == 0 {
		return new(call)
	}
	c := t.spare[n-1]
	t.spare[n-1], t.spare = nil, t.spare[:n-1]
	return c
}

// maxSpare is how many calls a tenant keeps for use again.
const maxSpare = 1024

// forgetCall drops a call that nobody will ask about.
func (t *tenant) forgetCall(c *call) {
	delete(t.calls, c.id)
	if t.keyed[c.once.Key] == c {
		delete(t.keyed, c.once.Key)
	}
	if len(t.spare) < maxSpare {
		clear(c.holds)
		*c = call{holds: c.holds[:0]}
		t.spare = append(t.spare, c)
	}
}

// know makes a call known, by its id and its key.
func (t *tenant) know(c *call) {
	t.calls[c.id] = c
	if c.once.Key != uuid.Nil {
		t.keyed[c.once.Key] = c
	}
}

// before is the call that the same request has made already, or nil.
func (t *tenant) before(r *Request) *call {
	if r.ID != uuid.Nil && t.calls[r.ID] != nil {
		return t.calls[r.ID]
	}
	if r.Once.Key == uuid.Nil {
		return nil
	}
	if c := t.keyed[r.Once.Key]; c != nil && c.phase != cancelled {
		return c
	}
	return nil
}

// again answers a reserve that was answered before.
func (t *tenant) again(r *Request, at *instant) (Decision, error) {
	c := t.before(r)
	if r.Once.Key != uuid.Nil && c.once.Key == r.Once.Key {
		if c.once.Body != r.Once.Body {
			return Decision{}, fault.New(fault.Conflict, "reservation_exists", "This key is another reservation's.")
		}
		return t.standing(c, at), nil
	}
	if c.phase != open || c.estimate != r.Estimate || c.model != r.Model || c.moves > 0 {
		return Decision{}, fault.New(fault.Conflict, "reservation_exists", "This id is reserved already.")
	}
	return t.standing(c, at), nil
}

// standing is the decision that an open call stands on.
func (t *tenant) standing(c *call, at *instant) Decision {
	d := Decision{
		Admitted: true, Again: true, Candidate: c.candidate, At: wall(c.at), ExpiresAt: wall(c.expires),
		Reservation: c.reservation(t.id),
	}
	for i := range c.holds {
		if h := &c.holds[i]; !h.ended {
			d.States = t.tellHold(d.States, c, h, at)
		}
	}
	return d
}
