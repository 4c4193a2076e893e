package limits

import (
	"container/heap"
	"sync"
	"time"

	"github.com/google/uuid"
)

// instant is one reading of the clock, as a tenant's ledgers see it: they have
// never seen a later one.
type instant struct {
	micros int64 // as read, of the wall clock
	wallMS int64 // of the wall clock, the latest seen
	ms     int64 // on a line without steps, the latest seen
	behind int64 // how far ms is ahead of the reading
}

// after turns a wait in ms of ledger time into the caller's: a clock that has
// stepped back must first come up to the latest instant seen.
func (at *instant) after(ms int64) time.Duration {
	if ms == 0 || ms == never {
		return 0
	}
	return time.Duration(ms+at.behind) * time.Millisecond
}

// until is the time from the reading to an instant of the wall clock, in ms.
func (at *instant) until(ms int64) time.Duration {
	return time.Duration(ms*1000-at.micros) * time.Microsecond
}

// tenant is everything that one tenant's calls touch, under one lock.
type tenant struct {
	id      uuid.UUID
	memory  *Memory
	loading chan struct{} // held by the one call that loads windows

	mu         sync.Mutex
	latest     int64 // ms
	latestWall int64 // ms

	index     map[ident]ref
	buckets   slab[bucket]
	rooms     rooms
	minutes   slab[minute]
	rollings  slab[rolling]
	calendars slab[calendar]
	gauges    slab[gauge]
	gen       uint32 // of the ledger made last
	families  families
	swept     uint32 // where the next sweep begins

	calls  map[uuid.UUID]*call
	keyed  map[uuid.UUID]*call // by Once.Key
	spare  []*call
	open   queue   // by expiry
	lapsed []*call // past their expiry, to be handed out by Expire
	ended  queue   // outcomes, by the time to forget them

	waiting []*waiter // in the order in which they came
	scratch work
}

// begin reads the clock once for one operation and ends the leases that are
// over. The lock is held.
func (t *tenant) begin(now time.Time) instant {
	raw, micros := t.memory.line(now), now.UnixMicro()
	t.latest = max(t.latest, raw)
	t.latestWall = max(t.latestWall, floorDiv(micros, 1000))
	at := instant{micros: micros, wallMS: t.latestWall, ms: t.latest, behind: t.latest - raw}
	for len(t.open) > 0 && t.open[0].expires <= at.micros {
		c := heap.Pop(&t.open).(*call)
		c.phase = lapsed
		for i := range c.holds {
			t.lapse(&c.holds[i])
		}
		t.lapsed = append(t.lapsed, c)
		t.wake()
	}
	return at
}

func (t *tenant) put(q *queue, c *call, due int64) {
	c.due = due
	heap.Push(q, c)
}

// head is the head of the ledger at r, or nil where there is none any more.
func (t *tenant) head(r ref) *head {
	i := r.place()
	switch r.kind() {
	case kindBucket:
		if i < t.buckets.n {
			return &t.buckets.at(i).head
		}
	case kindMinute:
		if i < t.minutes.n {
			return &t.minutes.at(i).head
		}
	case kindRolling:
		if i < t.rollings.n {
			return &t.rollings.at(i).head
		}
	case kindCalendar:
		if i < t.calendars.n {
			return &t.calendars.at(i).head
		}
	case kindGauge:
		if i < t.gauges.n {
			return &t.gauges.at(i).head
		}
	}
	return nil
}

// slider is the sliding ledger at r.
func (t *tenant) slider(r ref) slider {
	if r.kind() == kindMinute {
		return t.minutes.at(r.place()).slider()
	}
	return t.rollings.at(r.place()).slider()
}

// is tells whether the ledger of id is at r.
func (t *tenant) is(r ref, id ident) bool {
	h := t.head(r)
	return h != nil && h.id == id
}

