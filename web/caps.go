package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/limits"
	"weir/web/ui"
)

// caps are the calendar limits of today and this month, the closest first.
type caps struct {
	Levels []ui.Level
	All    int // how many there are
	Spent  []spentCap
	Resets time.Time // when the tenant's day ends
}

// spentCap is a cap that lets nothing through until it begins anew.
type spentCap struct {
	Who, What string
	ResetAt   time.Time
}

const shownCaps = 5

// readCaps asks the limits engine how the caps stand. Whose they are is for who
// may see customers; others see the tenant's own.
func (p *Pages) readCaps(ctx context.Context, w workspace) (caps, error) {
	_, ends, in := w.Tenant.Zones.Day(w.Now)
	c := caps{Resets: ends.In(in)}
	list := calendar(w.Tenant.Limits)
	who := map[limits.Scope]string{}
	if w.May(seeCustomers) {
		contracts, err := p.billing.Contracts(ctx, w.Tenant.ID, watchedCustomers)
		if err != nil {
			return c, err
		}
		for _, k := range contracts {
			for _, l := range calendar(k.Own) {
				who[l.Scope] = k.Customer.Name
				list = append(list, l)
			}
		}
	}
	if len(list) == 0 {
		return c, nil
	}
	states, err := p.limits.Live(ctx, w.Tenant.ID, list, "", "")
	if err != nil {
		return c, err
	}
	slices.SortStableFunc(states, func(a, b limits.State) int { return cmp.Compare(fullness(b), fullness(a)) })
	c.All = len(states)
	for _, s := range states {
		level := levelOf(s, w.Now)
		level.Name, level.Of = cmp.Or(who[s.Limit.Scope], w.Tenant.Name), strings.ToLower(level.Name)
		if s.Remaining == 0 && s.Limit.Mode != limits.ModeShadow {
			c.Spent = append(c.Spent, spentCap{level.Name, level.Of, s.ResetAt.In(w.Now.Location())})
		}
		if len(c.Levels) < shownCaps {
			c.Levels = append(c.Levels, level)
		}
	}
	return c, nil
}

func calendar(list []limits.Limit) (out []limits.Limit) {
	for _, l := range list {
		if l.Policy == limits.PolicyCalendar {
			out = append(out, l)
		}
	}
	return out
}

func fullness(s limits.State) float64 {
	return float64(s.Used+s.Held) / float64(max(s.Limit.Amount, 1))
}
