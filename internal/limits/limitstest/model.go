package limitstest

import (
	"math/big"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// model is the engine written for clarity: it keeps the whole story of every
// ledger and tells it again from the start whenever it is asked. A settlement
// below the estimate rewrites what the call was charged, so the next telling
// gives what the ledger would hold had it been so all along.
type model struct {
	ledgers map[string]*story
	calls   map[uuid.UUID]*modelCall
	latest  time.Time // instants never run backwards for a ledger
}

type modelCall struct {
	id       uuid.UUID
	order    int
	holds    []*modelHold
	expires  time.Time
	estimate limits.Cost
	moves    int
	state    string // open, lapsed, expired, or how it ended
}

// modelHold is what a call charged to one limit.
type modelHold struct {
	limit     limits.Limit
	story     *story
	event     *event
	charged   limits.Cost
	at        time.Time
	candidate bool
	ended     bool
}

// story is everything that happened to one ledger under one policy.
type story struct {
	limit  limits.Limit // as it was first
	events []*event

	forgiven bool // since the bucket was full last, a lowered limit forgave of what was used
}

type event struct {
	at     time.Time
	window time.Time // of a charge to a calendar
	amount int64     // taken, in whole units
	pico   int64     // and of money beyond them
	debt   *big.Int  // grains taken by an overrun, already bounded
	limit  *limits.Limit
	spared *big.Int // grains that a change of limit forgave, or below zero did not add
}

func newModel() *model {
	return &model{ledgers: map[string]*story{}, calls: map[uuid.UUID]*modelCall{}}
}

// see notes an instant, and which leases are over by it.
func (m *model) see(now time.Time) {
	if now.After(m.latest) {
		m.latest = now
	}
	for _, c := range m.calls {
		if c.state == "open" && !now.Before(c.expires) {
			c.state = "lapsed"
		}
	}
}

// story is the ledger of l, told that l is what counts from now on. A change of
// policy begins a new story with what is used.
func (m *model) story(l limits.Limit) *story {
	s, ok := m.ledgers[l.Ledger("m")]
	if !ok {
		s = &story{limit: l}
		m.ledgers[l.Ledger("m")] = s
	}
	if s.limit.Policy != l.Policy {
		var taken int64
		if was := s.now(); was.Policy == limits.PolicyBucket {
			taken = max(was.Amount, was.Burst) - balance(s.level(m.latest))
		} else {
			taken = s.within(m.latest)
		}
		s = &story{limit: l}
		m.ledgers[l.Ledger("m")] = s
		if l.Policy == limits.PolicyBucket {
			s.overrun(m.latest, taken)
		} else {
			s.events = append(s.events, &event{at: m.latest, amount: taken})
		}
	}
	bucket, was := l.Policy == limits.PolicyBucket, s.now()
	var before *big.Int
	if bucket {
		before = s.rested(m.latest)
	}
	if was.Amount == l.Amount && was.Burst == l.Burst {
		return s
	}
	change := &event{at: m.latest, limit: &l, spared: big.NewInt(0)}
	if s.events = append(s.events, change); bucket {
		after := s.level(m.latest)
		if s.forgiven && after.Cmp(before) > 0 {
			change.spared = before.Sub(before, after)
		} else if below := after.Add(after, ceiling(l)); below.Sign() < 0 {
			change.spared, s.forgiven = below.Neg(below), true
		}
	}
	return s
}

func (s *story) now() limits.Limit {
	for i := len(s.events) - 1; i >= 0; i-- {
		if s.events[i].limit != nil {
			return *s.events[i].limit
		}
	}
	return s.limit
}

func ceiling(l limits.Limit) *big.Int { return grains(max(l.Amount, l.Burst)) }

func grains(permits int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(permits), big.NewInt(60_000))
}

// balance is a level in whole permits, rounded down.
func balance(level *big.Int) int64 { return new(big.Int).Div(level, big.NewInt(60_000)).Int64() }

