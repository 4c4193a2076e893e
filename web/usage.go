package web

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/usage"
	"weir/web/ui"
)

// usagePage is what GET /usage shows.
type usagePage struct {
	workspace
	Query   url.Values
	Span    span
	By      usage.GroupBy
	Tags    []string // that can be grouped by
	Show    string   // tokens, requests, refused, billed, margin
	Filters filters
	Report  usage.Report
	Groups  []usageGroup
	Buckets []usage.Row // without groups
	Chart   ui.Stack
	Plot    string // the chart for the script
	Zoom    *zoom
	Failed  string      // what cannot be reported, in words
	Plans   []ui.Option // to try against it; none where nothing can be tried
}

// usagePage answers GET /usage.
func (p *Pages) usagePage(c echo.Context, _ auth.Person, w workspace) error {
	u, err := p.readUsage(c.Request().Context(), w, c.QueryParams())
	if err != nil {
		return err
	}
	if len(u.Filters.Customers) > 1 && !u.Report.Totals.Quiet() {
		if u.Plans, err = p.planOptions(c.Request().Context(), w.Tenant.ID); err != nil {
			return err
		}
	}
	return show(c, http.StatusOK, usageView(u))
}

// readUsage makes the report that page and CSV share.
func (p *Pages) readUsage(ctx context.Context, w workspace, q url.Values) (usagePage, error) {
	u := usagePage{workspace: w, Query: q, Span: spanOf(q, w.Now), By: grouping(q.Get("by"), w), Show: measureOf(q.Get("show"), w)}
	var err error
	if u.Filters, err = p.readFilters(ctx, w, q, u.Span); err != nil {
		return u, err
	}
	if u.Tags, err = p.reports.TagNames(ctx, w.Tenant.ID, u.Span.From, u.Span.To); err != nil {
		return u, err
	}
	query := usage.Query{From: u.Span.From, To: u.Span.To, Bucket: u.Span.Bucket, GroupBy: u.By, Filter: u.Filters.Filter, Zone: w.Now.Location(), Days: w.Tenant.Zones}
	u.Report, err = p.reports.Report(ctx, w.Tenant.ID, query)
	if fault.Is(err, fault.Invalid) {
		u.Failed = fault.Of(err).Fields[0].Message
		return u, nil
	}
	if err != nil {
		return u, err
	}
	names, err := p.labels(ctx, w.Tenant.ID, groupIDs(u.Report.Rows))
	if err != nil {
		return u, err
	}
	u.group(names)
	u.chart()
	u.Zoom, err = p.readZoom(ctx, u)
	return u, err
}

// sameTime are the parameters of the time that is looked at.
func (u usagePage) sameTime() url.Values {
	out := url.Values{"range": {u.Span.Key}}
	for _, name := range []string{"from", "to"} {
		if v := u.Query.Get(name); u.Span.Key == "dates" && v != "" {
			out.Set(name, v)
		}
	}
	return out
}

func measureOf(asked string, w workspace) string {
	if asked == "requests" || asked == "refused" || (asked == "billed" || asked == "margin") && w.May(seeMoney) {
		return asked
	}
	return "tokens"
}

func moneyWords(list []usage.Money, currency string) string {
	if len(list) == 0 {
		return "0.00 " + currency
	}
	words := ""
	for i, m := range list {
		if i > 0 {
			words += " and "
		}
		f := money(m)
		words += f.Short + " " + f.Unit
	}
	return words
}

// A class of tokens has a column where it occurs.
func (u usagePage) hasReasoning() bool { return u.Report.Totals.Tokens.Reasoning > 0 }

func (u usagePage) hasCacheWrite() bool { return u.Report.Totals.Tokens.CacheWrite > 0 }

// twinLabel names the table over time.
func (u usagePage) twinLabel() string { return "Usage over time, " + bucketName(u.Span.Bucket) }

func bucketName(b usage.Bucket) string {
	for _, w := range bucketWords {
		if w.Bucket == b {
			return w.Words
		}
	}
	return string(b)
}

// bucketLabel names a bucket in the table.
func bucketLabel(r usage.Row, b usage.Bucket) string {
	switch b {
	case usage.Day:
		return r.Start.Format("Mon 2 January 2006")
	case usage.Hour, usage.Quarter, usage.Minute:
		return r.Start.Format("Mon 2 Jan, 15:04") + " to " + r.End.Format("15:04 MST")
	}
	return r.Start.Format(time.RFC3339)
}
