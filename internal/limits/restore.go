package limits

import (
	"context"

	"github.com/google/uuid"
)

// Restore takes back the open reservations of an earlier life, once each: their
// gauges are held, calendar windows that still run are loaded from the books and
// charged, and a later outcome corrects them as ever. Buckets and sliding
// windows are left as they are; a settlement gives nothing back to one that is
// younger than the charge. An error is limiter_unavailable, after which Restore
// may be called again.
func (m *Memory) Restore(ctx context.Context, open []Reservation) error {
	byTenant := map[uuid.UUID][]Reservation{}
	for _, r := range open {
		byTenant[r.Tenant] = append(byTenant[r.Tenant], r)
	}
	for tenant, list := range byTenant {
		if err := m.withWindows(ctx, tenant, list, (*tenantAt).takeBack); err != nil {
			return err
		}
	}
	return nil
}

// Recall takes back a reservation that expired in an earlier life, and whose
// charges the books hold already: its first outcome corrects them, as ever. One
// that is known is left as it is. An error is limiter_unavailable.
func (m *Memory) Recall(ctx context.Context, r Reservation) error {
	return m.withWindows(ctx, r.Tenant, []Reservation{r}, func(t *tenantAt, c *call) {
		c.phase = expired
		t.know(c)
		t.put(&t.ended, c, t.at.micros+remembered.Microseconds())
	})
}

// tenantAt is a tenant, locked, at an instant.
type tenantAt struct {
	*tenant
	at instant
}

// withWindows does something for each reservation that is not known, in one
// lock, once every window that they charged and that still runs is in memory.
func (m *Memory) withWindows(ctx context.Context, tenantID uuid.UUID, list []Reservation, do func(*tenantAt, *call)) error {
	t := m.tenant(tenantID)
	calls := make([]*call, len(list))
	for i, r := range list {
		c, err := restored(r)
		if err != nil {
			return out(err)
		}
		calls[i] = c
	}
	for {
		t.mu.Lock()
		at := t.begin(m.now())
		var windows []unloaded
		for _, c := range calls {
			windows = t.unrestored(windows, c, &at)
		}
		if len(windows) == 0 {
			for _, c := range calls {
				if t.calls[c.id] == nil {
					do(&tenantAt{t, at}, c)
				}
			}
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		if err := m.load(ctx, t, windows); err != nil {
			return err
		}
	}
}

func (t *tenant) unrestored(list []unloaded, c *call, at *instant) []unloaded {
	for i := range c.holds {
		h := &c.holds[i]
		w := window{h.mark, h.end}
		if h.rule.kind == kindCalendar && w.end > at.wallMS && t.index[h.id] == 0 && t.memory.loadable(w) {
			list = append(list, unloaded{WindowKey{h.rule.name, w.from()}, w, h.rule, h.id})
		}
	}
	return list
}

// restored is a call as an earlier life made it; no ledger of this one has seen
// it. Its holds name their ledgers whole.
func restored(r Reservation) (*call, error) {
	c := &call{
		id: r.ID, model: r.Model, at: r.At.UnixMicro(), expires: r.ExpiresAt.UnixMicro(), estimate: r.Estimate,
		holds: make([]hold, len(r.Holds)), moves: r.Moves, candidate: -1, once: r.Once,
	}
	for i, h := range r.Holds {
		of := &rule{}
		if err := of.compile(h.Limit); err != nil {
			return nil, err
		}
		of.name, of.id, of.each, of.user = h.Ledger, identify([]byte(h.Ledger)), false, false
		c.holds[i] = hold{
			rule: of, id: of.id, amount: sum{h.Amount, h.Pico}, candidate: h.Candidate, ended: h.Ended,
			mark: h.WindowStart.UnixMilli(), end: h.WindowEnd.UnixMilli(),
		}
	}
	return c, nil
}

func (t *tenantAt) takeBack(c *call) {
	for i := range c.holds {
		t.chargeAgain(&c.holds[i])
	}
	t.know(c)
	t.put(&t.open, c, c.expires)
}

// chargeAgain puts back what a restored call holds of gauges and of the windows
// that still run.
func (t *tenantAt) chargeAgain(h *hold) {
	h.ref = t.index[h.id]
	switch h.rule.kind {
	case kindGauge:
		if h.ended {
			return
		}
		if h.ref == 0 {
			h.ref = t.fresh(h.rule, h.id, &t.at)
			t.enter(h.ref, h.rule)
		}
	case kindCalendar:
		if h.end <= t.at.wallMS {
			return
		}
		if h.ref == 0 {
			t.calendar(h.rule, h.id, window{h.mark, h.end})
			h.ref = t.index[h.id]
		}
		if t.calendars.at(h.ref.place()).start != h.mark {
			return
		}
	default:
		return
	}
	t.charge(h)
	if h.ended {
		t.lapse(h)
	}
}
