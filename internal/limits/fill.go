package limits

import "time"

// fill states a ledger so that used + held + remaining − debt is the ceiling.
// What no longer counts of an open call is no longer held.
func (t *tenant) fill(s *State, r ref, at *instant) {
	switch i := r.place(); r.kind() {
	case kindBucket:
		b := t.buckets.at(i)
		s.add(b.taken(), b.held, b.ceiling)
		s.full(at, b.untilFull())
	case kindMinute, kindRolling:
		t.slider(r).fill(s, at)
	case kindCalendar:
		c := t.calendars.at(i)
		s.add(c.used.up(), c.held.up(), c.amount)
		s.WindowStart, s.ResetAt = c.from(), c.to()
		s.Full = max(at.until(c.end), 0)
	case kindGauge:
		g := t.gauges.at(i)
		s.Held, s.Remaining = g.held, max(g.amount-g.held, 0)
	}
}

func (s slider) fill(to *State, at *instant) {
	to.add(s.used, s.held, s.amount)
	to.full(at, s.untilEmpty(at.ms))
}

func (s *State) add(taken, held, ceiling int64) {
	s.Held = max(min(held, taken), 0)
	s.Used = taken - s.Held
	s.Remaining = max(ceiling-taken, 0)
	s.Debt = max(taken-ceiling, 0)
}

func (s *State) full(at *instant, ms int64) {
	s.Full = at.after(ms)
	s.ResetAt = wall(at.micros).Add(s.Full)
}

// convert keeps a ledger over a change of its limit's policy: what is used of a
// bucket becomes the current sub-bucket, the sum of sub-buckets what is used of
// a bucket. Calls that were charged before get nothing back.
func (t *tenant) convert(c *charge, at *instant) {
	old := c.ref
	var taken int64
	switch i := old.place(); old.kind() {
	case kindBucket:
		b := t.buckets.at(i)
		b.refill(at.ms, &t.rooms)
		taken = b.taken()
	case kindMinute:
		s := t.minutes.at(i).slider()
		s.touch(s.amount, at.ms)
		taken = s.used
	}
	family := t.head(old).family
	c.ref = t.make(c.rule.kind, c.id)
	t.head(c.ref).family = family
	t.index[c.id] = c.ref
	t.give(old)
	if !c.rule.named() {
		c.rule.hint.Store(uint32(c.ref))
	}
	switch i := c.ref.place(); c.rule.kind {
	case kindBucket:
		b := t.buckets.at(i)
		b.rate, b.ceiling, b.last = c.rule.limit.Amount, c.rule.ceiling, at.ms
		b.level = b.full()
		b.spend(taken, &t.rooms)
	case kindMinute:
		s := t.minutes.at(i).slider()
		s.begin(c.rule.limit.Amount, at.ms, false)
		s.add(s.now, taken)
	}
}

// look is the time until the smallest call fits a ledger that was weighed.
func (t *tenant) look(c *charge, at *instant) (time.Duration, bool) {
	var ms int64
	switch i := c.ref.place(); c.rule.kind {
	case kindBucket:
		ms = t.buckets.at(i).wait(1, 0)
	case kindMinute, kindRolling:
		ms = t.slider(c.ref).wait(1, 0, at.ms)
	case kindCalendar:
		l := t.calendars.at(i)
		if l.amount == 0 {
			return 0, false
		}
		if !l.fits(sum{n: 1}, sum{}) {
			return at.until(l.end), true
		}
	case kindGauge:
		if ms = t.gauges.at(i).wait(1, 0); ms == slotWait {
			return slotWait * time.Millisecond, true
		}
	}
	return at.after(ms), ms != never
}
