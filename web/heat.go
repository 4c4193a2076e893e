package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/usage"
	"weir/web/ui"
)

// heat is what share of a customer's calls was refused, hour by hour.
type heat struct {
	Rows           []ui.HeatRow // days, the latest first
	Asked, Refused int64
	AsOf           time.Time
}

// heatDays is how many days are looked back on, today with them.
const heatDays = 7

// readHeat reads the days of the tenant's own zone, by the hours that its clock
// shows: one that comes twice is one cell, and one that the clock skips, or that
// a change of the zone left out of a day, stays empty.
func (p *Pages) readHeat(ctx context.Context, w workspace, customer uuid.UUID) (heat, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	h := heat{}
	var starts []time.Time
	for at := w.Now; len(starts) < heatDays; at = starts[len(starts)-1].Add(-time.Nanosecond) {
		start, _, in := w.Tenant.Zones.Day(at)
		starts = append(starts, start.In(in))
		h.Rows = append(h.Rows, ui.HeatRow{Name: start.In(in).Format("Mon 2 Jan"), Cells: make([]ui.HeatCell, 24)})
	}
	report, err := p.reports.Report(ctx, w.Tenant.ID, usage.Query{
		From: starts[heatDays-1], To: w.Now, Bucket: usage.Hour, Zone: w.Now.Location(), Filter: usage.Filter{Customer: customer, Tests: usage.WithTests},
	})
	if err != nil {
		return h, err
	}
	h.Asked, h.Refused, h.AsOf = report.Totals.Requests+report.Totals.Refused, report.Totals.Refused, report.AsOf.In(w.Now.Location())
	for _, r := range report.Rows {
		for i, start := range starts {
			if !r.Start.Before(start) {
				cell := &h.Rows[i].Cells[r.Start.In(start.Location()).Hour()]
				cell.Asked, cell.Refused = cell.Asked+r.Requests+r.Refused, cell.Refused+r.Refused
				h.Rows[i].Total += r.Refused
				break
			}
		}
	}
	for hour := w.Now.In(starts[0].Location()).Hour() + 1; hour < 24; hour++ {
		h.Rows[0].Cells[hour].Ahead = true
	}
	return h, nil
}

// Said is the whole of it in words, of seven days.
func (h heat) Said(now time.Time) string { return h.said("in these seven days", now) }

func (h heat) said(when string, now time.Time) string {
	words := ui.Count(h.Refused) + " of " + ui.Of(h.Asked, "call", "calls") + " refused " + when
	if h.Asked > 0 {
		words += ", " + strconv.FormatFloat(100*float64(h.Refused)/float64(h.Asked), 'f', 1, 64) + "%"
	}
	return words + ". Hours of " + now.Location().String() + ", as of " + h.AsOf.Format("15:04:05 MST") + ". What is still ahead is hatched."
}

// hottest is how many customers the strip of today shows, the most refused
// first.
const hottest = 12

// readCustomersHeat reads the hours of the tenant's day, by customer.
func (p *Pages) readCustomersHeat(ctx context.Context, w workspace) (heat, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	start, _, in := w.Tenant.Zones.Day(w.Now)
	report, err := p.reports.Report(ctx, w.Tenant.ID, usage.Query{
		From: start, To: w.Now, Bucket: usage.Hour, Zone: in, GroupBy: usage.ByCustomer, Filter: usage.Filter{Tests: usage.WithTests},
	})
	h := heat{Asked: report.Totals.Requests + report.Totals.Refused, Refused: report.Totals.Refused, AsOf: report.AsOf.In(w.Now.Location())}
	if err != nil || h.Asked == 0 {
		return h, err
	}
	var ids []uuid.UUID
	for _, r := range report.Rows {
		ids = append(ids, r.Group.ID)
	}
	names, err := p.labels(ctx, w.Tenant.ID, ids)
	if err != nil {
		return h, err
	}
	now := w.Now.In(in).Hour()
	rows := map[usage.Group]*ui.HeatRow{}
	for _, r := range report.Rows {
		row := rows[r.Group]
		if row == nil {
			name, _, _ := names.group(usage.ByCustomer, r.Group)
			row = &ui.HeatRow{Name: name, Cells: make([]ui.HeatCell, 24)}
			for hour := now + 1; hour < 24; hour++ {
				row.Cells[hour].Ahead = true
			}
			rows[r.Group] = row
		}
		if r.Start.After(w.Now) {
			continue
		}
		cell := &row.Cells[r.Start.In(in).Hour()]
		cell.Asked, cell.Refused = cell.Asked+r.Requests+r.Refused, cell.Refused+r.Refused
		row.Total += r.Refused
	}
	for _, row := range rows {
		h.Rows = append(h.Rows, *row)
	}
	slices.SortFunc(h.Rows, func(a, b ui.HeatRow) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	h.Rows = h.Rows[:min(len(h.Rows), hottest)]
	return h, nil
}

// SaidToday is the whole of it in words, of today.
func (h heat) SaidToday(now time.Time) string { return h.said("since midnight", now) }
