package cache

import (
	"context"
	"sync/atomic"
	"time"

	"weir/internal/fault"
)

// Horizon is up to when the entries of several caches are known to hold, and
// how their database does. Whoever follows the changes of the database drops
// what they concern and then confirms; nobody may rely on the last confirmation
// for longer than fresh. It is safe for concurrent use.
type Horizon struct {
	fresh time.Duration
	marks atomic.Pointer[marks]
	slow  atomic.Pointer[time.Time] // when a load last failed, or was waited for in vain
	slots chan struct{}             // of the loads that run
	loads atomic.Int64
}

// marks are instants: everything read after floor holds as of confirmed; what
// was read after an earlier floor did as of what was confirmed then.
type marks struct {
	confirmed, floor         time.Time
	lastConfirmed, lastFloor time.Time
}

// mostLoads is how many loads run at once, whatever happens: more only wait for
// each other in the database.
const mostLoads = 64

// NewHorizon makes one that vouches for nothing yet.
func NewHorizon(fresh time.Duration) *Horizon {
	h := &Horizon{fresh: fresh, slots: make(chan struct{}, mostLoads)}
	h.marks.Store(&marks{})
	return h
}

// Restart says that changes are followed since some instant between from and
// now, and that some before may have been missed: everything whose load began
// until now is to be read again.
func (h *Horizon) Restart(from, now time.Time) {
	m := h.marks.Load()
	h.marks.Store(&marks{confirmed: from, floor: now, lastConfirmed: m.confirmed, lastFloor: m.floor})
}

// Confirm says that every entry that a change until then concerns was dropped.
// Only one goroutine may restart and confirm.
func (h *Horizon) Confirm(until time.Time) {
	m := *h.marks.Load()
	m.confirmed = until
	h.marks.Store(&m)
}

// vouches tells whether what was read then holds now.
func (h *Horizon) vouches(read, now time.Time) bool {
	m := h.marks.Load()
	return read.After(m.floor) && now.Sub(m.confirmed) < h.fresh
}

// held is the last instant at which what was read then is known to have held.
func (h *Horizon) held(read time.Time) time.Time {
	m, at := h.marks.Load(), time.Time{}
	switch {
	case read.After(m.floor):
		at = m.confirmed
	case read.After(m.lastFloor):
		at = m.lastConfirmed
	}
	if at.After(read) {
		return at
	}
	return read
}

func (h *Horizon) trouble(now time.Time) { h.slow.Store(&now) }

// troubled tells that the database failed a moment ago: a caller that has
// something else need not wait for it for long.
func (h *Horizon) troubled(now time.Time) bool {
	at := h.slow.Load()
	return at != nil && now.Sub(*at) < h.fresh
}

// overrun tells that on top of that so many loads wait for it that one more
// would help nobody.
func (h *Horizon) overrun(now time.Time) bool {
	return len(h.slots) == cap(h.slots) && h.troubled(now)
}

// enter waits for its turn to load; one that does not come is Unavailable.
func (h *Horizon) enter(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		h.loads.Add(1)
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "database_unavailable", "The database is slow to answer. Try again in a few seconds.").After(5 * time.Second)
	}
}

func (h *Horizon) leave() { <-h.slots }

// Loads is how many values its caches have read so far.
func (h *Horizon) Loads() int64 { return h.loads.Load() }
