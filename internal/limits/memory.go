package limits

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
)

// WindowKey names one calendar window of one ledger.
type WindowKey struct {
	Ledger      string
	WindowStart time.Time
}

// Books knows what finished calls have charged to calendar windows. CapTotals
// returns one total per key, in order; open reservations are no part of it.
type Books interface {
	CapTotals(ctx context.Context, tenant uuid.UUID, keys []WindowKey) ([]int64, error)
}

// MemoryOptions make a Memory. Only Now is required.
type MemoryOptions struct {
	Now       func() time.Time
	Books     Books     // nil: there is nothing to load
	Started   time.Time // of this process; calendar windows that began before are loaded. Zero: now
	Unclean   bool      // the earlier life left no snapshot: buckets older than Started start empty
	LastAlive time.Time // the last instant that the earlier life is known to have run. Zero: Started
	Snapshot  []byte    // of the earlier life's clean end; one that can't be read counts as Unclean

	MaxLedgers  int // of one tenant; 0: a million
	MaxOutcomes int // remembered for one tenant; 0: half a million
}

// Memory is the limits engine of one process. Its methods are safe for
// concurrent use.
type Memory struct {
	now     func() time.Time
	books   Books
	epoch   time.Time // its monotonic reading carries ledgers over steps of the wall clock
	started time.Time
	killed  *killed // nil: every bucket that is not known is full

	maxLedgers, maxOutcomes int

	tenants sync.Map // uuid.UUID → *tenant
}

// NewMemory returns an engine without open reservations.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{
		now: o.Now, books: o.Books, epoch: o.Now(), started: o.Started,
		maxLedgers: o.MaxLedgers, maxOutcomes: o.MaxOutcomes,
	}
	if m.started.IsZero() {
		m.started = m.epoch
	}
	if m.maxLedgers == 0 {
		m.maxLedgers = 1_000_000
	}
	if m.maxOutcomes == 0 {
		m.maxOutcomes = 500_000
	}
	if o.Unclean || len(o.Snapshot) > 0 && m.readSnapshot(o.Snapshot) != nil {
		m.killed = &killed{m.started, m.started}
		if !o.LastAlive.IsZero() && o.LastAlive.Before(m.started) {
			m.killed.LastAlive = o.LastAlive
		}
	}
	return m
}

// instant is one reading of the clock, as a tenant's ledgers see it: they have
// never seen a later one.
type instant struct {
	wall   time.Time // as read, UTC, to the microsecond
	wallMS int64     // of the wall clock, the latest seen
	ms     int64     // on a line without steps, the latest seen
	behind int64     // how far ms is ahead of the reading
}

// line is an instant in ms on a line that does not step with the wall clock
// while the process lives.
func (m *Memory) line(t time.Time) int64 { return m.epoch.Add(t.Sub(m.epoch)).UnixMilli() }

// ledger is the state of one limit: what is used now, and since when. The first
// argument of time-dependent methods was touched in the same lock.
type ledger interface {
	// touch refills, moves to the window that runs, and takes over a changed limit.
	touch(l *Limit, at instant)
	// wait is the time until cost fits, 0 if it does; false if it never can.
	wait(cost int64, at instant) (time.Duration, bool)
	// charge takes h.amount and notes in h where it went.
	charge(h *hold, at instant)
	// settle replaces what h charged by actual, and is the last use of h.
	settle(h *hold, actual int64, at instant)
	// lapse ends an open hold: its slot is free, the rest stays charged.
	lapse(h *hold)
	// forget is the last use of an h that was never settled.
	forget(h *hold)
	// fill states what is used, held and left.
	fill(s *State, at instant)
	// idle tells that a new ledger would answer alike.
	idle(at instant) bool
}

// kept is a ledger with the limit that it was last looked at with (nil: none yet).
type kept struct {
	ledger ledger
	limit  *Limit
}

// tenant is everything that one tenant's calls touch, under one lock.
type tenant struct {
	loading chan struct{} // held by the one call that loads windows

	mu         sync.Mutex
	latest     int64 // ms
	latestWall int64 // ms
	ledgers    map[string]*kept
	calls      map[uuid.UUID]*call
	open       queue   // by expiry
	lapsed     []*call // past their expiry, to be handed out by Expire
	ended      queue   // outcomes, by the time to forget them
}

func (m *Memory) tenant(u uuid.UUID) *tenant {
	if t, ok := m.tenants.Load(u); ok {
		return t.(*tenant)
	}
	t, _ := m.tenants.LoadOrStore(u, &tenant{
		loading: make(chan struct{}, 1),
		ledgers: map[string]*kept{},
		calls:   map[uuid.UUID]*call{},
	})
	return t.(*tenant)
}

// begin reads the clock once for one operation and ends the leases that are
// over. The lock is held.
func (t *tenant) begin(m *Memory, now time.Time) instant {
	raw := m.line(now)
	t.latest = max(t.latest, raw)
	t.latestWall = max(t.latestWall, now.UnixMilli())
	at := instant{wall: now.UTC().Truncate(time.Microsecond), wallMS: t.latestWall, ms: t.latest, behind: t.latest - raw}
	for len(t.open) > 0 && !t.open[0].expires.After(now) {
		c := heap.Pop(&t.open).(*call)
		c.phase = lapsed
		t.eachHold(c, func(l ledger, h *hold) { l.lapse(h) })
		t.lapsed = append(t.lapsed, c)
	}
	return at
}

func (t *tenant) eachHold(c *call, do func(ledger, *hold)) {
	for i := range c.holds {
		if k, ok := t.ledgers[c.holds[i].key]; ok {
			do(k.ledger, &c.holds[i])
		}
	}
}

// fresh is the ledger of a limit that none is kept for.
func (m *Memory) fresh(l *Limit, z *time.Location, at instant) ledger {
	switch l.Policy {
	case PolicyCalendar:
		return &calendar{window: windowAt(l, at.wallMS, z), amount: l.Amount}
	case PolicyGauge:
		return &gauge{amount: l.Amount}
	}
	b := &bucket{rate: l.Amount, ceiling: l.ceiling(), last: at.ms}
	b.level = b.full()
	if m.killed != nil && older(l.Scope.ID, m.killed.Before) {
		b.level, b.last = 0, m.line(m.killed.LastAlive)
		b.refill(at.ms)
	}
	return b
}

// older tells whether a scope may have been used before t; only a UUIDv7 can
// say that it was not.
func older(scope uuid.UUID, t time.Time) bool {
	return scope.Version() != 7 || id.Time(scope).Before(t)
}

// keep stores ledgers that an admitted call made. When a tenant has too many,
// even without the idle ones, none is stored and the call fails.
func (m *Memory) keep(t *tenant, charges []charge, at instant) error {
	missing := 0
	for i := range charges {
		if !charges[i].kept {
			missing++
		}
	}
	if missing > 0 && len(t.ledgers)+missing > m.maxLedgers {
		t.sweep(at, len(t.ledgers))
		if len(t.ledgers)+missing > m.maxLedgers {
			return out(errCrowded)
		}
	}
	for i := range charges {
		c := &charges[i]
		if t.ledgers[c.key] == nil {
			t.ledgers[c.key] = &kept{c.ledger, c.retained()}
		}
	}
	return nil
}

var errCrowded = errors.New("limits: too many live ledgers of one tenant")

// out is the answer of a limiter that cannot decide.
func out(cause error) error {
	return fault.New(fault.Unavailable, "limiter_unavailable", "The limiter cannot decide right now. Try again in a few seconds.").
		Because(cause).After(5 * time.Second)
}
