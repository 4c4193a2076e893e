package limits

import (
	"context"
	"fmt"
	"slices"
)

// unloaded is a calendar window that began before the process did and is not in
// memory yet.
type unloaded struct {
	WindowKey
	window window
	rule   *rule
	id     ident
}

// loadable tells of a window whether the books may know more of it than this
// life does. One that began in this life starts from 0 without a load.
func (m *Memory) loadable(w window) bool { return m.books != nil && w.from().Before(m.started) }

// load asks the books for windows and sets those that are still absent. One load
// of a tenant runs at a time, outside its lock; calls that need the same windows
// wait for it instead of asking again.
func (m *Memory) load(ctx context.Context, t *tenant, windows []unloaded) error {
	select {
	case t.loading <- struct{}{}:
		defer func() { <-t.loading }()
	case <-ctx.Done():
		return out(ctx.Err())
	}
	windows, err := t.absent(windows)
	if err != nil || len(windows) == 0 {
		return err
	}
	keys := make([]WindowKey, len(windows))
	for i, w := range windows {
		keys[i] = w.WindowKey
	}
	totals, err := m.books.CapTotals(ctx, t.id, keys)
	if err != nil {
		return out(err)
	}
	if len(totals) != len(keys) {
		return out(fmt.Errorf("limits: the books gave %d totals for %d windows", len(totals), len(keys)))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range windows {
		if t.index[w.id] == 0 {
			c := t.calendar(w.rule, w.id, w.window)
			if c.used = (sum{totals[i].Amount, totals[i].Pico}).carried(); c.used.n < 0 {
				c.used = sum{}
			}
		}
	}
	return nil
}

// calendar is a new ledger of a window, in which nothing is used.
func (t *tenant) calendar(r *rule, id ident, w window) *calendar {
	l := t.make(kindCalendar, id)
	t.enter(l, r)
	c := t.calendars.at(l.place())
	c.window, c.amount = w, r.limit.Amount
	return c
}

func (t *tenant) absent(windows []unloaded) ([]unloaded, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []unloaded
	for _, w := range windows {
		twice := slices.ContainsFunc(list, func(o unloaded) bool { return o.id == w.id })
		if t.index[w.id] == 0 && !twice {
			list = append(list, w)
		}
	}
	if len(t.index)+len(list) > t.memory.maxLedgers {
		return nil, out(errCrowded)
	}
	return list, nil
}
