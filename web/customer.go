package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// customerPage is one customer. A part that could not be read is nil.
type customerPage struct {
	workspace
	form
	ID, Name, Email, ExternalID string
	Since                       time.Time
	Suspended                   bool
	Plan, PlanID, Says          string // "" on no plan
	Period                      billing.Period
	Started                     time.Time
	Levels                      *[]ui.Level
	EachModel, EachUser         string // limits that each has for itself, as words
	Keys                        *[]apiKeyRow
	MoreKeys                    bool
	Today                       *customerDay
	Heat                        *heat
	Sub                         subscriptionView
	Overrides                   *[]overrideRow
	Timeline                    *[]happened
	Plans                       []ui.Option
	Usage, Requests             string // where more of it stands; "" nowhere
}

// customerDay is what a customer used since midnight, by model.
type customerDay struct {
	Models []modelDay
	All    usage.Sums
	AsOf   time.Time
}

type modelDay struct {
	Name string
	usage.Sums
}

func (p *Pages) customer(c echo.Context, who auth.Person, w workspace) error {
	return p.showCustomer(c, who, w, form{Values: url.Values{}}, http.StatusOK)
}

func (p *Pages) showCustomer(c echo.Context, who auth.Person, w workspace, f form, status int) error {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	contract, err := p.billing.ContractOf(ctx, who.Tenant, customer)
	if err != nil {
		return err
	}
	x := contract.Customer
	v := customerPage{
		workspace: w, form: f, ID: id.Customer.Format(x.ID), Name: x.Name, Email: x.Email, ExternalID: x.ExternalID,
		Since: x.CreatedAt.In(w.Now.Location()), Suspended: x.SuspendedAt != nil,
	}
	if err := p.readPlanOf(ctx, who, contract, &v); err != nil {
		return err
	}
	placed := contract.Own
	keys := tile(p, c, "keys", func() (tenants.Page[tenants.APIKey], error) {
		return p.tenants.APIKeys(ctx, who.Tenant, tenants.KeyFilter{Customer: customer}, uuid.Nil, lastRows)
	})
	v.setEach(placed)
	v.Levels = tile(p, c, "levels", func() ([]ui.Level, error) { return p.customerLevels(ctx, w, placed, keys) })
	if keys != nil {
		v.setKeys(*keys)
	}
	v.Timeline = tile(p, c, "timeline", func() ([]happened, error) { return p.timeline(ctx, who.Tenant, customer, keys, w.Now) })
	if v.Plan != "" {
		v.Overrides = tile(p, c, "overrides", func() ([]overrideRow, error) {
			return p.overrideRows(ctx, who.Tenant, customer, contract.Version, w.Now)
		})
	}
	v.Today = tile(p, c, "usage", func() (customerDay, error) { return p.customerDay(ctx, w, customer) })
	v.Heat = tile(p, c, "heat", func() (heat, error) { return p.readHeat(ctx, w, customer) })
	v.Usage, v.Requests = p.linkTo("/usage", v.ID), p.linkTo("/requests", v.ID)
	return show(c, status, customerView(v))
}

// linkTo is the address of a page about one customer, "" where there is none.
func (p *Pages) linkTo(page, customer string) string {
	if !p.mounted[page] {
		return ""
	}
	return page + "?customer=" + customer
}

func (p *Pages) readPlanOf(ctx context.Context, who auth.Person, contract billing.Contract, v *customerPage) error {
	if contract.Subscription == uuid.Nil {
		if !v.May(changePlans) {
			return nil
		}
		plans, err := p.publishedPlans(ctx, who.Tenant, v.Get("plan"), uuid.Nil)
		v.Plans = plans
		return err
	}
	sub, err := p.billing.Subscription(ctx, who.Tenant, contract.Subscription)
	if err != nil {
		return err
	}
	if v.Sub, err = p.subscriptionOf(ctx, who.Tenant, sub, v.Now); err != nil {
		return err
	}
	zone := v.Now.Location()
	v.Plan, v.PlanID, v.Says = contractWords(contract), id.Plan.Format(sub.Plan), sentence(contract.Own)
	v.Started, v.Period = sub.StartedAt.In(zone), billing.Period{Start: sub.Current.Start.In(zone), End: sub.Current.End.In(zone)}
	return nil
}

// contractWords name what a customer is on, "" nothing.
func contractWords(c billing.Contract) string {
	if c.Subscription == uuid.Nil {
		return ""
	}
	return c.Plan + ", version " + ui.Count(int64(c.Version.Number))
}

