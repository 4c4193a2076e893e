package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// customersPage is what the list of customers shows.
type customersPage struct {
	workspace
	Search        string
	Rows          []customerRow
	Newest, Older string
	Today         *usage.Sums // of all customers; nil: it could not be read
	NoLevels      bool        // the levels could not be read
}

// customerRow is a customer in the list.
type customerRow struct {
	ID, Name, Plan string
	Day, Minute    *ui.Level // nil: no such limit
	Today          usage.Sums
	Tone           ui.Tone
	State          string
}

func (p *Pages) customers(c echo.Context, who auth.Person, w workspace) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	from, _ := id.Customer.Parse(q.Get("after"))
	view := customersPage{workspace: w, Search: strings.TrimSpace(q.Get("q"))}
	page, err := p.findCustomers(ctx, who.Tenant, view.Search, from)
	if err != nil {
		return err
	}
	view.Newest, view.Older = newest("/customers", q, "after"), older("/customers", q, "after", id.Customer.Format(page.Next))
	ids := make([]uuid.UUID, len(page.Items))
	for i, x := range page.Items {
		ids[i] = x.ID
	}
	standings, err := p.billing.Standings(ctx, who.Tenant, ids)
	if err != nil {
		return err
	}
	today := tile(p, c, "usage by customer", func() (map[uuid.UUID]usage.Sums, error) {
		return p.usedToday(ctx, w, usage.ByCustomer, usage.Filter{})
	})
	view.Today = total(today)
	for _, x := range page.Items {
		at, on := standings[x.ID]
		r := customerRow{ID: id.Customer.Format(x.ID), Name: x.Name}
		if on {
			r.Plan = planWords(at)
		}
		if today != nil {
			r.Today = (*today)[x.ID]
		}
		states := tile(p, c, "levels", func() ([]limits.State, error) { return p.states(ctx, who.Tenant, at.Limits) })
		if states == nil {
			view.NoLevels = true
		} else {
			r.place(*states, w)
		}
		r.judge(x, on)
		view.Rows = append(view.Rows, r)
	}
	return show(c, http.StatusOK, customersView(view))
}

func (p *Pages) findCustomers(ctx context.Context, tenant uuid.UUID, search string, after uuid.UUID) (tenants.Page[tenants.Customer], error) {
	if search == "" {
		return p.tenants.Customers(ctx, tenant, after, pageRows)
	}
	exact, _ := id.Customer.Parse(search)
	return p.tenants.FindCustomers(ctx, tenant, search, exact, after, pageRows)
}

func (p *Pages) states(ctx context.Context, tenant uuid.UUID, list []limits.Limit) ([]limits.State, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return p.limits.Live(ctx, tenant, list, "", "")
}

func planWords(at billing.Standing) string {
	return at.PlanName + ", version " + ui.Count(int64(at.Number))
}

func total(by *map[uuid.UUID]usage.Sums) *usage.Sums {
	if by == nil {
		return nil
	}
	var all usage.Sums
	for _, s := range *by {
		all.Requests, all.Refused, all.Errors = all.Requests+s.Requests, all.Refused+s.Refused, all.Errors+s.Errors
		all.Tokens.Input += s.Tokens.Total()
	}
	return &all
}

// place picks the levels that the list shows: of the day and of the minute,
// tokens before requests.
func (r *customerRow) place(states []limits.State, w workspace) {
	pick := func(window limits.Window) *ui.Level {
		var found *ui.Level
		for _, s := range states {
			if s.Limit.Window == window && len(s.Limit.Models) == 0 && (found == nil || s.Limit.Dimension == limits.DimensionTokens) {
				l := levelOf(s, w.Now)
				found = &l
			}
		}
		return found
	}
	r.Day, r.Minute = pick(limits.WindowDay), pick(limits.WindowMinute)
	if r.Day == nil {
		r.Day = pick(limits.WindowMonth)
	}
	r.Tone, r.State = ui.OK, "passing"
	worst := 0.0
	for _, s := range states {
		if full := gaugeOf(s, w.Now).Full(); full > worst {
			worst = full
			r.Tone, r.State = pressure(s, full)
		}
	}
}

