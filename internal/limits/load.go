package limits

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// unloaded is a calendar window that began before the process did and is not in
// memory yet.
type unloaded struct {
	WindowKey
	window window
	amount int64
}

// missing are the windows that have to be loaded before these charges can be
// judged. A window that began in this life starts from 0 without a load.
func (m *Memory) missing(t *tenant, at instant, lists ...[]charge) []unloaded {
	var list []unloaded
	for _, charges := range lists {
		for _, c := range charges {
			if c.limit.Policy != PolicyCalendar || t.ledgers[c.key] != nil {
				continue
			}
			if w := windowAt(c.limit, at.wallMS, c.zone); m.loadable(w) {
				list = append(list, unloaded{WindowKey{c.key, w.from()}, w, c.limit.Amount})
			}
		}
	}
	return list
}

func (m *Memory) loadable(w window) bool { return m.books != nil && w.from().Before(m.started) }

// load asks the books for windows and sets those that are still absent. One load
// of a tenant runs at a time, outside its lock; calls that need the same windows
// wait for it instead of asking again.
func (m *Memory) load(ctx context.Context, t *tenant, tenantID uuid.UUID, windows []unloaded) error {
	select {
	case t.loading <- struct{}{}:
		defer func() { <-t.loading }()
	case <-ctx.Done():
		return out(ctx.Err())
	}
	windows, err := m.absent(t, windows)
	if err != nil || len(windows) == 0 {
		return err
	}
	keys := make([]WindowKey, len(windows))
	for i, w := range windows {
		keys[i] = w.WindowKey
	}
	totals, err := m.books.CapTotals(ctx, tenantID, keys)
	if err != nil {
		return out(err)
	}
	if len(totals) != len(keys) {
		return out(fmt.Errorf("limits: the books gave %d totals for %d windows", len(totals), len(keys)))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range windows {
		if t.ledgers[w.Ledger] == nil {
			t.ledgers[w.Ledger] = &kept{ledger: &calendar{window: w.window, amount: w.amount, used: max(totals[i], 0)}}
		}
	}
	return nil
}

func (m *Memory) absent(t *tenant, windows []unloaded) ([]unloaded, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []unloaded
	for _, w := range windows {
		twice := slices.ContainsFunc(list, func(o unloaded) bool { return o.Ledger == w.Ledger })
		if t.ledgers[w.Ledger] == nil && !twice {
			list = append(list, w)
		}
	}
	if len(t.ledgers)+len(list) > m.maxLedgers {
		return nil, out(errCrowded)
	}
	return list, nil
}

// ready locks the tenant with every window of the charges in memory, and reads
// the clock: the one reading that the operation goes by. The caller unlocks,
// unless there is an error.
func (m *Memory) ready(ctx context.Context, tenantID uuid.UUID, lists ...[]charge) (*tenant, instant, error) {
	t := m.tenant(tenantID)
	for {
		t.mu.Lock()
		at := t.begin(m, m.now())
		windows := m.missing(t, at, lists...)
		if len(windows) == 0 {
			return t, at, nil
		}
		t.mu.Unlock()
		if err := m.load(ctx, t, tenantID, windows); err != nil {
			return nil, instant{}, err
		}
	}
}
