package web

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"weir/internal/limits"
	"weir/internal/usage"
	"weir/web/ui"
)

// plot is what the script draws, where there is one. It says the same as the
// drawing that it replaces.
type plot struct {
	Unit   string     `json:"unit"`
	Times  []int64    `json:"t"` // Unix seconds
	Words  []string   `json:"words"`
	Hrefs  []string   `json:"hrefs"`
	Series []plotLine `json:"series"`
	Marks  []plotMark `json:"marks"`
}

type plotMark struct {
	At   int    `json:"i"`
	Word string `json:"w"`
}

type plotLine struct {
	Name   string    `json:"name"`
	Values []float64 `json:"v"`
	Said   []string  `json:"said"`
}

// chart stacks the groups by bucket; those beyond the colours are one.
func (u *usagePage) chart() {
	series := map[usage.Group]int{}
	n := 0
	for _, g := range u.Groups {
		series[g.Group] = g.Series
		n = max(n, g.Series+1)
	}
	u.Chart = ui.Stack{Series: make([]string, n), Columns: make([]ui.StackColumn, len(u.Buckets)), NoteAt: -1}
	for _, g := range u.Groups {
		u.Chart.Series[g.Series] = g.Name
	}
	if len(u.Groups) > ui.MostSeries {
		u.Chart.Series[ui.MostSeries-1] = ui.Of(int64(len(u.Groups)-ui.MostSeries+1), "other", "others")
	}
	sums := make([][]usage.Sums, len(u.Buckets))
	i := -1
	var last time.Time
	for _, r := range u.Report.Rows {
		if i < 0 || !r.Start.Equal(last) {
			i, last = i+1, r.Start
			sums[i] = make([]usage.Sums, n)
			u.Chart.Columns[i].Values = make([]float64, n)
		}
		k := series[r.Group]
		u.Chart.Columns[i].Values[k] += u.value(r.Sums)
		sums[i][k].Add(r.Sums)
	}
	var starts []time.Time
	for i, b := range u.Buckets {
		starts = append(starts, b.Start)
		u.Chart.Columns[i].Title = bucketLabel(b, u.Span.Bucket) + ": " + u.said(b.Sums)
		u.Chart.Columns[i].Href = u.zoomLink(b)
		if b.Start.Before(u.Now) && u.Now.Before(b.End) {
			u.Chart.Note, u.Chart.NoteAt = "so far, to "+u.Now.Format("15:04"), i
		}
	}
	u.Chart.Marks = marks(starts, u.Span.Bucket, u.Now)
	u.Chart.Label = u.said(u.Report.Totals) + " " + bucketName(u.Span.Bucket) + ", " + u.Span.words(u.Now) + ". The table below says the same."
	if u.Chart.NoteAt < 0 || len(u.Buckets) > 40 {
		u.Chart.Note, u.Chart.NoteAt = "", 0
	}
	u.Plot = u.plot(sums)
}

func (u *usagePage) plot(sums [][]usage.Sums) string {
	d := plot{Unit: u.Show}
	for k, name := range u.Chart.Series {
		line := plotLine{Name: name}
		for i := range u.Buckets {
			line.Values = append(line.Values, u.Chart.Columns[i].Values[k])
			said := ""
			if sums[i] != nil && !sums[i][k].Quiet() {
				said = u.said(sums[i][k])
			}
			line.Said = append(line.Said, said)
		}
		d.Series = append(d.Series, line)
	}
	for i, b := range u.Buckets {
		d.Times = append(d.Times, b.Start.Unix())
		d.Words = append(d.Words, u.Chart.Columns[i].Title)
		d.Hrefs = append(d.Hrefs, u.Chart.Columns[i].Href)
	}
	for _, m := range u.Chart.Marks {
		d.Marks = append(d.Marks, plotMark{int(m.At*float64(len(u.Buckets)) + 0.5), m.Word})
	}
	out, err := json.Marshal(d)
	if err != nil {
		return "" // floats that are numbers and text can be written
	}
	return string(out)
}

