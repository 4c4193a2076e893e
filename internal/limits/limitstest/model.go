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
// gives what the bucket would hold had it been so all along.
type model struct {
	ledgers map[string]*story
	calls   map[uuid.UUID]*modelCall
	latest  time.Time // instants never run backwards for a ledger
}

type modelCall struct {
	id       uuid.UUID
	order    int
	limits   []limits.Limit
	charged  []int64
	windows  []time.Time
	expires  time.Time
	estimate limits.Cost
	state    string // open, lapsed, expired, or how it ended
}

// story is everything that happened to one ledger.
type story struct {
	limit  limits.Limit // as it was first
	events []*event
}

type event struct {
	at     time.Time
	call   uuid.UUID // of a charge or a slot
	window time.Time // of a charge to a calendar
	amount int64     // permits taken
	debt   *big.Int  // grains taken by an overrun, already bounded
	limit  *limits.Limit
	spared *big.Int // grains of debt that a change of limit forgave
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

// story is the ledger of l, told that l is what counts from now on.
func (m *model) story(l limits.Limit) *story {
	s, ok := m.ledgers[l.Ledger("m")]
	if !ok {
		s = &story{limit: l}
		m.ledgers[l.Ledger("m")] = s
	}
	if now := s.now(); now.Amount != l.Amount || now.Burst != l.Burst {
		s.events = append(s.events, &event{at: m.latest, limit: &l, spared: big.NewInt(0)})
		if below := new(big.Int).Add(s.level(m.latest), ceiling(l)); below.Sign() < 0 {
			s.events[len(s.events)-1].spared = below.Neg(below)
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

func ceiling(l limits.Limit) *big.Int {
	c := l.Amount
	if l.Burst != 0 {
		c = l.Burst
	}
	return grains(c)
}

func grains(permits int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(permits), big.NewInt(60_000))
}

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

// overrun charges what a call took beyond its estimate, at most down to one
// ceiling below zero.
func (s *story) overrun(at time.Time, amount int64) {
	room := new(big.Int).Add(s.level(at), ceiling(s.now()))
	taken := grains(amount)
	if taken.Cmp(room) > 0 {
		taken = room
	}
	s.events = append(s.events, &event{at: at, debt: taken})
}

// civil is the UTC day or month that an instant is in.
func civil(l limits.Limit, at time.Time) (start, end time.Time) {
	y, m, d := at.UTC().Date()
	if l.Window == limits.WindowMonth {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// used is what a calendar window holds.
func (s *story) used(window time.Time) int64 {
	var sum int64
	for _, e := range s.events {
		if e.limit == nil && e.window.Equal(window) {
			sum += e.amount
		}
	}
	return sum
}

// slots are the calls that hold a gauge now.
func (m *model) slots(l limits.Limit) int64 {
	var n int64
	for _, c := range m.calls {
		for i := range c.limits {
			if c.state == "open" && c.limits[i].Ledger("m") == l.Ledger("m") {
				n++
			}
		}
	}
	return n
}

const never = time.Duration(-1)

// wait is how long a cost has to wait on a limit at an instant.
func (m *model) wait(l limits.Limit, cost int64, now time.Time) time.Duration {
	if c := ceiling(l); grains(cost).Cmp(c) > 0 {
		return never
	}
	s := m.story(l)
	switch l.Policy {
	case limits.PolicyGauge:
		if m.slots(l)+cost > l.Amount {
			return time.Second
		}
	case limits.PolicyCalendar:
		if start, end := civil(l, m.latest); s.used(start)+cost > l.Amount {
			return end.Sub(now)
		}
	case limits.PolicyBucket:
		missing := new(big.Int).Sub(grains(cost), s.level(m.latest))
		if missing.Sign() > 0 {
			ms := missing.Add(missing, big.NewInt(l.Amount-1)).Div(missing, big.NewInt(l.Amount)).Int64()
			return time.Duration(ms)*time.Millisecond + m.latest.Sub(now)
		}
	}
	return 0
}

// reserve charges a call that has to wait for nothing.
func (m *model) reserve(r limits.Reservation, list []limits.Limit) {
	c := &modelCall{id: r.ID, order: len(m.calls), limits: list, expires: r.ExpiresAt, estimate: r.Estimate, state: "open"}
	for _, l := range list {
		window, _ := civil(l, m.latest)
		c.charged = append(c.charged, l.Cost(r.Estimate))
		c.windows = append(c.windows, window)
		if s := m.story(l); l.Policy != limits.PolicyGauge {
			s.events = append(s.events, &event{at: m.latest, call: r.ID, window: window, amount: l.Cost(r.Estimate)})
		}
	}
	m.calls[r.ID] = c
}

func (m *model) settle(c *modelCall, state string, actual limits.Cost) {
	c.state = state
	for i, l := range c.limits {
		s := m.ledgers[l.Ledger("m")]
		for _, e := range s.events {
			if e.call != c.id {
				continue
			}
			if cost := l.Cost(actual); l.Policy == limits.PolicyCalendar || cost <= c.charged[i] {
				e.amount = cost
			} else {
				s.overrun(m.latest, cost-c.charged[i])
			}
			break
		}
	}
}

// state is what Live has to say about a limit.
func (m *model) state(l limits.Limit, now time.Time) (remaining, debt int64, next time.Duration) {
	next = m.wait(l, 1, now)
	switch s := m.story(l); l.Policy {
	case limits.PolicyGauge:
		remaining = l.Amount - m.slots(l)
	case limits.PolicyCalendar:
		start, _ := civil(l, m.latest)
		remaining = l.Amount - s.used(start)
	case limits.PolicyBucket:
		remaining = new(big.Int).Div(s.level(m.latest), big.NewInt(60_000)).Int64() // Euclidean: floor
	}
	if l.Policy != limits.PolicyGauge {
		debt = max(-remaining, 0)
	}
	return max(remaining, 0), debt, next
}
