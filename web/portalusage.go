package web

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/usage"
	"weir/web/ui"
)

// portalUsagePage is what a customer used, by model and over time. It shares
// reports with the dashboard, narrowed to the customer before anything is read.
type portalUsagePage struct {
	visit
	usagePage
}

func (p *Pages) readPortalUsage(c echo.Context, v visit) (portalUsagePage, error) {
	q := url.Values{}
	for _, name := range []string{"range", "from", "to", "bucket", "show"} {
		if s := c.QueryParam(name); s != "" {
			q.Set(name, s)
		}
	}
	w := workspace{Tenant: v.Tenant, Now: v.Now, RequestID: v.RequestID}
	u := portalUsagePage{v, usagePage{workspace: w, Query: q, Span: spanOf(q, v.Now), By: usage.ByModel, Show: measureOf(q.Get("show"), w)}}
	var err error
	u.Report, err = p.reports.Report(c.Request().Context(), v.Visitor.Tenant, usage.Query{
		From: u.Span.From, To: u.Span.To, Bucket: u.Span.Bucket, GroupBy: usage.ByModel, Zone: v.Now.Location(), Days: v.Tenant.Zones,
		Filter: usage.Filter{Customer: v.Customer, Tests: usage.WithTests},
	})
	if fault.Is(err, fault.Invalid) {
		u.Failed = fault.Of(err).Fields[0].Message
		return u, nil
	}
	if err != nil {
		return u, err
	}
	u.group(labels{})
	u.chart()
	for i := range u.Chart.Columns {
		u.Chart.Columns[i].Href = ""
	}
	return u, nil
}

func (p *Pages) portalUsage(c echo.Context, v visit) error {
	u, err := p.readPortalUsage(c, v)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, portalUsageView(u))
}

// portalRanges are the times that can be looked at.
func (u portalUsagePage) portalRanges() (out []ui.Link) {
	for _, s := range spans {
		out = append(out, ui.Link{Words: s.Words, Current: s.Key == u.Span.Key, Href: link("/portal/usage", u.Query, "range", s.Key, "bucket", "", "from", "", "to", "")})
	}
	return out
}

// Headline says what was used in one line.
func (u portalUsagePage) Headline() string {
	all := u.Report.Totals
	if u.Failed != "" {
		return "Usage"
	}
	if all.Quiet() && all.Tokens.Total() == 0 {
		return "You asked for nothing in this time."
	}
	return ui.Of(all.Tokens.Total(), "token", "tokens") + " in " + ui.Of(all.Requests, "request", "requests") + ", charged at " + moneyWords(all.Charges, u.visit.Tenant.Currency)
}

// portalCSV answers with what the page shows, bucket by bucket and model by
// model, and as the last row the totals (RFC 4180).
func (p *Pages) portalCSV(c echo.Context, v visit) error {
	u, err := p.readPortalUsage(c, v)
	if err != nil {
		return err
	}
	if u.Failed != "" {
		return fault.New(fault.Invalid, "too_many_rows", u.Failed)
	}
	var b bytes.Buffer
	if err := u.writePortalCSV(&b); err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="usage-`+u.Span.From.In(v.Now.Location()).Format(time.DateOnly)+`.csv"`)
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8; header=present", b.Bytes())
}

func (u portalUsagePage) writePortalCSV(b *bytes.Buffer) error {
	out := csv.NewWriter(b)
	out.UseCRLF = true
	zone, own := u.visit.Now.Location(), u.visit.Tenant.Currency
	var currencies []string
	for _, m := range u.Report.Totals.Charges {
		currencies = append(currencies, m.Currency)
	}
	if len(currencies) == 0 {
		currencies = []string{own}
	}
	head := []string{"start (" + u.visit.Tenant.Zone + ")", "end (" + u.visit.Tenant.Zone + ")", "model", "requests", "refused", "errors", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "tokens", "units"}
	for _, cur := range currencies {
		head = append(head, "charged_"+cur)
	}
	if err := writeCells(out, head); err != nil {
		return err
	}
	sums := func(s usage.Sums) []string {
		cells := csvSums(s, nil)
		for _, cur := range currencies {
			cells = append(cells, exactIn(s.Charges, cur, "0.00"))
		}
		return cells
	}
	for _, r := range u.Report.Rows {
		if r.Quiet() && r.Tokens.Total() == 0 && len(r.Charges) == 0 {
			continue
		}
		if err := writeCells(out, append([]string{r.Start.In(zone).Format(time.RFC3339), r.End.In(zone).Format(time.RFC3339), r.Group.Name}, sums(r.Sums)...)); err != nil {
			return err
		}
	}
	total := []string{u.Report.From.In(zone).Format(time.RFC3339), u.Report.To.In(zone).Format(time.RFC3339), "total, as of " + u.Report.AsOf.In(zone).Format(time.RFC3339)}
	if err := writeCells(out, append(total, sums(u.Report.Totals)...)); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}
