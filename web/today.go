package web

import (
	"context"
	"math/big"
	"strings"
	"time"

	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// reportWithin is how long the home page waits for its report.
const reportWithin = 3 * time.Second

// today is the tenant's day so far, in the tenant's zone.
type today struct {
	Since, AsOf time.Time
	All         usage.Sums
	Tests       usage.Sums // of All, what is never billed: practice provider and test keys
	Money       bool
	Hours       []usage.Row
	Ticks       []ui.Tick
	Measures    []measure
	Until       time.Time  // the quarter of an hour up to which both days are compared
	SoFar, Then usage.Sums // today up to then, and yesterday up to the same time
}

// measure is a row of the day's sheet.
type measure struct {
	Name    string
	Figures []figure
	Zero    bool
	Bars    []ui.Bar
	Refused bool     // drawn as refusals are
	Detail  []string // what the figure is made of
}

// figure is a number as it is read, its unit, and the exact one.
type figure struct{ Short, Unit, Exact string }

// today reads the day; withMoney tells whether its reader may see amounts.
func (p *Pages) today(ctx context.Context, t tenants.Tenant, now time.Time, withMoney bool) (today, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	from, to, zone := t.Zones.Day(now)
	q := usage.Query{From: from, To: to, Bucket: usage.Hour, Zone: zone}
	q.Filter.Tests = usage.WithTests
	all, err := p.reports.Report(ctx, t.ID, q)
	if err != nil {
		return today{}, err
	}
	q.Filter.Tests = usage.OnlyTests
	tests, err := p.reports.Report(ctx, t.ID, q)
	if err != nil {
		return today{}, err
	}
	d := today{Since: all.From.In(zone), AsOf: all.AsOf.In(zone), All: all.Totals, Tests: tests.Totals, Hours: all.Rows}
	for i, r := range d.Hours {
		d.Hours[i].Start, d.Hours[i].End = r.Start.In(zone), r.End.In(zone)
	}
	if err := p.yesterday(ctx, t, now, &d); err != nil {
		return today{}, err
	}
	d.Ticks = ticks(d.Hours)
	d.Money = withMoney
	d.Measures = d.measures(t.Currency)
	return d, nil
}

// yesterday compares the day so far with the same time of the day before, by
// the wall clock, both up to the last full quarter of an hour. Where the time
// zone changed in between no clock tells both, and it is as long after each began.
func (p *Pages) yesterday(ctx context.Context, t tenants.Tenant, now time.Time, d *today) error {
	zone := now.Location()
	before, _, in := t.Zones.Day(d.Since.Add(-time.Millisecond))
	d.Until = now.Truncate(15 * time.Minute)
	then := time.Date(now.Year(), now.Month(), now.Day()-1, d.Until.Hour(), d.Until.Minute(), 0, 0, zone)
	if in.String() != zone.String() {
		then = before.Add(d.Until.Sub(d.Since))
	}
	if !d.Until.After(before) {
		return nil
	}
	rep, err := p.reports.Report(ctx, t.ID, usage.Query{From: before, To: d.Until, Bucket: usage.Quarter, Zone: zone, Filter: usage.Filter{Tests: usage.WithTests}})
	if err != nil {
		return err
	}
	for _, r := range rep.Rows {
		switch {
		case !r.Start.Before(d.Since) && !r.End.After(d.Until):
			d.SoFar.Add(r.Sums)
		case r.Start.Before(d.Since) && !r.End.After(then):
			d.Then.Add(r.Sums)
		}
	}
	return nil
}

// against says how a measure moved against yesterday, and what it was then.
func (d today) against(of func(usage.Sums) int64) []string {
	now, then := of(d.SoFar), of(d.Then)
	if now == 0 && then == 0 {
		return nil
	}
	if then == 0 {
		return []string{"none yesterday"}
	}
	return []string{ui.Change(now, then) + ", " + ui.Count(then) + " yesterday"}
}

// Quiet tells whether nothing at all was asked for today.
func (d today) Quiet() bool { return d.All.Requests+d.All.Refused == 0 }

func (d today) measures(currency string) []measure {
	counted := func(name, one, many string, of func(usage.Sums) int64) measure {
		n := of(d.All)
		return measure{
			Name: name, Zero: n == 0, Figures: []figure{{Short: ui.Short(n), Exact: ui.Of(n, one, many)}},
			Bars: d.bars(func(s usage.Sums) float64 { return float64(of(s)) }, func(s usage.Sums) string { return ui.Of(of(s), one, many) }),
		}
	}
	requests := counted("Requests", "request", "requests", func(s usage.Sums) int64 { return s.Requests })
	requests.Detail = d.against(func(s usage.Sums) int64 { return s.Requests })
	if d.Tests.Requests > 0 {
		requests.Detail = append(requests.Detail, ui.Count(d.Tests.Requests)+" of them by test keys or the practice provider, never billed")
	}
	tokens := counted("Tokens", "token", "tokens", func(s usage.Sums) int64 { return s.Tokens.Total() })
	tokens.Detail = append(d.against(func(s usage.Sums) int64 { return s.Tokens.Total() }), strings.Join(classes(d.All.Tokens), ", "))
	refused := counted("Refused", "request", "requests", func(s usage.Sums) int64 { return s.Refused })
	failed := counted("Errors", "request", "requests", func(s usage.Sums) int64 { return s.Errors })
	refused.Refused, failed.Refused = true, true
	if !refused.Zero {
		refused.Detail = append(d.against(func(s usage.Sums) int64 { return s.Refused }), "by a limit, before any provider")
	}
	if !failed.Zero {
		failed.Detail = append(d.against(func(s usage.Sums) int64 { return s.Errors }), "of the requests, at the provider")
	}
	if !d.Money {
		return []measure{requests, tokens, refused, failed}
	}
	return []measure{requests, tokens, d.billed(currency), refused, failed}
}

// classes are the token classes that occur; they add up to the total.
func classes(t limits.Tokens) (out []string) {
	for _, c := range []struct {
		name string
		n    int64
	}{{"input", t.Input}, {"cached input", t.CachedInput}, {"cache write", t.CacheWrite}, {"output", t.Output}, {"reasoning", t.Reasoning}} {
		if c.n > 0 {
			out = append(out, c.name+" "+ui.Count(c.n))
		}
	}
	return out
}

func (d today) billed(currency string) measure {
	m := measure{Name: "Billed", Zero: true}
	for _, a := range d.All.Charges {
		m.Figures = append(m.Figures, money(a))
		m.Zero = m.Zero && a.Amount.IsZero()
	}
	if len(m.Figures) == 0 {
		m.Figures = []figure{money(usage.Money{Currency: currency})}
	}
	if now, then := charge(d.SoFar), charge(d.Then); then > 0 {
		m.Detail = append(m.Detail, ui.Change(int64(now/1e6), int64(then/1e6))+", "+moneyWords(d.Then.Charges, currency)+" yesterday")
	}
	for _, a := range d.All.Costs {
		f := money(a)
		m.Detail = append(m.Detail, "provider cost "+f.Short+" "+f.Unit)
	}
	if len(d.All.Costs) == 0 && d.All.Requests > d.Tests.Requests {
		m.Detail = append(m.Detail, "provider cost unknown: no price is kept for these models")
	}
	if len(d.All.Charges) == 1 {
		m.Bars = d.bars(charge, func(s usage.Sums) string {
			if len(s.Charges) == 0 {
				return "nothing"
			}
			return money(s.Charges[0]).Exact
		})
	} else {
		m.Bars = d.bars(func(usage.Sums) float64 { return 0 }, func(usage.Sums) string { return "" })
	}
	return m
}

func money(a usage.Money) figure {
	exact := a.Amount.Decimal()
	return figure{Short: ui.Amount(exact), Unit: a.Currency, Exact: exact + " " + a.Currency}
}

// charge is good for the height of a bar, and nothing else.
func charge(s usage.Sums) float64 {
	if len(s.Charges) == 0 {
		return 0
	}
	f, _ := new(big.Float).SetInt(s.Charges[0].Amount.Big()).Float64()
	return max(0, f)
}

// bars spread the hours over the day, the highest one full height. Days have 23
// to 25 hours, and where clocks move by half an hour two are shorter.
func (d today) bars(value func(usage.Sums) float64, words func(usage.Sums) string) []ui.Bar {
	var most float64
	for _, r := range d.Hours {
		most = max(most, value(r.Sums))
	}
	out := make([]ui.Bar, len(d.Hours))
	for i, r := range d.Hours {
		out[i] = ui.Bar{From: share(d.Hours, r.Start), To: share(d.Hours, r.End), Title: hour(r) + ": " + words(r.Sums)}
		if most > 0 {
			out[i].Height = value(r.Sums) / most
		}
	}
	return out
}

func hour(r usage.Row) string { return r.Start.Format("15:04") + " to " + r.End.Format("15:04 MST") }

// share is where in the day an instant lies.
func share(hours []usage.Row, at time.Time) float64 {
	first, last := hours[0].Start, hours[len(hours)-1].End
	return float64(at.Sub(first)) / float64(last.Sub(first))
}

// ticks name every third hour of the wall clock.
func ticks(hours []usage.Row) (out []ui.Tick) {
	for _, r := range hours {
		if r.Start.Hour()%3 == 0 && r.Start.Minute() == 0 {
			out = append(out, ui.Tick{At: share(hours, r.Start), Word: r.Start.Format("15")})
		}
	}
	return out
}
