package limits

// farLedger is a ledger as an answer tells of it (bucket.lua, group.lua).
type farLedger struct {
	kind            kind
	taken, held     int64 // of money what has begun counts as whole
	amount, ceiling int64
	empty           int64 // ms until nothing is used; never: no time does that
	window          window
}

// ledger reads a ledger that is up to date.
func (a *answer) ledger() farLedger {
	kind, n := kind(a.byte()), a.byte()
	return a.numbers(kind, n, &a.at)
}

// numbers reads those of a ledger: which making of it, its amount, and what its
// kind has.
func (u *unpacker) numbers(k kind, n int, at *instant) farLedger {
	rest := unpacker{s: u.take(8 * n)}
	rest.int()
	l := farLedger{kind: k, amount: rest.int()}
	switch k {
	case kindBucket:
		b := bucket{rate: l.amount, ceiling: rest.int(), level: rest.int(), last: rest.int()}
		l.held = rest.int()
		b.refill(at.ms, nil)
		l.taken, l.ceiling, l.empty = b.taken(), b.ceiling, b.untilFull()
	case kindMinute, kindRolling:
		l.taken, l.held, l.ceiling = rest.int(), rest.int(), l.amount
		rest.int()
		l.empty = rest.int()
	case kindCalendar:
		l.ceiling = l.amount
		l.taken, l.held = (sum{rest.int(), rest.int()}).up(), (sum{rest.int(), rest.int()}).up()
		l.window = window{rest.int(), rest.int()}
	case kindGauge:
		l.held, l.ceiling = rest.int(), l.amount
	}
	if u.err == nil {
		u.err = rest.err
	}
	return l
}

// read states a ledger, as fill does.
func (s *State) read(l *farLedger, at *instant) {
	switch l.kind {
	case kindBucket, kindMinute, kindRolling:
		s.add(l.taken, l.held, l.ceiling)
		s.full(at, l.empty)
	case kindCalendar:
		s.add(l.taken, l.held, l.ceiling)
		s.WindowStart, s.ResetAt = l.window.from(), l.window.to()
		s.Full = max(at.until(l.window.end), 0)
	case kindGauge:
		s.Held, s.Remaining = l.held, max(l.amount-l.held, 0)
	}
}
