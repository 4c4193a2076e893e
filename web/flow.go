package web

import (
	"context"
	"net/url"
	"time"

	"weir/internal/limits"
	"weir/internal/usage"
	"weir/web/ui"
)

// flow is the traffic of the last while, with the state of the day in words.
type flow struct {
	Range, Unit string
	Band        ui.Band
	Rows        []usage.Row
	Bucket      usage.Bucket
	Totals      usage.Sums
	AsOf        time.Time
	Words       string // of the range: "In these 24 hours"
	Today       *today // nil: it could not be read
}

// flowRanges are the spans of the band.
var flowRanges = []struct {
	Key, Words, In string
	Bucket         usage.Bucket
	Each           string
}{
	{"60m", "60 min", "In these 60 minutes", usage.Minute, "minute"},
	{"24h", "24 h", "In these 24 hours", usage.Hour, "hour"},
	{"7d", "7 d", "In these 7 days", usage.Hour, "hour"},
	{"30d", "30 d", "In these 30 days", usage.Day, "day"},
}

// readFlow reads ?flow= and ?unit=.
func (p *Pages) readFlow(ctx context.Context, w workspace, q url.Values, day *today) (flow, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	f := flow{Range: "24h", Unit: "requests", Today: day}
	at := 1
	for i, r := range flowRanges {
		if q.Get("flow") == r.Key {
			f.Range, at = r.Key, i
		}
	}
	if q.Get("unit") == "tokens" {
		f.Unit = "tokens"
	}
	r := flowRanges[at]
	f.Words, f.Bucket = r.In, r.Bucket
	rep, err := p.reports.Report(ctx, w.Tenant.ID, usage.Query{
		From: flowFrom(f.Range, w.Now), To: w.Now, Bucket: r.Bucket, Zone: w.Now.Location(), Filter: usage.Filter{Tests: usage.WithTests},
	})
	if err != nil {
		return f, err
	}
	f.Totals, f.AsOf, f.Rows = rep.Totals, rep.AsOf.In(w.Now.Location()), rep.Rows
	f.Band = requestBand(rep.Rows, r.Bucket, w.Now)
	if f.Unit == "tokens" {
		for i, row := range rep.Rows {
			c := &f.Band.Columns[i]
			row.Start, row.End = row.Start.In(w.Now.Location()), row.End.In(w.Now.Location())
			c.Passed, c.Refused, c.Title = row.Tokens.Total(), 0, bucketLabel(row, r.Bucket)+": "+ui.Of(row.Tokens.Total(), "token", "tokens")
		}
	}
	f.link()
	f.Band.Label = f.label(r.Each)
	return f, nil
}

func (f flow) label(each string) string {
	if f.Unit == "tokens" {
		return "Tokens by the " + each + ": " + ui.Of(f.Totals.Tokens.Total(), "token", "tokens") + " passed"
	}
	return "Requests by the " + each + ": " + passedWords(f.Totals)
}

// link lets hours of the last days open minute by minute, and days hour by hour.
func (f *flow) link() {
	for i, r := range f.Rows {
		day := r.Start.In(f.AsOf.Location()).Format(time.DateOnly)
		switch {
		case f.Bucket == usage.Day:
			f.Band.Columns[i].Href = "/usage?range=dates&from=" + day + "&to=" + day
		case f.Bucket == usage.Hour && f.AsOf.Sub(r.Start) < minutesKept:
			f.Band.Columns[i].Href = "/usage?" + url.Values{"minute": {r.Start.Format(time.RFC3339)}}.Encode() + "#minutes"
		}
	}
}

// flowFrom is where a range begins: a whole bucket, so that the last column is
// the one that goes on.
func flowFrom(key string, now time.Time) time.Time {
	switch key {
	case "60m":
		return now.Add(-59 * time.Minute)
	case "7d":
		return limits.DayStart(noonOf(now).AddDate(0, 0, -6), now.Location())
	case "30d":
		return limits.DayStart(noonOf(now).AddDate(0, 0, -29), now.Location())
	}
	return now.Add(-23 * time.Hour)
}

func flowLinks(f flow, q url.Values) (out []ui.Link) {
	for _, r := range flowRanges {
		out = append(out, ui.Link{Words: r.Words, Href: link("/", q, "flow", r.Key), Current: f.Range == r.Key})
	}
	return out
}

func unitLinks(f flow, q url.Values) []ui.Link {
	return []ui.Link{
		{Words: "Requests", Href: link("/", q, "unit", ""), Current: f.Unit == "requests"},
		{Words: "Tokens", Href: link("/", q, "unit", "tokens"), Current: f.Unit == "tokens"},
	}
}

// flowAsked is the part of an address that shows the flow as it is.
func flowAsked(f *flow, q url.Values) url.Values {
	if f == nil {
		return q
	}
	out := url.Values{}
	if f.Range != "24h" {
		out.Set("flow", f.Range)
	}
	if f.Unit != "requests" {
		out.Set("unit", f.Unit)
	}
	return out
}

// flowTable is where the same is read as a table.
func flowTable(f flow) string {
	q := url.Values{"show": {f.Unit}}
	switch f.Range {
	case "7d":
		q.Set("bucket", "1h")
		q.Set("range", "7d")
	case "30d":
		q.Set("range", "30d")
	}
	return "/usage?" + q.Encode()
}
