package limits

import (
	"container/heap"
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// remembered is how long after its expiry the outcome of a reservation is kept.
const remembered = time.Hour

// Settle replaces the estimate of a reservation by what the call really was. The
// first outcome stands: the same again returns it with First false, another is a
// Conflict (reservation_settled) that comes with the outcome that stands;
// neither changes a ledger. The first outcome after an expiry corrects what
// stayed charged, and is Late. Invalid counts are refused before anything is
// touched; NotFound (reservation_not_found) is an id that is unknown, another
// tenant's, or forgotten.
func (m *Memory) Settle(_ context.Context, tenant, id uuid.UUID, s Settlement) (Outcome, error) {
	if wrong := s.Actual.Check(); wrong != nil {
		return Outcome{}, fault.InvalidFields(wrong...)
	}
	return m.end(tenant, id, settled, s)
}

// Cancel ends a reservation whose call never left for the provider: everything
// is given back, the request too. Otherwise it is as Settle.
func (m *Memory) Cancel(_ context.Context, tenant, id uuid.UUID) (Outcome, error) {
	return m.end(tenant, id, cancelled, Settlement{GiveBackRequest: true})
}

func (m *Memory) end(tenantID, id uuid.UUID, as phase, s Settlement) (Outcome, error) {
	t, c, at, err := m.find(tenantID, id)
	if err != nil {
		return Outcome{}, err
	}
	defer t.mu.Unlock()
	first, same := t.end(c, as, s, &at)
	o := t.outcome(c, &at)
	o.First = first
	if !same {
		return o, fault.Newf(fault.Conflict, "reservation_settled", "This reservation is %s already, with other figures.", o.State)
	}
	if first && c.forget {
		t.forgetCall(c)
	}
	return o, nil
}

// end gives a call its outcome, if it has none. same tells that it stands as
// asked for.
func (t *tenant) end(c *call, as phase, s Settlement, at *instant) (first, same bool) {
	s = s.of(c)
	if c.phase >= settled {
		return false, c.phase == as && c.actual == s.Actual && c.withRequest == s.GiveBackRequest
	}
	switch c.phase {
	case open:
		heap.Remove(&t.open, c.index)
	case expired:
		heap.Remove(&t.ended, c.index)
		c.late = true
	}
	c.phase, c.actual, c.withRequest = as, s.Actual, s.GiveBackRequest
	for i := range c.holds {
		if h := &c.holds[i]; !h.ended {
			t.settle(h, h.rule.cost(&c.actual), at)
		}
	}
	t.wake()
	if !c.forget {
		t.put(&t.ended, c, c.expires+remembered.Microseconds())
		t.trim(t.memory.maxOutcomes, c)
	}
	return true, true
}

// of is the settlement with its requests as they are charged.
func (s Settlement) of(c *call) Settlement {
	s.Actual.Requests = c.estimate.Requests
	if s.GiveBackRequest {
		s.Actual.Requests = 0
	}
	return s
}

// find locks the tenant, reads the clock and returns the reservation. The caller
// unlocks, unless there is an error.
func (m *Memory) find(tenantID, id uuid.UUID) (*tenant, *call, instant, error) {
	unknown := func() error {
		return fault.New(fault.NotFound, "reservation_not_found", "There is no such reservation.")
	}
	t := m.known(tenantID)
	if t == nil {
		return nil, nil, instant{}, unknown()
	}
	t.mu.Lock()
	at := t.begin(m.now())
	c, ok := t.calls[id]
	if !ok {
		t.mu.Unlock()
		return nil, nil, instant{}, unknown()
	}
	return t, c, at, nil
}

// settle replaces what a hold charged by what it should have charged.
func (t *tenant) settle(h *hold, actual sum, at *instant) {
	if !t.held(h) {
		t.settleLost(h, actual, at)
		return
	}
	switch i := h.ref.place(); h.ref.kind() {
	case kindBucket:
		t.buckets.at(i).settle(h, actual.n, at.ms, &t.rooms)
	case kindMinute, kindRolling:
		s := t.slider(h.ref)
		s.touch(s.amount, at.ms)
		s.settle(h, actual.n)
	case kindCalendar:
		t.calendars.at(i).settle(h, actual)
	case kindGauge:
		t.gauges.at(i).lapse(h)
	}
}

// settleLost settles a hold whose ledger was made anew since: a window that is
// the same is corrected; otherwise nothing is given back, but an overrun counts:
// in the sub-bucket of its admission if that is known, or now.
func (t *tenant) settleLost(h *hold, actual sum, at *instant) {
	h.open = false
	r := t.index[h.id]
	if h.rule.kind == kindCalendar {
		if r.kind() == kindCalendar {
			t.calendars.at(r.place()).settle(h, actual)
		}
		return
	}
	more := actual.n - h.amount.n
	if h.rule.kind == kindGauge || more <= 0 || t.left(h, at) {
		return
	}
	if r == 0 {
		r = t.fresh(h.rule, h.id, at)
		t.enter(r, h.rule)
	}
	switch i := r.place(); r.kind() {
	case kindBucket:
		b := t.buckets.at(i)
		b.refill(at.ms, &t.rooms)
		b.spend(more, &t.rooms)
	case kindMinute, kindRolling:
		s := t.slider(r)
		s.touch(s.amount, at.ms)
		if h.gen != 0 && h.rule.kind == r.kind() {
			s.add(h.mark, more)
		} else {
			s.add(s.now, more)
		}
	}
}

// left tells that the sub-bucket which h charged has left its window.
func (t *tenant) left(h *hold, at *instant) bool {
	if h.gen == 0 {
		return false
	}
	switch h.rule.kind {
	case kindMinute:
		return floorDiv(at.ms, minuteWidth)-h.mark >= minuteParts
	case kindRolling:
		return floorDiv(at.ms, rollingWidth)-h.mark >= rollingParts
	}
	return false
}

func (t *tenant) outcome(c *call, at *instant) Outcome {
	o := Outcome{State: StateSettled, Late: c.late, Actual: c.actual}
	if c.phase == cancelled {
		o.State = StateCancelled
	}
	o.States = make([]State, 0, len(c.holds))
	for i := range c.holds {
		h := &c.holds[i]
		if h.rule.kind == kindCalendar && (!h.ended || !c.late) {
			o.Charges = append(o.Charges, h.charged(c))
		}
		if !h.ended {
			o.States = t.tellHold(o.States, c, h, at)
		}
	}
	return o
}

// charged is what the event of an ended call adds to the window of a hold.
func (h *hold) charged(c *call) Charge {
	amount := h.amount
	if !h.ended {
		amount = h.rule.cost(&c.actual)
		if c.late {
			amount = amount.minus(h.amount).toward()
		}
	}
	return Charge{h.name(c), window{start: h.mark}.from(), amount.n, amount.pico}
}

// tellHold adds the state of the ledger that a hold charged, as the ledger
// stands now, if it is kept.
func (t *tenant) tellHold(list []State, c *call, h *hold, at *instant) []State {
	r := h.ref
	if !t.held(h) {
		if r = t.index[h.id]; r == 0 {
			return list
		}
	}
	s := State{Limit: h.rule.limit, Ledger: h.name(c)}
	switch i := r.place(); r.kind() {
	case kindBucket:
		b := t.buckets.at(i)
		b.refill(at.ms, &t.rooms)
		if s.Limit.Amount = b.rate; b.ceiling != b.rate || s.Limit.Burst != 0 {
			s.Limit.Burst = b.ceiling
		}
		s.Limit.Policy = PolicyBucket
	case kindMinute:
		w := t.minutes.at(i).slider()
		w.touch(w.amount, at.ms)
		s.Limit.Amount, s.Limit.Burst, s.Limit.Policy = w.amount, 0, PolicySliding
	case kindRolling:
		w := t.rollings.at(i).slider()
		w.touch(w.amount, at.ms)
		s.Limit.Amount = w.amount
	case kindCalendar:
		l := t.calendars.at(i)
		if at.wallMS >= l.end && h.rule.zone != nil {
			l.turn(h.rule, at.wallMS)
		}
		s.Limit.Amount = l.amount
	case kindGauge:
		s.Limit.Amount = t.gauges.at(i).amount
	}
	t.fill(&s, r, at)
	return append(list, s)
}

// Extend moves the end of an open reservation to until, at most MaxTTL from now;
// one that ends later already is left as it is. It is a Conflict when the
// reservation has an outcome (reservation_settled) or is over
// (reservation_expired).
func (m *Memory) Extend(_ context.Context, tenant, id uuid.UUID, until time.Time) error {
	t, c, at, err := m.find(tenant, id)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	if err := c.running(); err != nil {
		return err
	}
	end := until.UTC().Truncate(time.Microsecond).UnixMicro()
	if err := checkTTL(max(time.Duration(end-at.micros)*time.Microsecond, 0)); err != nil {
		return err
	}
	if end > c.expires {
		c.expires, c.due = end, end
		heap.Fix(&t.open, c.index)
	}
	return nil
}

// running is a Conflict for a call that has ended or run out.
func (c *call) running() error {
	switch {
	case c.phase >= settled:
		return fault.New(fault.Conflict, "reservation_settled", "This reservation is settled already.")
	case c.phase != open:
		return fault.New(fault.Conflict, "reservation_expired", "This reservation has expired.")
	}
	return nil
}
