package limits

import (
	"container/heap"
	"slices"
	"time"
)

// How many ledgers of a tenant are looked at by one Expire, and by a call that
// finds no room for one more.
const (
	sweptByExpire = 1024
	sweptCrowded  = 4096
)

// Expire returns the reservations that ran out by now without an outcome, each
// of them once. Their slots are free; what they charged stays, until a late
// outcome corrects it. It also forgets outcomes that are an hour past their
// expiry, and drops ledgers that say nothing: full buckets, ended windows. Call
// it about every second; it holds one tenant's lock at a time.
func (m *Memory) Expire(now time.Time) []Reservation {
	var list []Reservation
	for _, t := range m.everyone() {
		list = t.expire(list, now)
	}
	return list
}

func (t *tenant) expire(list []Reservation, now time.Time) []Reservation {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.begin(now)
	for _, c := range t.lapsed {
		if c.phase != lapsed {
			continue
		}
		c.phase = expired
		t.put(&t.ended, c, c.expires+remembered.Microseconds())
		list = append(list, c.reservation(t.id))
	}
	t.lapsed = nil
	for len(t.ended) > 0 && t.ended[0].due <= at.micros {
		t.forget()
	}
	t.trim(t.memory.maxOutcomes, nil)
	t.sweep(&at, sweptByExpire, nil)
	return list
}

// trim forgets the outcomes soonest to be forgotten anyway, beyond so many, but
// for one.
func (t *tenant) trim(most int, but *call) {
	for len(t.ended) > most && t.ended[0] != but {
		t.forget()
	}
}

func (t *tenant) forget() {
	c := heap.Pop(&t.ended).(*call)
	if c.phase == expired {
		for i := range c.holds {
			if h := &c.holds[i]; !h.ended && h.ref.kind() == kindBucket && t.held(h) {
				t.buckets.at(h.ref.place()).forget(h, &t.rooms)
			}
		}
	}
	t.forgetCall(c)
}

// sweep looks at up to n places for ledgers, going on where the last sweep
// ended, and drops the ledgers that say nothing, but for those of some charges.
func (t *tenant) sweep(at *instant, n int, but []charge) {
	sizes := [...]struct {
		kind kind
		n    uint32
	}{{kindBucket, t.buckets.n}, {kindMinute, t.minutes.n}, {kindRolling, t.rollings.n}, {kindCalendar, t.calendars.n}, {kindGauge, t.gauges.n}}
	var all uint32
	for _, s := range sizes {
		all += s.n
	}
	for range min(uint32(n), all) {
		if t.swept >= all {
			t.swept = 0
		}
		i := t.swept
		t.swept++
		for _, s := range sizes {
			if i < s.n {
				t.tidy(refOf(s.kind, i), at, but)
				break
			}
			i -= s.n
		}
	}
}

// tidy drops a ledger that says nothing: a new one would answer alike. What is
// just being charged stays.
func (t *tenant) tidy(r ref, at *instant, but []charge) {
	h := t.head(r)
	if h == nil || h.id == (ident{}) || t.index[h.id] != r {
		return
	}
	idle := false
	switch i := r.place(); r.kind() {
	case kindBucket:
		idle = t.buckets.at(i).idle(at.ms, &t.rooms)
	case kindMinute, kindRolling:
		s := t.slider(r)
		s.touch(s.amount, at.ms)
		idle = s.used == 0
	case kindCalendar:
		idle = at.wallMS >= t.calendars.at(i).end
	case kindGauge:
		idle = t.gauges.at(i).held == 0
	}
	if idle && !slices.ContainsFunc(but, func(c charge) bool { return c.ref == r }) {
		t.drop(r)
	}
}