// zoomed is how long the minute view is.
const zoomed = time.Hour

// minutesKept is how far back minutes reach, with some room.
const minutesKept = 46 * time.Hour

// zoom is an hour of the span, minute by minute.
type zoom struct {
	From, To time.Time
	Band     ui.Band
	Totals   usage.Sums
	Rows     []usage.Row
}

// zoomLink opens a bucket that is not longer than the view, in it.
func (u *usagePage) zoomLink(b usage.Row) string {
	if b.End.Sub(b.Start) > zoomed || u.Now.Sub(b.Start) > minutesKept || b.Start.After(u.Now) {
		return ""
	}
	return link("/usage", u.Query, "minute", b.Start.Format(time.RFC3339)) + "#minutes"
}

// readZoom reads ?minute=, and by itself the hour up to now of a span that goes
// on.
func (p *Pages) readZoom(ctx context.Context, u usagePage) (*zoom, error) {
	at, err := time.Parse(time.RFC3339, u.Query.Get("minute"))
	if err != nil {
		if u.Span.Key != "today" {
			return nil, nil //nolint:nilnil // no part is asked for: no fault
		}
		at = u.Now.Add(-zoomed + time.Minute)
	}
	at = at.In(u.Now.Location()).Truncate(time.Minute)
	if u.Now.Sub(at) > minutesKept || at.After(u.Now) {
		return nil, nil //nolint:nilnil // as above
	}
	rep, err := p.reports.Report(ctx, u.Tenant.ID, usage.Query{From: at, To: at.Add(zoomed), Bucket: usage.Minute, Filter: u.Filters.Filter, Zone: u.Now.Location()})
	if err != nil {
		return nil, err
	}
	z := &zoom{From: rep.From.In(u.Now.Location()), To: rep.To.In(u.Now.Location()), Totals: rep.Totals, Rows: rep.Rows}
	z.Band = requestBand(rep.Rows, usage.Minute, u.Now)
	z.Band.Label = "Requests minute by minute from " + z.From.Format("15:04") + " to " + z.To.Format("15:04 MST") + ": " + passedWords(rep.Totals)
	if u.Filters.Customer != [16]byte{} && u.Filters.Counter == [16]byte{} && u.Filters.Model == "" {
		contract, err := p.billing.ContractOf(ctx, u.Tenant.ID, u.Filters.Customer)
		if err == nil {
			z.crest(contract.Limits)
		}
	}
	return z, nil
}

// crest draws the limit of requests a minute, where there is one.
func (z *zoom) crest(list []limits.Limit) {
	for _, l := range list {
		if l.Dimension == limits.DimensionRequests && l.Window == limits.WindowMinute && len(l.Models) == 0 && l.Scope.Kind == limits.ScopeCustomer {
			z.Band.Crest = float64(l.Amount)
			z.Band.CrestWords, z.Band.CrestShort = "the plan allows "+ui.Count(l.Amount)+" a minute", ui.Count(l.Amount)+" a minute"
		}
	}
}

func passedWords(s usage.Sums) string {
	return ui.Of(s.Requests, "request", "requests") + " passed, " + ui.Count(s.Refused) + " refused"
}

// requestBand draws rows without groups: requests that passed, and above them
// those that were refused.
func requestBand(rows []usage.Row, b usage.Bucket, now time.Time) ui.Band {
	band := ui.Band{End: "now"}
	var starts []time.Time
	for _, r := range rows {
		r.Start, r.End = r.Start.In(now.Location()), r.End.In(now.Location())
		starts = append(starts, r.Start)
		band.Columns = append(band.Columns, ui.BandColumn{
			Passed: r.Requests, Refused: r.Refused, Title: strings.TrimSuffix(bucketLabel(r, b), " ") + ": " + passedWords(r.Sums), Open: r.End.After(now),
		})
	}
	band.Marks = marks(starts, b, now)
	if n := len(rows); n > 0 && !rows[n-1].End.After(now) {
		band.End = rows[n-1].End.In(now.Location()).Format("15:04")
	}
	return band
}
