package web

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/usage"
)

// usageCSV answers GET /usage.csv: what the page shows, bucket by bucket and
// group by group, and as the last row the totals of both (RFC 4180).
func (p *Pages) usageCSV(c echo.Context, _ auth.Person, w workspace) error {
	u, err := p.readUsage(c.Request().Context(), w, c.QueryParams())
	if err != nil {
		return err
	}
	if u.Failed != "" {
		return fault.New(fault.Invalid, "too_many_rows", u.Failed)
	}
	var b bytes.Buffer
	if err := u.writeCSV(&b); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Disposition", `attachment; filename="weir-usage-`+u.Span.From.In(w.Now.Location()).Format(time.DateOnly)+`.csv"`)
	return c.Blob(http.StatusOK, "text/csv; charset=utf-8; header=present", b.Bytes())
}

func (u usagePage) writeCSV(b *bytes.Buffer) error {
	out := csv.NewWriter(b)
	out.UseCRLF = true
	zone := u.Now.Location()
	currencies := currenciesOf(u.Report.Totals, u.Tenant.Currency)
	if !u.May(seeMoney) {
		currencies = nil
	}
	head := []string{"start (" + u.Tenant.Zone + ")", "end (" + u.Tenant.Zone + ")", string(u.By), "id", "requests", "refused", "errors", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "tokens", "units"}
	for _, c := range currencies {
		head = append(head, "billed_"+c, "provider_cost_"+c, "margin_"+c)
	}
	if len(currencies) > 0 {
		head = append(head, "requests_without_price")
	}
	if err := writeCells(out, head); err != nil {
		return err
	}
	named := map[usage.Group]usageGroup{}
	for _, g := range u.Groups {
		named[g.Group] = g
	}
	for _, r := range u.Report.Rows {
		if r.Quiet() && r.Tokens.Total() == 0 && len(r.Charges) == 0 {
			continue
		}
		g := named[r.Group]
		cells := []string{r.Start.In(zone).Format(time.RFC3339), r.End.In(zone).Format(time.RFC3339), g.Name, g.Ref}
		if err := writeCells(out, append(cells, csvSums(r.Sums, currencies)...)); err != nil {
			return err
		}
	}
	total := []string{u.Report.From.In(zone).Format(time.RFC3339), u.Report.To.In(zone).Format(time.RFC3339), "total, as of " + u.Report.AsOf.In(zone).Format(time.RFC3339) + ", complete until " + u.Report.CompleteUntil.In(zone).Format(time.RFC3339), ""}
	if err := writeCells(out, append(total, csvSums(u.Report.Totals, currencies)...)); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// currenciesOf are those that amounts occur in, the tenant's always.
func currenciesOf(s usage.Sums, own string) []string {
	out := []string{own}
	for _, list := range [][]usage.Money{s.Charges, s.Costs} {
		for _, m := range list {
			if m.Currency != own && !slices.Contains(out, m.Currency) {
				out = append(out, m.Currency)
			}
		}
	}
	return out
}

func csvSums(s usage.Sums, currencies []string) []string {
	t := s.Tokens
	var out []string
	for _, n := range []int64{s.Requests, s.Refused, s.Errors, t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning, t.Total(), s.Units} {
		out = append(out, strconv.FormatInt(n, 10))
	}
	for _, c := range currencies {
		out = append(out, exactIn(s.Charges, c, "0.00"), exactIn(s.Costs, c, ""), exactIn(s.Margins(), c, "0.00"))
	}
	if len(currencies) > 0 {
		out = append(out, strconv.FormatInt(s.Unpriced, 10))
	}
	return out
}

func exactIn(list []usage.Money, currency, absent string) string {
	for _, m := range list {
		if m.Currency == currency {
			return m.Amount.Decimal()
		}
	}
	return absent
}

// writeCells writes a row in which no cell is a formula to a spreadsheet.
func writeCells(out *csv.Writer, cells []string) error {
	for i, c := range cells {
		cells[i] = usage.Cell(c)
	}
	return out.Write(cells)
}