// customerLevels are the gauges of the plan, then those of keys with limits of
// their own.
func (p *Pages) customerLevels(ctx context.Context, w workspace, placed []limits.Limit, keys *tenants.Page[tenants.APIKey]) ([]ui.Level, error) {
	out, err := p.levels(ctx, w.Tenant.ID, placed, "", w.Now)
	if err != nil || keys == nil {
		return out, err
	}
	seen := map[uuid.UUID]bool{}
	for _, k := range keys.Items {
		if k.Status(w.Now) != "active" || seen[k.Counter] {
			continue
		}
		seen[k.Counter] = true
		own, err := p.levels(ctx, w.Tenant.ID, k.Limits, "", w.Now)
		if err != nil {
			return out, err
		}
		for _, l := range own {
			l.Of = strings.TrimSpace("key " + k.Name + " " + l.Of)
			out = append(out, l)
		}
	}
	return out, nil
}

// eachOf says the limits that each model, or each end user, has for itself, ""
// of none.
func eachOf(list []limits.Limit, has func(limits.Limit) bool) string {
	var said []string
	for _, l := range list {
		if has(l) {
			s := ui.Count(l.Amount) + " " + strings.ToLower(limitName(l))
			if len(l.Models) > 0 {
				s += " for each of " + strings.Join(l.Models, ", ")
			}
			said = append(said, s)
		}
	}
	return strings.Join(said, "; ")
}

func (v *customerPage) setEach(list []limits.Limit) {
	v.EachModel = eachOf(list, func(l limits.Limit) bool { return l.EachModel && !l.EachEndUser() })
	v.EachUser = eachOf(list, limits.Limit.EachEndUser)
}

func (v *customerPage) setKeys(page tenants.Page[tenants.APIKey]) {
	rows := []apiKeyRow{}
	for _, k := range page.Items {
		rows = append(rows, apiKeyRowOf(k, v.Name, v.Now))
	}
	v.Keys, v.MoreKeys = &rows, page.Next != uuid.Nil
}

func (p *Pages) customerDay(ctx context.Context, w workspace, customer uuid.UUID) (customerDay, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	report, err := p.reports.Report(ctx, w.Tenant.ID, dayQuery(w, usage.ByModel, usage.Filter{Customer: customer, Tests: usage.WithTests}))
	day := customerDay{All: report.Totals, AsOf: report.AsOf.In(w.Now.Location())}
	for _, r := range report.Rows {
		day.Models = append(day.Models, modelDay{r.Group.Name, r.Sums})
	}
	slices.SortStableFunc(day.Models, func(a, b modelDay) int { return int(b.Requests + b.Refused - a.Requests - a.Refused) })
	return day, err
}

// Headline says how the customer stands; a reader may stop there.
func (v customerPage) Headline() string {
	switch {
	case v.Suspended:
		return v.Name + " is suspended. Every call is refused."
	case v.Plan == "":
		return v.Name + " is on no plan, so every call is refused."
	case v.Levels == nil || len(*v.Levels) == 0:
		return v.Name + " is on " + v.Plan + "."
	}
	worst := fullest(*v.Levels)
	name := strings.ToLower(worst.Name)
	if worst.Gauge.Full() >= 1 {
		return v.Name + " is at its limit of " + name + "."
	}
	for _, l := range *v.Levels {
		if strings.HasSuffix(l.Name, "a day") && l.Of == "" {
			return v.Name + " has " + l.Left + " " + strings.ToLower(strings.TrimSuffix(l.Name, " a day")) + " left today."
		}
	}
	return v.Name + " has " + worst.Left + " " + strings.ToLower(strings.Split(worst.Name, " a ")[0]) + " left."
}

// subscribe puts a customer on a plan.
func (p *Pages) subscribe(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return err
	}
	plan, err := id.Plan.Parse(f.Get("plan"))
	if err != nil {
		f.wrong("plan", "Choose a plan.")
		return p.showCustomer(c, who, w, f, http.StatusBadRequest)
	}
	if _, err := p.tenants.Customer(c.Request().Context(), who.Tenant, customer); err != nil {
		return err
	}
	_, err = p.billing.Subscribe(asPerson(c, who), who.Tenant, customer, plan)
	if fault.Is(err, fault.NotFound) {
		f.wrong("plan", "There is no such plan.")
		return p.showCustomer(c, who, w, f, http.StatusBadRequest)
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showCustomer(c, who, w, f, status)
	}
	return done(c, "/customers/"+c.Param("id"), "subscribed")
}

func noLimits(plan string) string {
	if plan == "" {
		return "Without a plan there is nothing to measure: every call is refused."
	}
	return "This plan sets no limits that all models share."
}
