package limits

import "math"

// A bucket counts in grains, 60,000 to the permit: what refills in one
// millisecond at one permit a minute. Balance and carry are one integer,
// balance × 60,000 + carry, so nothing is ever rounded away.
const grain = 60_000

// never is a wait that no time ends, in ms.
const never = math.MaxInt64

// bucket is a token bucket: a burst up to its ceiling, refilled continuously at
// rate permits a minute. With the bounds of check.go no level exceeds 2^53.
type bucket struct {
	head
	rate, ceiling int64 // permits
	level         int64 // grains; below zero is debt, never below one ceiling
	last          int64 // ms, the latest instant seen
	held          int64 // permits charged for calls still open
	turn          int64 // counts the times that headroom came down
	one           [1]room
	more          uint32 // the place of its rooms, from 1; 0: one is enough
	used          uint16 // rooms in use
	forgiven      bool   // since it was full last, a lowered limit forgave of what was used
}

func (b *bucket) full() int64      { return b.ceiling * grain }
func (b *bucket) headroom() int64  { return b.full() - b.level }
func (b *bucket) whole() bool      { return b.level == b.full() && b.ceiling > 0 }
func (b *bucket) balance() int64   { return floorDiv(b.level, grain) }
func (b *bucket) untilFull() int64 { return b.until(b.full()) }

// rooms is the bucket's history, as long as nothing is added to it.
func (b *bucket) rooms(in *rooms) history {
	if b.more == 0 {
		return b.one[:b.used]
	}
	return in.at(b.more - 1)[:b.used]
}

// noted takes over a history that has changed.
func (b *bucket) noted(h history, in *rooms) {
	b.used = uint16(len(h))
	if b.used == 0 && b.more != 0 {
		in.give(b.more - 1)
		b.more = 0
	}
}

// refill credits the time since the last look. Time that runs backwards counts
// as none; time beyond what fills the bucket is not multiplied.
func (b *bucket) refill(now int64, in *rooms) {
	elapsed := now - b.last
	if elapsed <= 0 {
		return
	}
	b.last = now
	if b.rate == 0 {
		return
	}
	missing := b.headroom()
	if missing == 0 && b.used == 0 {
		b.forgiven = false
		return
	}
	if elapsed < days { // no product of it overflows
		b.level += min(elapsed*b.rate, missing)
	} else if elapsed >= b.untilFull() {
		b.level = b.full()
	} else {
		b.level += elapsed * b.rate
	}
	b.rises(in)
}

// days is six days, in ms; times the largest rate it is below 2^63.
const days = 1 << 29

// rises notes that the level came up by itself.
func (b *bucket) rises(in *rooms) {
	b.turn++
	b.forgiven = b.forgiven && !b.whole()
	if b.used <= 1 {
		b.one[0].least = min(b.one[0].least, b.headroom()) // without a room of no effect
		if b.more == 0 {
			return
		}
	}
	h := b.rooms(in)
	h.fall(b.headroom())
	b.noted(h, in)
}

// until is the time in ms that the bucket needs to hold level grains.
func (b *bucket) until(level int64) int64 {
	missing := level - b.level
	if missing <= 0 {
		return 0
	}
	if b.rate == 0 {
		return never
	}
	return (missing + b.rate - 1) / b.rate
}

// resize takes over a changed limit: what is used stays, the level is what the
// new ceiling leaves. More than one ceiling of debt is forgiven, so that nobody is
// shut out for long; a raise then adds nothing until the bucket was full again, or
// lowering and raising would give back what was used.
func (b *bucket) resize(rate, ceiling int64, in *rooms) {
	used, most := b.headroom(), int64(math.MaxInt64)
	if b.forgiven {
		most = b.level
	}
	b.rate, b.ceiling = rate, ceiling
	if b.level = min(b.full()-used, most); b.level < -b.full() {
		b.forgive(in)
		b.forgiven = true
	}
}

// spend takes cost permits, into debt if need be.
func (b *bucket) spend(cost int64, in *rooms) {
	b.level -= cost * grain
	b.forgive(in)
}

// forgive is the bound of debt: one ceiling.
func (b *bucket) forgive(in *rooms) {
	if b.level < -b.full() {
		b.level = -b.full()
		b.rises(in)
	}
}

func (b *bucket) touch(rate, ceiling, now int64, in *rooms) {
	b.refill(now, in)
	if b.rate != rate || b.ceiling != ceiling {
		b.resize(rate, ceiling, in)
	}
}

// wait is the time in ms until cost and what others ask for before it fit; never
// if it never can.
func (b *bucket) wait(cost, ahead int64) int64 {
	if cost > b.ceiling {
		return never
	}
	return b.until((cost + ahead) * grain)
}

// charge takes h.amount, and notes the turn in h.
func (b *bucket) charge(h *hold, in *rooms) {
	b.spend(h.amount.n, in)
	b.held += h.amount.n
	h.mark = b.turn
	rooms := b.rooms(in)
	if n := len(rooms); n == cap(rooms) && rooms[n-1].since != b.turn {
		b.more = in.take() + 1
		more := in.at(b.more - 1)
		copy(more[:], rooms)
		rooms = more[:n]
	}
	rooms.add(b.turn, b.headroom())
	b.noted(rooms, in)
}

// settle replaces what h charged by actual; it is the last use of h.
func (b *bucket) settle(h *hold, actual, now int64, in *rooms) {
	b.refill(now, in)
	if actual > h.amount.n {
		b.spend(actual-h.amount.n, in)
	} else if actual < h.amount.n {
		rooms := b.rooms(in)
		b.level += rooms.giveBack(h.mark, (h.amount.n-actual)*grain)
		b.noted(rooms, in)
		if b.turn++; b.forgiven && b.whole() {
			b.rises(in)
		}
	}
	b.lapse(h)
	b.forget(h, in)
}

// lapse ends an open hold: what it charged stays charged.
func (b *bucket) lapse(h *hold) {
	if h.open {
		b.held -= h.amount.n
		h.open = false
	}
}

// forget is the last use of an h that was never settled.
func (b *bucket) forget(h *hold, in *rooms) {
	rooms := b.rooms(in)
	rooms.release(h.mark)
	b.noted(rooms, in)
}

// idle tells that a new bucket would answer alike.
func (b *bucket) idle(now int64, in *rooms) bool {
	b.refill(now, in)
	return b.level == b.full() && b.used == 0 && !b.forgiven
}

// taken is what is used of the bucket, in permits, rounded up.
func (b *bucket) taken() int64 { return b.ceiling - b.balance() }