// level tells a bucket's story up to an instant, in grains.
func (s *story) level(until time.Time) *big.Int {
	l := s.limit
	level := ceiling(l)
	var last time.Time
	refill := func(to time.Time) {
		if !last.IsZero() {
			ms := big.NewInt(to.UnixMilli() - last.UnixMilli())
			level.Add(level, ms.Mul(ms, big.NewInt(l.Amount)))
			if c := ceiling(l); level.Cmp(c) > 0 {
				level = c
			}
		}
		last = to
	}
	for _, e := range s.events {
		refill(e.at)
		switch {
		case e.limit != nil:
			used := new(big.Int).Sub(ceiling(l), level)
			l = *e.limit
			level = used.Sub(ceiling(l), used).Add(used, e.spared)
			if c := ceiling(l); level.Cmp(c) > 0 {
				level = c
			}
		case e.debt != nil:
			level.Sub(level, e.debt)
		default:
			level.Sub(level, grains(e.amount))
		}
	}
	refill(until)
	return level
}

// rested is the level; at a full one nothing is left of what was forgiven.
func (s *story) rested(at time.Time) *big.Int {
	level, l := s.level(at), s.now()
	s.forgiven = s.forgiven && (level.Cmp(ceiling(l)) < 0 || l.Amount == 0)
	return level
}

// overrun charges a bucket what a call took beyond its estimate, at most down to
// one ceiling below zero.
func (s *story) overrun(at time.Time, amount int64) {
	room := new(big.Int).Add(s.rested(at), ceiling(s.now()))
	taken := grains(amount)
	if taken.Cmp(room) > 0 {
		taken = room
	}
	s.events = append(s.events, &event{at: at, debt: taken})
}

// part is the beginning of the sub-bucket that an instant is in, and leaves when
// all of it has left the window.
func part(l limits.Limit, at time.Time) time.Time {
	width := time.Second
	if l.Window == limits.WindowRollingDay {
		width = 5 * time.Minute
	}
	return at.Truncate(width)
}

func leaves(l limits.Limit, at time.Time) time.Time {
	if l.Window == limits.WindowRollingDay {
		return part(l, at).Add(24*time.Hour + 5*time.Minute)
	}
	return part(l, at).Add(61 * time.Second)
}

// within is what a sliding window holds at an instant.
func (s *story) within(at time.Time) int64 {
	var sum int64
	for _, e := range s.events {
		if e.limit == nil && at.Before(leaves(s.limit, e.at)) {
			sum += e.amount
		}
	}
	return sum
}

