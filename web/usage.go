package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// usagePage is what GET /usage shows.
type usagePage struct {
	workspace
	Query   url.Values
	Span    span
	By      usage.GroupBy
	Show    string // tokens, requests, refused, billed
	Filters filters
	Report  usage.Report
	Groups  []usageGroup
	Buckets []usage.Row // without groups
	Chart   ui.Stack
	Plot    string // the chart for the script
	Zoom    *zoom
	Failed  string // what cannot be reported, in words
}

// usageGroup is one row of the table.
type usageGroup struct {
	Group         usage.Group
	Name, Of, Ref string
	Series        int // of the chart; -1: part of the rest
	usage.Sums
}

// groupings are the ways to tell calls apart, with the right that each needs.
var groupings = []struct {
	By    usage.GroupBy
	Words string
	Needs right
}{
	{usage.ByModel, "by model", ""},
	{usage.ByCustomer, "by customer", seeCustomers},
	{usage.ByKey, "by API key", seeCustomerKeys},
	{usage.ByProviderKey, "by provider key", seeProviderKeys},
	{usage.ByOutcome, "by outcome", ""},
}

// usagePage answers GET /usage.
func (p *Pages) usagePage(c echo.Context, _ auth.Person, w workspace) error {
	u, err := p.readUsage(c.Request().Context(), w, c.QueryParams())
	if err != nil {
		return err
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
	query := usage.Query{From: u.Span.From, To: u.Span.To, Bucket: u.Span.Bucket, GroupBy: u.By, Filter: u.Filters.Filter, Zone: w.Now.Location()}
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

// grouping is what was asked for where the role may see it, else by model.
func grouping(asked string, w workspace) usage.GroupBy {
	for _, g := range groupings {
		if string(g.By) == asked && (g.Needs == "" || w.May(g.Needs)) {
			return g.By
		}
	}
	return usage.ByModel
}

func measureOf(asked string, w workspace) string {
	if asked == "requests" || asked == "refused" || asked == "billed" && w.May(seeMoney) {
		return asked
	}
	return "tokens"
}

func groupIDs(rows []usage.Row) (ids []uuid.UUID) {
	for _, r := range rows {
		if r.Group.ID != uuid.Nil {
			ids = append(ids, r.Group.ID)
		}
	}
	return ids
}

// group adds the rows up by group, the largest first, and by bucket.
func (u *usagePage) group(names labels) {
	at := map[usage.Group]int{}
	for _, r := range u.Report.Rows {
		i, known := at[r.Group]
		if !known {
			i = len(u.Groups)
			at[r.Group] = i
			g := usageGroup{Group: r.Group, Series: -1}
			g.Name, g.Of, g.Ref = names.group(u.By, r.Group)
			u.Groups = append(u.Groups, g)
		}
		u.Groups[i].Add(r.Sums)
		if n := len(u.Buckets); n == 0 || !u.Buckets[n-1].Start.Equal(r.Start) {
			u.Buckets = append(u.Buckets, usage.Row{Start: r.Start.In(u.Now.Location()), End: r.End.In(u.Now.Location())})
		}
		u.Buckets[len(u.Buckets)-1].Add(r.Sums)
	}
	slices.SortStableFunc(u.Groups, func(a, b usageGroup) int {
		return cmp.Or(cmp.Compare(u.value(b.Sums), u.value(a.Sums)), cmp.Compare(b.Requests+b.Refused, a.Requests+a.Refused))
	})
	most := ui.MostSeries
	if len(u.Groups) > most {
		most--
	}
	for i := range u.Groups {
		if i < most {
			u.Groups[i].Series = i
		} else {
			u.Groups[i].Series = ui.MostSeries - 1
		}
	}
}

// value is the measure that is shown, good for a height and an order only.
func (u usagePage) value(s usage.Sums) float64 {
	switch u.Show {
	case "requests":
		return float64(s.Requests)
	case "refused":
		return float64(s.Refused)
	case "billed":
		return charge(s) / 1e12
	}
	return float64(s.Tokens.Total())
}

// said is the measure of s with its unit.
func (u usagePage) said(s usage.Sums) string {
	switch u.Show {
	case "requests":
		return ui.Of(s.Requests, "request", "requests")
	case "refused":
		return ui.Of(s.Refused, "call refused", "calls refused")
	case "billed":
		return moneyWords(s.Charges, u.Tenant.Currency)
	}
	return ui.Of(s.Tokens.Total(), "token", "tokens")
}

// share is a group's part of the whole, in tenths of a percent.
func (u usagePage) share(s usage.Sums) string {
	all := u.value(u.Report.Totals)
	if all <= 0 {
		return "–"
	}
	return strconv.FormatFloat(100*u.value(s)/all, 'f', 1, 64) + "%"
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
func (u usagePage) hasReasoning() bool  { return u.Report.Totals.Tokens.Reasoning > 0 }
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

// filters is what a list or a report is narrowed to, and what it can be.
type filters struct {
	usage.Filter
	Chips     []chip
	Customers []ui.Option
	Keys      []ui.Option
	Models    []ui.Option
	Providers []ui.Option
	Outcomes  []ui.Option
}

// chip is a filter that is set.
type chip struct{ What, Value, Name string }

// readFilters reads ?customer=, ?key=, ?model=, ?provider= and ?outcome=. An id
// that is not the tenant's does not exist; one of a kind that the role may not
// see is forbidden.
func (p *Pages) readFilters(ctx context.Context, w workspace, q url.Values, s span) (f filters, err error) {
	f.Tests = usage.WithTests
	if f.Customer, err = p.customerFilter(ctx, w, q, &f); err != nil {
		return f, err
	}
	if f.Counter, err = p.keyFilter(ctx, w, q, &f); err != nil {
		return f, err
	}
	if f.ProviderKey, err = p.providerFilter(ctx, w, q, &f); err != nil {
		return f, err
	}
	f.Outcomes = []ui.Option{{Label: "Every outcome"}}
	for _, o := range outcomes {
		chosen := q.Get("outcome") == string(o)
		f.Outcomes = append(f.Outcomes, ui.Option{Value: string(o), Label: outcomeWords(o), Chosen: chosen})
	}
	if o := usage.Outcome(q.Get("outcome")); slices.Contains(outcomes, o) || o.Refused() {
		f.Outcome = o
		f.Chips = append(f.Chips, chip{"outcome", outcomeWords(o), "outcome"})
		if o.Refused() {
			f.Outcomes = append(f.Outcomes, ui.Option{Value: string(o), Label: outcomeWords(o), Chosen: true})
		}
	}
	return f, p.modelFilter(ctx, w, q, s, &f)
}

func (p *Pages) customerFilter(ctx context.Context, w workspace, q url.Values, f *filters) (uuid.UUID, error) {
	asked := q.Get("customer")
	if !w.May(seeCustomers) {
		if asked != "" {
			return uuid.Nil, forbidden(w.Role, seeCustomers)
		}
		return uuid.Nil, nil
	}
	list, err := p.tenants.Customers(ctx, w.Tenant.ID, uuid.Nil, 100)
	if err != nil {
		return uuid.Nil, err
	}
	f.Customers = []ui.Option{{Label: "Every customer"}}
	for _, c := range list.Items {
		f.Customers = append(f.Customers, ui.Option{Value: id.Customer.Format(c.ID), Label: c.Name, Chosen: id.Customer.Format(c.ID) == asked})
	}
	return p.named(ctx, w, id.Customer, asked, "customer", f, &f.Customers)
}

// named reads an id of a filter; one that has no name here does not exist.
func (p *Pages) named(ctx context.Context, w workspace, kind id.Kind, asked, what string, f *filters, options *[]ui.Option) (uuid.UUID, error) {
	if asked == "" {
		return uuid.Nil, nil
	}
	u, err := kind.Parse(asked)
	if err != nil {
		return uuid.Nil, tenants.NotFound(what)
	}
	names, err := p.labels(ctx, w.Tenant.ID, []uuid.UUID{u})
	if err != nil {
		return uuid.Nil, err
	}
	if _, known := names[u]; !known {
		return uuid.Nil, tenants.NotFound(what)
	}
	name := names.name(kind, u)
	f.Chips = append(f.Chips, chip{what, name, map[id.Kind]string{id.Customer: "customer", id.APIKey: "key", id.ProviderKey: "provider"}[kind]})
	if !slices.ContainsFunc(*options, func(o ui.Option) bool { return o.Value == asked }) {
		*options = append(*options, ui.Option{Value: asked, Label: name, Chosen: true})
	}
	return u, nil
}

func (p *Pages) keyFilter(ctx context.Context, w workspace, q url.Values, f *filters) (uuid.UUID, error) {
	asked := q.Get("key")
	if !w.May(seeCustomerKeys) {
		if asked != "" {
			return uuid.Nil, forbidden(w.Role, seeCustomerKeys)
		}
		return uuid.Nil, nil
	}
	list, err := p.tenants.APIKeys(ctx, w.Tenant.ID, tenants.KeyFilter{Kind: tenants.ForCustomer, Customer: f.Customer}, uuid.Nil, 100)
	if err != nil {
		return uuid.Nil, err
	}
	f.Keys = []ui.Option{{Label: "Every key"}}
	seen := map[uuid.UUID]bool{}
	for _, k := range list.Items {
		if !seen[k.Counter] {
			seen[k.Counter] = true
			f.Keys = append(f.Keys, ui.Option{Value: id.APIKey.Format(k.Counter), Label: k.Name + " …" + k.Last4, Chosen: id.APIKey.Format(k.Counter) == asked})
		}
	}
	return p.named(ctx, w, id.APIKey, asked, "key", f, &f.Keys)
}

func (p *Pages) providerFilter(ctx context.Context, w workspace, q url.Values, f *filters) (uuid.UUID, error) {
	asked := q.Get("provider")
	if !w.May(seeProviderKeys) {
		if asked != "" {
			return uuid.Nil, forbidden(w.Role, seeProviderKeys)
		}
		return uuid.Nil, nil
	}
	list, err := p.tenants.ProviderKeys(ctx, w.Tenant.ID, uuid.Nil, 100)
	if err != nil {
		return uuid.Nil, err
	}
	f.Providers = []ui.Option{{Label: "Every provider key"}}
	for _, k := range list.Items {
		f.Providers = append(f.Providers, ui.Option{Value: id.ProviderKey.Format(k.ID), Label: k.Name, Chosen: id.ProviderKey.Format(k.ID) == asked})
	}
	return p.named(ctx, w, id.ProviderKey, asked, "provider key", f, &f.Providers)
}

// modelFilter offers the models that were asked for in the span.
func (p *Pages) modelFilter(ctx context.Context, w workspace, q url.Values, s span, f *filters) error {
	asked := q.Get("model")
	f.Models = []ui.Option{{Label: "Every model"}}
	rep, err := p.reports.Report(ctx, w.Tenant.ID, usage.Query{
		From: s.From, To: s.To, Bucket: usage.Day, GroupBy: usage.ByModel, Zone: w.Now.Location(), Filter: usage.Filter{Tests: usage.WithTests},
	})
	if err != nil {
		return err
	}
	for _, r := range rep.Rows {
		if !r.Start.Equal(rep.From) {
			break
		}
		if r.Group.Name != "" {
			f.Models = append(f.Models, ui.Option{Value: r.Group.Name, Label: r.Group.Name, Chosen: r.Group.Name == asked})
		}
	}
	if asked == "" {
		return nil
	}
	f.Model = asked
	f.Chips = append(f.Chips, chip{"model", asked, "model"})
	if !slices.ContainsFunc(f.Models, func(o ui.Option) bool { return o.Value == asked }) {
		f.Models = append(f.Models, ui.Option{Value: asked, Label: asked, Chosen: true})
	}
	return nil
}
