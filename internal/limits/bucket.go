package limits

import (
	"math"
	"time"
)

// A bucket counts in grains, 60,000 to the permit: what refills in one
// millisecond at one permit a minute. Balance and carry are one integer,
// balance × 60,000 + carry, so nothing is ever rounded away.
const grain = 60_000

// bucket is a token bucket: a burst up to its ceiling, refilled continuously at
// rate permits a minute. With the bounds of check.go no level exceeds 2^53.
type bucket struct {
	rate, ceiling int64 // permits
	level         int64 // grains; below zero is debt, never below one ceiling
	last          int64 // ms, the latest instant seen
	held          int64 // permits charged for calls still open
	turn          int64 // counts the times that headroom came down
	rooms         history
}

func (b *bucket) full() int64      { return b.ceiling * grain }
func (b *bucket) headroom() int64  { return b.full() - b.level }
func (b *bucket) balance() int64   { return floorDiv(b.level, grain) }
func (b *bucket) untilFull() int64 { return b.until(b.full()) }

// refill credits the time since the last look. Time that runs backwards counts
// as none; time beyond what fills the bucket is not multiplied.
func (b *bucket) refill(now int64) {
	elapsed := now - b.last
	if elapsed <= 0 {
		return
	}
	b.last = now
	if b.rate == 0 {
		return
	}
	if elapsed >= b.untilFull() {
		b.level = b.full()
	} else {
		b.level += elapsed * b.rate
	}
	b.rises()
}

// rises notes that the level came up by itself.
func (b *bucket) rises() {
	b.turn++
	b.rooms.fall(b.headroom())
}

// until is the time in ms that the bucket needs to hold level grains.
func (b *bucket) until(level int64) int64 {
	missing := level - b.level
	if missing <= 0 {
		return 0
	}
	if b.rate == 0 {
		return math.MaxInt64
	}
	return (missing + b.rate - 1) / b.rate
}

// resize takes over a changed limit: what is used stays, the level is what the
// new ceiling leaves.
func (b *bucket) resize(rate, ceiling int64) {
	used := b.headroom()
	b.rate, b.ceiling = rate, ceiling
	b.level = b.full() - used
	b.forgive()
}

// spend takes cost permits, into debt if need be.
func (b *bucket) spend(cost int64) {
	b.level -= cost * grain
	b.forgive()
}

// forgive is the bound of debt: one ceiling.
func (b *bucket) forgive() {
	if b.level < -b.full() {
		b.level = -b.full()
		b.rises()
	}
}

func (b *bucket) touch(l *Limit, at instant) {
	b.refill(at.ms)
	if b.rate != l.Amount || b.ceiling != l.ceiling() {
		b.resize(l.Amount, l.ceiling())
	}
}

func (b *bucket) wait(cost int64, at instant) (time.Duration, bool) {
	if cost > b.ceiling {
		return 0, false
	}
	return b.after(b.until(cost*grain), at)
}

// after turns ledger time into the caller's: a clock that has stepped back must
// first come up to the latest instant seen.
func (b *bucket) after(ms int64, at instant) (time.Duration, bool) {
	if ms == 0 {
		return 0, true
	}
	if ms == math.MaxInt64 {
		return 0, false
	}
	return time.Duration(ms+at.behind) * time.Millisecond, true
}

func (b *bucket) charge(h *hold, _ instant) {
	b.spend(h.amount)
	b.held += h.amount
	h.since = b.turn
	b.rooms.add(b.turn, b.headroom())
}

func (b *bucket) settle(h *hold, actual int64, at instant) {
	b.refill(at.ms)
	if actual > h.amount {
		b.spend(actual - h.amount)
	} else {
		b.level += b.rooms.giveBack(h.since, (h.amount-actual)*grain)
		b.turn++
	}
	b.lapse(h)
	b.forget(h)
}

func (b *bucket) lapse(h *hold) {
	if h.open {
		b.held -= h.amount
		h.open = false
	}
}

func (b *bucket) forget(h *hold) { b.rooms.release(h.since) }

// fill states the ledger so that used + held + remaining is the ceiling (and
// what is owed on top). What has refilled since an open call was charged is no
// longer held.
func (b *bucket) fill(s *State, at instant) {
	balance := b.balance()
	missing := b.ceiling - balance
	s.Held = min(b.held, missing)
	s.Used = missing - s.Held
	s.Remaining = max(balance, 0)
	s.Debt = max(-balance, 0)
	s.Full, _ = b.after(b.untilFull(), at)
	s.ResetAt = at.wall.Add(s.Full)
}

// idle tells that a new bucket would answer alike.
func (b *bucket) idle(at instant) bool {
	b.refill(at.ms)
	return b.level == b.full() && len(b.rooms) == 0
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