// make is a place for a ledger that is not in the index yet. Everything but its
// head is zero.
func (t *tenant) make(k kind, id ident) ref {
	var place uint32
	switch k {
	case kindBucket:
		place = t.buckets.take()
	case kindMinute:
		place = t.minutes.take()
	case kindRolling:
		place = t.rollings.take()
	case kindCalendar:
		place = t.calendars.take()
	case kindGauge:
		place = t.gauges.take()
	}
	r := refOf(k, place)
	t.gen++
	if t.gen == 0 {
		t.gen++
	}
	*t.head(r) = head{id: id, gen: t.gen}
	return r
}

// give takes the place of a ledger back that is in no index.
func (t *tenant) give(r ref) {
	switch i := r.place(); r.kind() {
	case kindBucket:
		if b := t.buckets.at(i); b.more != 0 {
			t.rooms.give(b.more - 1)
		}
		t.buckets.give(i)
	case kindMinute:
		t.minutes.give(i)
	case kindRolling:
		t.rollings.give(i)
	case kindCalendar:
		t.calendars.give(i)
	case kindGauge:
		t.gauges.give(i)
	}
}

// enter puts a ledger into the index.
func (t *tenant) enter(r ref, of *rule) {
	h := t.head(r)
	t.index[h.id] = r
	if of != nil && of.named() {
		h.family = t.families.join(of.id)
	}
}

// enterAs is enter of a ledger of an earlier life; family is the limit that it is
// one of many of, or zero.
func (t *tenant) enterAs(r ref, family ident) {
	t.enter(r, nil)
	if family != (ident{}) {
		t.head(r).family = t.families.join(family)
	}
}

// drop forgets a ledger.
func (t *tenant) drop(r ref) {
	h := t.head(r)
	delete(t.index, h.id)
	t.families.leave(h.family)
	t.give(r)
	if len(t.index) == 0 {
		t.index = map[ident]ref{} // a map never shrinks
	}
}

// held is the ledger that h charged, if it is still the same making of it.
func (t *tenant) held(h *hold) bool {
	if h.gen == 0 {
		return false
	}
	l := t.head(h.ref)
	return l != nil && l.gen == h.gen && l.id == h.id
}

// charge takes h.amount from the ledger at h.ref.
func (t *tenant) charge(h *hold) {
	h.gen, h.open = t.head(h.ref).gen, true
	switch i := h.ref.place(); h.ref.kind() {
	case kindBucket:
		t.buckets.at(i).charge(h, &t.rooms)
	case kindMinute, kindRolling:
		t.slider(h.ref).charge(h)
	case kindCalendar:
		t.calendars.at(i).charge(h)
	case kindGauge:
		t.gauges.at(i).charge(h)
	}
}

// lapse ends an open hold: its slot is free, the rest stays charged.
func (t *tenant) lapse(h *hold) {
	if !h.open || !t.held(h) {
		return
	}
	switch i := h.ref.place(); h.ref.kind() {
	case kindBucket:
		t.buckets.at(i).lapse(h)
	case kindMinute, kindRolling:
		t.slider(h.ref).lapse(h)
	case kindCalendar:
		t.calendars.at(i).lapse(h)
	case kindGauge:
		t.gauges.at(i).lapse(h)
	}
}

// families count the ledgers of each limit that has one for every model or end
// user.
type families struct {
	of   map[ident]uint32 // from 1
	all  []family
	free []uint32
}

type family struct {
	id ident
	n  int32
}

func (f *families) size(id ident) int {
	if i := f.of[id]; i != 0 {
		return int(f.all[i-1].n)
	}
	return 0
}

// name is the limit of a family; zero of none.
func (f *families) name(i uint32) ident {
	if i == 0 {
		return ident{}
	}
	return f.all[i-1].id
}

func (f *families) join(id ident) uint32 {
	i := f.of[id]
	if i == 0 {
		if n := len(f.free); n > 0 {
			i, f.free = f.free[n-1], f.free[:n-1]
			f.all[i-1] = family{id: id}
		} else {
			f.all = append(f.all, family{id: id})
			i = uint32(len(f.all))
		}
		f.of[id] = i
	}
	f.all[i-1].n++
	return i
}

func (f *families) leave(i uint32) {
	if i == 0 {
		return
	}
	m := &f.all[i-1]
	if m.n--; m.n == 0 {
		delete(f.of, m.id)
		f.free = append(f.free, i)
	}
}