// pressure says how close to a limit a customer is.
func pressure(s limits.State, full float64) (ui.Tone, string) {
	name := strings.ToLower(limitName(s.Limit))
	switch {
	case s.Limit.Amount == 0:
		return ui.Bad, "allowed no " + name
	case s.Debt > 0 && s.Limit.Policy == limits.PolicyBucket:
		return ui.Bad, "in debt, passes in " + ui.Span(s.NextCallAfter)
	case s.Remaining == 0:
		return ui.Bad, "at its " + name
	case full >= 0.85:
		return ui.Warn, ui.Count(s.Remaining) + " left of " + name
	}
	return ui.OK, "passing"
}

// judge lets what stops every call stand before any level.
func (r *customerRow) judge(x tenants.Customer, on bool) {
	switch {
	case x.SuspendedAt != nil:
		r.Tone, r.State = ui.Idle, "suspended"
	case !on:
		r.Tone, r.State = ui.Warn, "on no plan, all refused"
	case r.State == "":
		r.Tone, r.State = ui.Idle, "level unknown"
	}
}

// RefusedShare is how much of what was asked today was refused: "11.0%".
func (r customerRow) RefusedShare() string {
	return share100(r.Today.Refused, r.Today.Requests+r.Today.Refused)
}

// share100 is a share in per cent with one decimal, "" of nothing.
func share100(part, of int64) string {
	if of == 0 {
		return ""
	}
	thousandths := part * 1000 / of
	return ui.Count(thousandths/10) + "." + ui.Count(thousandths%10) + "%"
}

// newCustomerPage is the form of a customer.
type newCustomerPage struct {
	workspace
	form
	Plans []ui.Option // published ones
}

func (p *Pages) newCustomer(c echo.Context, who auth.Person, w workspace) error {
	return p.showNewCustomer(c, who, w, form{Values: map[string][]string{}}, http.StatusOK)
}

func (p *Pages) showNewCustomer(c echo.Context, who auth.Person, w workspace, f form, status int) error {
	if f.Get("once") == "" {
		f.Set("once", id.APIKey.Format(id.At(p.now())))
	}
	view := newCustomerPage{workspace: w, form: f}
	if w.May(changePlans) {
		plans, err := p.publishedPlans(c.Request().Context(), who.Tenant, f.Get("plan"), uuid.Nil)
		if err != nil {
			return err
		}
		view.Plans = plans
	}
	return show(c, status, newCustomerView(view))
}

// publishedPlans are the plans that a customer can be put on, beside the version
// that it is on.
func (p *Pages) publishedPlans(ctx context.Context, tenant uuid.UUID, chosen string, on uuid.UUID) (out []ui.Option, err error) {
	page, err := p.billing.Plans(ctx, tenant, uuid.Nil, 100)
	for _, x := range page.Items {
		if x.Version.Status == billing.Published && x.Version.ID != on {
			value := id.Plan.Format(x.ID)
			out = append(out, ui.Option{Value: value, Label: x.Name + ": " + sentence(x.Version.Limits), Chosen: value == chosen})
		}
	}
	return out, err
}

// addCustomer makes a customer, and puts it on a plan where one was chosen.
func (p *Pages) addCustomer(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	plan, chosen := id.Plan.Parse(f.Get("plan"))
	if chosen == nil && !w.May(changePlans) {
		return forbidden(who.Role, changePlans)
	}
	ctx := asPerson(c, who)
	once := uuid.Nil
	if f.Get("once") != "" {
		once = f.once(p.now())
	}
	if len(f.Wrong) > 0 {
		return p.showNewCustomer(c, who, w, f, http.StatusBadRequest)
	}
	if _, err := p.tenants.Customer(ctx, who.Tenant, once); err == nil {
		return done(c, "/customers/"+id.Customer.Format(once), "customer-once") // a second press, or a reload
	}
	x, err := p.tenants.AddCustomer(ctx, who.Tenant, tenants.NewCustomer{
		ID: once, Name: f.Get("name"), Email: strings.TrimSpace(f.Get("email")), ExternalID: strings.TrimSpace(f.Get("external_id")),
	})
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showNewCustomer(c, who, w, f, status)
	}
	at := "/customers/" + id.Customer.Format(x.ID)
	if chosen != nil {
		return done(c, at, "customer-added")
	}
	if _, err := p.billing.Subscribe(ctx, who.Tenant, x.ID, plan); err != nil {
		return done(c, at, "customer-alone")
	}
	return done(c, at, "customer-subscribed")
}
