package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/catalogue"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// factRow is one limit of a provider key: what is configured, published and
// learned of it, and what counts.
type factRow struct {
	Name                           string
	Configured, Published, Learned string // "–": nothing
	Differs                        bool   // what is configured is not what is published
	Since, Host, Source            string // of what is published
	From                           string // where it was learned
	When                           time.Time
	Counts                         string
	Model, Dimension, Window       string // of what can be forgotten
}

const nothing = "–"

// factRows puts what is known of a key's limits side by side: first what is
// configured, then what is published for its tier and not configured, then what
// was learned of each model.
func factRows(k tenants.ProviderKey, tier catalogue.Offer, now time.Time) (out []factRow) {
	configured := k.Configured()
	rest := slices.Clone(tier.Limits)
	for _, c := range configured {
		r := factRow{Name: coveredBy(c) + ", " + allowance(c), Configured: ui.Count(c.Amount), Published: nothing, Learned: nothing, Counts: ui.Count(c.Amount)}
		if i := slices.IndexFunc(rest, func(o catalogue.Offered) bool { return alike(o.Limit, c) }); i >= 0 {
			r.publish(rest[i], c.Amount)
			rest = slices.Delete(rest, i, i+1)
		}
		out = append(out, r)
	}
	for _, o := range rest {
		r := factRow{Name: coveredBy(o.Limit) + ", " + allowance(o.Limit), Configured: nothing, Learned: nothing, Counts: nothing}
		r.publish(o, o.Amount)
		out = append(out, r)
	}
	return append(out, learnedFacts(k.Learned, configured, tier, now)...)
}

// learnedFacts are what was learned, beside what is configured and published.
func learnedFacts(list []limits.Learned, configured []limits.Limit, tier catalogue.Offer, now time.Time) (out []factRow) {
	for _, l := range list {
		out = append(out, learnedFact(l, configured, tier, now))
	}
	return out
}

// alike tells whether two limits are about the same.
func alike(a, b limits.Limit) bool {
	return a.Dimension == b.Dimension && a.Window == b.Window && slices.Equal(slices.Sorted(slices.Values(a.Models)), slices.Sorted(slices.Values(b.Models)))
}

func (r *factRow) publish(o catalogue.Offered, configured int64) {
	r.Published, r.Since, r.Source = ui.Count(o.Amount), o.Since.Format("2 Jan 2006"), o.Source
	r.Host, _, _ = strings.Cut(strings.TrimPrefix(o.Source, "https://"), "/")
	r.Differs = o.Amount != configured
}

func learnedFact(l limits.Learned, configured []limits.Limit, tier catalogue.Offer, now time.Time) factRow {
	r := factRow{
		Name: l.Model + ", " + allowance(limits.Limit{Dimension: l.Dimension, Window: l.Window}), Configured: nothing, Published: nothing,
		Learned: ui.Count(l.Amount), Counts: ui.Count(l.Amount), From: "stated in a header", When: l.LearnedAt.In(now.Location()),
		Model: l.Model, Dimension: string(l.Dimension), Window: string(l.Window),
	}
	if l.From == limits.FromBody {
		r.From = "stated in a refusal"
	}
	least, found := leastFor(configured, l)
	if found {
		r.Configured, r.Counts = ui.Count(least), ui.Count(min(l.Amount, least))
	}
	for _, o := range tier.Limits {
		if o.Dimension == l.Dimension && o.Window == l.Window && o.Applies(l.Model) && r.Source == "" {
			r.publish(o, least)
		}
	}
	return r
}

// leastFor is the smallest configured amount that calls of a learned limit's
// model are held to.
func leastFor(list []limits.Limit, l limits.Learned) (least int64, found bool) {
	for _, c := range list {
		if c.Dimension == l.Dimension && c.Window == l.Window && c.Applies(l.Model) && (!found || c.Amount < least) {
			least, found = c.Amount, true
		}
	}
	return least, found
}

// peaks is how near a key came to its minute limits in the last day.
type peaks struct {
	Band         ui.Band
	Unit, Limit  string // of the band; Limit "" where none is for the whole key
	Most, MostOf string
	At           time.Time
}

// peaksOf reads the busiest minute of each quarter of an hour, of what the key's
// first limit a minute for all models counts; of requests where it has none.
func (p *Pages) peaksOf(ctx context.Context, w workspace, k tenants.ProviderKey) (peaks, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	from := w.Now.Add(-24 * time.Hour).Truncate(15 * time.Minute)
	rep, err := p.reports.Report(ctx, w.Tenant.ID, usage.Query{
		From: from, To: w.Now, Bucket: usage.Minute, Zone: w.Now.Location(), Filter: usage.Filter{ProviderKey: k.ID, Tests: usage.WithTests},
	})
	if err != nil {
		return peaks{}, err
	}
	unit, crest := limits.DimensionRequests, int64(0)
	for _, l := range k.Configured() {
		whole := l.Window == limits.WindowMinute && len(l.Models) == 0 && !l.EachModel && len(l.Weights) == 0
		if whole && crest == 0 && (l.Dimension == limits.DimensionRequests || l.Dimension == limits.DimensionTokens) {
			unit, crest = l.Dimension, l.Amount
		}
	}
	out := peaks{Unit: string(unit)}
	if crest > 0 {
		out.Limit = ui.Count(crest) + " " + string(unit) + " a minute"
	}
	out.fill(rep.Rows, unit, crest, w.Now)
	return out, nil
}

func (s *peaks) fill(rows []usage.Row, unit limits.Dimension, crest int64, now time.Time) {
	var starts []time.Time
	var most int64
	for _, r := range rows {
		n := r.Requests
		if unit == limits.DimensionTokens {
			n = r.Tokens.Total()
		}
		if at := r.Start.Truncate(15 * time.Minute); len(starts) == 0 || !at.Equal(starts[len(starts)-1]) {
			starts = append(starts, at)
			s.Band.Columns = append(s.Band.Columns, ui.BandColumn{})
		}
		c := &s.Band.Columns[len(s.Band.Columns)-1]
		if n > c.Passed || c.Title == "" {
			c.Passed, c.Title = n, r.Start.In(now.Location()).Format("15:04")+": "+ui.Count(n)+" "+string(unit)
		}
		if n > most {
			most, s.At = n, r.Start.In(now.Location())
		}
	}
	s.Band.Marks, s.Band.End, s.Band.Height = marks(starts, usage.Quarter, now), "now", 120
	s.Band.Crest, s.Band.CrestWords, s.Band.CrestShort = float64(crest), s.Limit, ui.Count(crest)
	s.Most = ui.Count(most) + " " + string(unit)
	if crest > 0 {
		s.MostOf = ui.Count(100*most/crest) + "% of the limit"
	}
	s.Band.Label = "The busiest minute of each 15 minutes of the last 24 hours: at the most " + s.Most
}

// quiet tells whether nothing went through.
func (s peaks) quiet() bool { return s.At.IsZero() }