// civil is the UTC day or month that an instant is in.
func civil(l limits.Limit, at time.Time) (start, end time.Time) {
	y, m, d := at.UTC().Date()
	if l.Window == limits.WindowMonth {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

func picos(amount, pico int64) *big.Int {
	n := new(big.Int).Mul(big.NewInt(amount), big.NewInt(1_000_000))
	return n.Add(n, big.NewInt(pico))
}

// used is what a calendar window holds, in pico-units.
func (s *story) used(window time.Time) *big.Int {
	sum := new(big.Int)
	for _, e := range s.events {
		if e.limit == nil && e.window.Equal(window) {
			sum.Add(sum, picos(e.amount, e.pico))
		}
	}
	return sum
}

// slots are the calls that hold a gauge now.
func (m *model) slots(l limits.Limit) int64 {
	var n int64
	for _, c := range m.calls {
		for _, h := range c.holds {
			if c.state == "open" && !h.ended && h.limit.Ledger("m") == l.Ledger("m") {
				n++
			}
		}
	}
	return n
}

const never = time.Duration(-1)

// wait is how long a cost has to wait on a limit at an instant.
func (m *model) wait(l limits.Limit, amount, pico int64, now time.Time) time.Duration {
	cost := picos(amount, pico)
	if cost.Cmp(picos(max(l.Amount, l.Burst), 0)) > 0 {
		return never
	}
	s := m.story(l)
	switch l.Policy {
	case limits.PolicyGauge:
		if m.slots(l)+amount > l.Amount {
			return time.Second
		}
	case limits.PolicyCalendar:
		if start, end := civil(l, m.latest); cost.Add(cost, s.used(start)).Cmp(picos(l.Amount, 0)) > 0 {
			return end.Sub(now)
		}
	case limits.PolicySliding:
		for at := m.latest; ; {
			if s.within(at)+amount <= l.Amount {
				return s.later(m.latest, at, now)
			}
			at = s.next(at)
		}
	case limits.PolicyBucket:
		missing := new(big.Int).Sub(grains(amount), s.level(m.latest))
		if missing.Sign() > 0 {
			if l.Amount == 0 {
				return never
			}
			ms := missing.Add(missing, big.NewInt(l.Amount-1)).Div(missing, big.NewInt(l.Amount)).Int64()
			return time.Duration(ms)*time.Millisecond + m.latest.Sub(now)
		}
	}
	return 0
}

// next is the next instant after at when something leaves a sliding window.
func (s *story) next(at time.Time) time.Time {
	var next time.Time
	for _, e := range s.events {
		if l := leaves(s.limit, e.at); e.limit == nil && l.After(at) && (next.IsZero() || l.Before(next)) {
			next = l
		}
	}
	return next
}

// later is the wait until at, of a clock that shows now.
func (s *story) later(latest, at, now time.Time) time.Duration {
	if at.Equal(latest) {
		return 0
	}
	return at.Truncate(time.Millisecond).Sub(latest.Truncate(time.Millisecond)) + latest.Sub(now)
}

// reserve charges a call that has to wait for nothing.
func (m *model) reserve(r limits.Reservation, plan, candidate []limits.Limit, provider limits.Cost) {
	c := &modelCall{id: r.ID, order: len(m.calls), expires: r.ExpiresAt, estimate: r.Estimate, state: "open"}
	m.charge(c, plan, r.Estimate, false)
	m.charge(c, candidate, provider, true)
	m.calls[r.ID] = c
}

func (m *model) charge(c *modelCall, list []limits.Limit, cost limits.Cost, candidate bool) {
	for _, l := range list {
		window, _ := civil(l, m.latest)
		h := &modelHold{limit: l, story: m.story(l), charged: cost, at: m.latest, candidate: candidate}
		h.event = &event{at: m.latest, window: window, amount: l.Cost(cost), pico: l.Pico(cost)}
		if l.Policy != limits.PolicyGauge {
			h.story.events = append(h.story.events, h.event)
		}
		c.holds = append(c.holds, h)
	}
}

func (m *model) settle(c *modelCall, state string, actual limits.Cost) {
	c.state = state
	for _, h := range c.holds {
		if !h.ended {
			m.correct(h, actual)
		}
	}
}

// move ends the candidate's part of a call.
func (m *model) move(c *modelCall, actual limits.Cost) {
	c.moves++
	for _, h := range c.holds {
		if h.candidate && !h.ended {
			m.correct(h, actual)
			h.ended = true
		}
	}
}

func (m *model) correct(h *modelHold, actual limits.Cost) {
	cost, was := h.limit.Cost(actual), h.limit.Cost(h.charged)
	now := m.ledgers[h.limit.Ledger("m")]
	switch h.limit.Policy {
	case limits.PolicyCalendar:
		h.event.amount, h.event.pico = cost, h.limit.Pico(actual)
	case limits.PolicyBucket, limits.PolicySliding:
		if now == h.story && (h.limit.Policy == limits.PolicySliding || cost <= was) {
			h.event.amount = cost
			return
		}
		if cost <= was || h.limit.Policy == limits.PolicySliding && !m.latest.Before(leaves(h.limit, h.at)) {
			return // the ledger changed its policy since: nothing comes back
		}
		if now.limit.Policy == limits.PolicyBucket {
			now.overrun(m.latest, cost-was)
			return
		}
		e := &event{at: m.latest, amount: cost - was}
		if h.limit.Policy == limits.PolicySliding {
			e.at = h.at
		}
		now.events = append(now.events, e)
	}
}

// changed tells whether a ledger of an open call has changed its policy since.
func (m *model) changed(c *modelCall) bool {
	for _, h := range c.holds {
		if m.ledgers[h.limit.Ledger("m")] != h.story {
			return true
		}
	}
	return false
}

// state is what Live has to say about a limit.
func (m *model) state(l limits.Limit, now time.Time) (remaining, debt int64, next time.Duration) {
	next = m.wait(l, 1, 0, now)
	ceiling := max(l.Amount, l.Burst)
	var taken int64
	switch s := m.story(l); l.Policy {
	case limits.PolicyGauge:
		return max(l.Amount-m.slots(l), 0), 0, next
	case limits.PolicyCalendar:
		start, _ := civil(l, m.latest)
		up := new(big.Int).Add(s.used(start), big.NewInt(999_999))
		taken = up.Div(up, big.NewInt(1_000_000)).Int64()
	case limits.PolicySliding:
		taken = s.within(m.latest)
	case limits.PolicyBucket:
		taken = ceiling - balance(s.level(m.latest))
	}
	return max(ceiling-taken, 0), max(taken-ceiling, 0), next
}
