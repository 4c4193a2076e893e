package web

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// filters is what a list or a report is narrowed to, and what it can be.
type filters struct {
	usage.Filter
	Chips     []chip
	Customers []ui.Option
	Keys      []ui.Option
	Models    []ui.Option
	Providers []ui.Option
	Outcomes  []ui.Option
	Wrong     string // what of a tag cannot be read
}

// chip is a filter that is set.
type chip struct{ What, Value, Name string }

// readFilters reads ?customer=, ?key=, ?model=, ?provider=, ?outcome=, ?end_user=
// and ?tag=name=value. An id
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
	f.labels(q)
	return f, p.modelFilter(ctx, w, q, s, &f)
}

// labels reads what calls state about themselves.
func (f *filters) labels(q url.Values) {
	if user := strings.TrimSpace(q.Get("end_user")); user != "" && len(usage.CheckLabels(user, nil)) == 0 {
		f.EndUser = user
		f.Chips = append(f.Chips, chip{"end user", user, "end_user"})
	}
	asked := strings.TrimSpace(q.Get("tag"))
	if asked == "" {
		return
	}
	name, value, ok := strings.Cut(asked, "=")
	if !ok || value == "" || len(usage.CheckLabels("", map[string]string{name: value})) > 0 {
		f.Wrong = "A tag is looked for as its name, = and its value: team=red. Below is without it."
		return
	}
	f.Tag = usage.Tag{Name: name, Value: value}
	f.Chips = append(f.Chips, chip{"tag " + name, value, "tag"})
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
