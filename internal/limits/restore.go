package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Restore takes back the open reservations of an earlier life, once each: their
// gauges are held, calendar windows that still run are loaded from the books and
// charged, and a later outcome corrects them as ever. Buckets are left as they
// are; a settlement gives nothing back to one that is younger than the charge.
// An error is limiter_unavailable, after which Restore may be called again.
func (m *Memory) Restore(ctx context.Context, open []Reservation) error {
	byTenant := map[uuid.UUID][]Reservation{}
	for _, r := range open {
		byTenant[r.Tenant] = append(byTenant[r.Tenant], r)
	}
	for tenant, list := range byTenant {
		if err := m.restore(ctx, tenant, list); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) restore(ctx context.Context, tenantID uuid.UUID, list []Reservation) error {
	return m.withWindows(ctx, tenantID, list, m.takeBack)
}

// Recall takes back a reservation that expired in an earlier life, and whose
// charges the books hold already: its first outcome corrects them, as ever. One
// that is known is left as it is. An error is limiter_unavailable.
func (m *Memory) Recall(ctx context.Context, r Reservation) error {
	return m.withWindows(ctx, r.Tenant, []Reservation{r}, func(t *tenant, r Reservation, at instant) {
		if t.calls[r.ID] != nil {
			return
		}
		c := restored(r)
		c.phase = expired
		t.calls[c.id] = c
		t.ended.put(c, at.wall.Add(remembered))
	})
}

// withWindows does something for each reservation, in one lock, once every
// window that they charged and that still runs is in memory.
func (m *Memory) withWindows(ctx context.Context, tenantID uuid.UUID, list []Reservation, do func(*tenant, Reservation, instant)) error {
	t := m.tenant(tenantID)
	for {
		t.mu.Lock()
		at := t.begin(m, m.now())
		var windows []unloaded
		for _, r := range list {
			windows = append(windows, m.unrestored(t, r, at)...)
		}
		if len(windows) == 0 {
			for _, r := range list {
				do(t, r, at)
			}
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		if err := m.load(ctx, t, tenantID, windows); err != nil {
			return err
		}
	}
}

func (m *Memory) unrestored(t *tenant, r Reservation, at instant) []unloaded {
	var list []unloaded
	for i := range r.Holds {
		h := &r.Holds[i]
		w := h.window()
		if h.Limit.Policy == PolicyCalendar && w.end > at.wallMS && t.ledgers[h.Ledger] == nil && m.loadable(w) {
			list = append(list, unloaded{WindowKey{h.Ledger, w.from()}, w, h.Limit.Amount})
		}
	}
	return list
}

func (h *Hold) window() window { return window{h.WindowStart.UnixMilli(), h.WindowEnd.UnixMilli()} }

func (m *Memory) takeBack(t *tenant, r Reservation, at instant) {
	if t.calls[r.ID] != nil {
		return
	}
	c := restored(r)
	for i := range c.holds {
		m.chargeAgain(t, &c.holds[i], at)
	}
	t.calls[c.id] = c
	t.open.put(c, c.expires)
}

// restored is a call as an earlier life made it; no ledger of this one has seen
// it.
func restored(r Reservation) *call {
	c := &call{id: r.ID, model: r.Model, at: r.At, expires: r.ExpiresAt, estimate: r.Estimate, holds: make([]hold, len(r.Holds))}
	for i, h := range r.Holds {
		limit := h.Limit
		c.holds[i] = hold{limit: &limit, key: h.Ledger, amount: h.Amount, candidate: h.Candidate, since: unseen, window: h.window()}
	}
	return c
}

// chargeAgain puts back what a restored call holds of gauges and of the windows
// that still run.
func (m *Memory) chargeAgain(t *tenant, h *hold, at instant) {
	k := t.ledgers[h.key]
	switch h.limit.Policy {
	case PolicyGauge:
		if k == nil {
			k = &kept{&gauge{amount: h.limit.Amount}, h.limit}
		}
	case PolicyCalendar:
		if h.window.end <= at.wallMS {
			return
		}
		if k == nil {
			k = &kept{&calendar{window: h.window, amount: h.limit.Amount}, h.limit}
		}
		if c, ok := k.ledger.(*calendar); !ok || c.start != h.window.start {
			return
		}
	default:
		return
	}
	t.ledgers[h.key] = k
	h.open = true
	k.ledger.charge(h, at)
}

// snapshot is the form of a clean end: buckets that are not full. Calendar
// windows come from the books, open reservations from Restore. A life that began
// after a kill may not have touched every bucket that was spent before: until
// they would be full, the next life has to know.
type snapshot struct {
	Version int                             `json:"version"`
	Tenants map[uuid.UUID]map[string]stored `json:"tenants"`
	Killed  *killed                         `json:"killed,omitempty"`
}

// killed says that buckets of scopes older than Before may have been empty at
// LastAlive, unless they are known.
type killed struct {
	Before    time.Time `json:"before"`
	LastAlive time.Time `json:"last_alive"`
}

type stored struct {
	Rate    int64 `json:"rate"`
	Ceiling int64 `json:"ceiling"`
	Level   int64 `json:"level_grains"`
	Last    int64 `json:"last_ms"`
}

const snapshotVersion = 1

// Snapshot is the state that a clean stop hands to the next life, as
// MemoryOptions.Snapshot. No call may run any more.
func (m *Memory) Snapshot() ([]byte, error) {
	s := snapshot{Version: snapshotVersion, Tenants: map[uuid.UUID]map[string]stored{}, Killed: m.killed}
	m.tenants.Range(func(tenantID, v any) bool {
		t := v.(*tenant)
		t.mu.Lock()
		defer t.mu.Unlock()
		at := t.begin(m, m.now())
		buckets := map[string]stored{}
		for key, k := range t.ledgers {
			if b, ok := k.ledger.(*bucket); ok {
				if b.refill(at.ms); b.level < b.full() {
					buckets[key] = stored{b.rate, b.ceiling, b.level, b.last}
				}
			}
		}
		if len(buckets) > 0 {
			s.Tenants[tenantID.(uuid.UUID)] = buckets
		}
		return true
	})
	return json.Marshal(s)
}

func (m *Memory) readSnapshot(raw []byte) error {
	var s snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("limits: snapshot: %w", err)
	}
	if s.Version != snapshotVersion {
		return fmt.Errorf("limits: snapshot of version %d", s.Version)
	}
	m.killed = s.Killed
	for tenantID, buckets := range s.Tenants {
		t := m.tenant(tenantID)
		for key, b := range buckets {
			t.ledgers[key] = &kept{ledger: &bucket{
				rate: b.Rate, ceiling: b.Ceiling, level: b.Level,
				last: min(b.Last, m.line(m.started)),
			}}
		}
	}
	return nil
}
