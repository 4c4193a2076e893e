package web

import (
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/capacity"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/web/ui"
)

// capacityView is the capacity check beside a plan or a quote.
type capacityView struct {
	Known   bool // false: it could not be read, or nobody asked
	Ceiling string
	Over    bool
	Rows    []capacityRow
	More    int    // rows that are not shown
	Tipping string // plans of which one customer more goes over the ceiling
}

// capacityRow is one model, or several that stand alike.
type capacityRow struct {
	Name, Also  string
	Now, After  string // the ratio
	Says, Stand string
	Over        bool
	Gauge       ui.Gauge
	Resting     string
	NoLimit     bool
}

// mostCapacityRows is how many rows the check shows.
const mostCapacityRows = 6

// capacityOf reads the check; what goes wrong leaves the page as it is.
func (p *Pages) capacityOf(c echo.Context, read func() (capacity.Report, error)) capacityView {
	r := tile(p, c, "capacity", read)
	if r == nil {
		return capacityView{}
	}
	v := capacityView{Known: true, Over: r.Over()}
	if r.CeilingPercent > 0 {
		v.Ceiling = factor(r.CeilingPercent)
	}
	v.Tipping = strings.Join(r.Tipping, ", ")
	for _, row := range r.Rows {
		if len(v.Rows) == mostCapacityRows {
			v.More++
			continue
		}
		v.Rows = append(v.Rows, capacityRowOf(row, r.CeilingPercent))
	}
	return v
}

func factor(percent int64) string {
	if percent == capacity.Unlimited {
		return "∞"
	}
	return strings.TrimSuffix(capacity.Times(percent), " times") + "×"
}

func capacityRowOf(row capacity.Row, ceiling int64) capacityRow {
	out := capacityRow{Name: row.Models[0], Over: row.Over(ceiling), Resting: strings.Join(row.Resting, ", ")}
	if more := len(row.Models) - 1; more > 0 {
		out.Also = "and " + ui.Of(int64(more), "model that stands alike", "models that stand alike")
	}
	m, limited := row.Tightest()
	if !limited {
		out.NoLimit, out.Says = true, "no key that serves it has a limit that is known"
		return out
	}
	now, after := m.Percent()
	out.Now, out.After = factor(now), factor(after)
	out.Says = "carry " + ui.Count(m.Carried) + " " + m.Words() + "; " + soldWords(m)
	most := max(ceiling, 100)
	if ceiling > 0 {
		out.Stand = "within " + factor(ceiling)
	}
	switch {
	case out.Over:
		out.Stand = "over " + factor(ceiling)
	case ceiling > 0 && after > ceiling:
		out.Stand = "over " + factor(ceiling) + " already"
	}
	out.Gauge = ui.Gauge{
		Label: row.Models[0] + ": sold " + out.After + " of what the keys carry", Limit: most,
		Used: min(now, most), Held: max(0, min(after, most)-min(now, most)), Debt: max(0, min(after, 1_000_000)-most),
	}
	return out
}

func soldWords(m capacity.Measure) string {
	switch {
	case m.Sold == capacity.Unlimited:
		return "somebody is sold them without a limit"
	case m.After == capacity.Unlimited:
		return "sold " + ui.Count(m.Sold) + ", and this has no such limit"
	case m.After >= m.Sold:
		return "sold " + ui.Count(m.Sold) + ", this adds " + ui.Count(m.After-m.Sold)
	}
	return "sold " + ui.Count(m.Sold) + ", this takes away " + ui.Count(m.Sold-m.After)
}

// planCapacity is the check of a plan: everybody on it with these limits; of a
// new one, one customer more.
func (p *Pages) planCapacity(c echo.Context, tenant uuid.UUID, plan string, list []limits.Limit) capacityView {
	return p.capacityOf(c, func() (capacity.Report, error) {
		return p.capacity.Check(c.Request().Context(), tenant, planChange(plan, list))
	})
}

func planChange(plan string, list []limits.Limit) capacity.Change {
	if at, err := id.Plan.Parse(plan); err == nil {
		return capacity.Change{Limits: list, Plan: at}
	}
	return capacity.Change{Limits: list, New: true}
}
