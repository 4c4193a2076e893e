package limits

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
)

// WindowKey names one calendar window of one ledger.
type WindowKey struct {
	Ledger      string
	WindowStart time.Time
}

// Total is what the books hold of a window: of money in micro-units, and
// pico-units beyond them, of which there may be any number.
type Total struct{ Amount, Pico int64 }

// Books knows what finished calls have charged to calendar windows. CapTotals
// returns one total per key, in order; open reservations are no part of it.
type Books interface {
	CapTotals(ctx context.Context, tenant uuid.UUID, keys []WindowKey) ([]Total, error)
}

// MemoryOptions make a Memory. Only Now is required.
type MemoryOptions struct {
	Now       func() time.Time
	Books     Books     // nil: there is nothing to load
	Started   time.Time // of this process; calendar windows that began before are loaded. Zero: now
	Unclean   bool      // the earlier life left neither snapshot nor journal: ledgers older than Started start spent
	LastAlive time.Time // the last instant that the earlier life is known to have run. Zero: Started
	After     After     // nil: timers of the real clock
	Snapshot  []byte    // of the earlier life; one that can't be read counts as Unclean
	Journal   []Entry   // what happened after the snapshot; nothing after a clean end

	// What one tenant can make; 0 is the default.
	MaxLedgers  int // a million; a quarter of them is not for what callers name
	MaxNames    int // ledgers of one limit for each model or end user: a hundred thousand
	MaxOpen     int // reservations that are open: two hundred thousand
	MaxOutcomes int // remembered: half a million
}

// After makes a channel that is sent to once so much time is over, and what stops
// it.
type After func(time.Duration) (over <-chan time.Time, stop func())

func realTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Memory is the limits engine of one process. Its methods are safe for
// concurrent use.
type Memory struct {
	now     func() time.Time
	after   After
	books   Books
	epoch   time.Time // its monotonic reading carries ledgers over steps of the wall clock
	epochNS int64
	started time.Time
	killed  *killed // nil: every ledger that is not known is unused

	// left says what a ledger begins with, if that is known; nil: nothing is used.
	left func(*rule, ident) (int64, bool)

	maxLedgers, maxNames, maxOpen, maxOutcomes int

	mu      sync.RWMutex
	tenants map[uuid.UUID]*tenant
	all     []*tenant // only ever longer
}

// NewMemory returns an engine without open reservations.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{
		now: o.Now, after: o.After, books: o.Books, epoch: o.Now(), started: o.Started, tenants: map[uuid.UUID]*tenant{},
		maxLedgers: orDefault(o.MaxLedgers, 1_000_000), maxNames: orDefault(o.MaxNames, 100_000),
		maxOpen: orDefault(o.MaxOpen, 200_000), maxOutcomes: orDefault(o.MaxOutcomes, 500_000),
	}
	if m.after == nil {
		m.after = realTimer
	}
	m.epochNS = m.epoch.UnixNano()
	if m.started.IsZero() {
		m.started = m.epoch
	}
	if o.Unclean || len(o.Snapshot) > 0 && m.recover(o) != nil {
		m.killed = &killed{m.started, m.started}
		if !o.LastAlive.IsZero() && o.LastAlive.Before(m.started) {
			m.killed.LastAlive = o.LastAlive
		}
	}
	return m
}

func (m *Memory) recover(o MemoryOptions) error {
	open, err := m.readSnapshot(o.Snapshot)
	if err != nil {
		return err
	}
	if err := m.replay(o.Journal, open); err != nil {
		m.tenants, m.all = map[uuid.UUID]*tenant{}, nil
		return err
	}
	return nil
}

// mostNamed is how many ledgers a tenant has before there are none anew for single
// models, end users and client tokens: callers name those as they like, and must not
// take the last place from what the tenant has made.
func (m *Memory) mostNamed() int { return m.maxLedgers - m.maxLedgers/4 }

func orDefault(n, d int) int {
	if n == 0 {
		return d
	}
	return n
}

// line is an instant in ms on a line that does not step with the wall clock
// while the process lives.
func (m *Memory) line(t time.Time) int64 {
	return floorDiv(m.epochNS+int64(t.Sub(m.epoch)), int64(time.Millisecond))
}

// known is the tenant, or nil if it has never called.
func (m *Memory) known(u uuid.UUID) *tenant {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.tenants[u]
}

func (m *Memory) tenant(u uuid.UUID) *tenant {
	if t := m.known(u); t != nil {
		return t
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tenants[u]
	if t == nil {
		t = &tenant{
			id: u, memory: m, loading: make(chan struct{}, 1), index: map[ident]ref{},
			families: families{of: map[ident]uint32{}}, calls: map[uuid.UUID]*call{}, keyed: map[uuid.UUID]*call{},
		}
		m.tenants[u] = t
		m.all = append(m.all, t)
	}
	return t
}

// everyone is every tenant that has called so far.
func (m *Memory) everyone() []*tenant {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.all
}

// older tells whether a scope may have been used before t; only a UUIDv7 can
// say that it was not.
func older(scope uuid.UUID, t time.Time) bool {
	return scope.Version() != 7 || id.Time(scope).Before(t)
}

// fresh is the ledger of a rule that none is kept for, as it is at an instant.
func (t *tenant) fresh(r *rule, id ident, at *instant) ref {
	l := t.make(r.kind, id)
	spent := t.memory.killed != nil && older(r.limit.Scope.ID, t.memory.killed.Before)
	since := at.ms
	if spent {
		since = min(since, t.memory.line(t.memory.killed.LastAlive))
	}
	switch i := l.place(); r.kind {
	case kindBucket:
		b := t.buckets.at(i)
		b.rate, b.ceiling, b.last = r.limit.Amount, r.ceiling, since
		if !spent {
			b.level = b.full()
		}
	case kindMinute, kindRolling:
		t.slider(l).begin(r.limit.Amount, since, spent)
	case kindCalendar:
		c := t.calendars.at(i)
		c.window, c.amount = windowAt(&r.limit, at.wallMS, r.zone), r.limit.Amount
	case kindGauge:
		t.gauges.at(i).amount = r.limit.Amount
	}
	if t.memory.left != nil {
		if left, known := t.memory.left(r, id); known {
			t.prime(l, r, left)
		}
	}
	return l
}

var errCrowded = errors.New("limits: too many live ledgers or open reservations of one tenant")
