package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/id"
	sums "weir/internal/money"
	"weir/internal/usage"
	"weir/web/ui"
)

// plansPage is what the list of plans shows.
type plansPage struct {
	workspace
	Rows          []planRow
	Newest, Older string
}

// planRow is a plan in the list.
type planRow struct {
	ID, Name, Says string
	Status         billing.VersionStatus
	Number         int
	Fee            string // "" where the person may not see money, or there is none
	Customers      int64
}

func (p *Pages) plans(c echo.Context, who auth.Person, w workspace) error {
	ctx := c.Request().Context()
	from, _ := id.Plan.Parse(c.QueryParam("after"))
	page, err := p.billing.Plans(ctx, who.Tenant, from, pageRows)
	if err != nil {
		return err
	}
	on, err := p.billing.Subscribed(ctx, who.Tenant)
	if err != nil {
		return err
	}
	view := plansPage{
		workspace: w, Newest: newest("/plans", c.QueryParams(), "after"),
		Older: older("/plans", c.QueryParams(), "after", id.Plan.Format(page.Next)),
	}
	for _, x := range page.Items {
		r := planRow{ID: id.Plan.Format(x.ID), Name: x.Name, Says: sentence(x.Version.Limits), Status: x.Version.Status, Number: x.Version.Number, Fee: feeWords(x.Version, w)}
		versions, err := p.billing.Versions(ctx, who.Tenant, x.ID)
		if err != nil {
			return err
		}
		for _, v := range versions {
			r.Customers += on[v.ID]
		}
		view.Rows = append(view.Rows, r)
	}
	return show(c, http.StatusOK, plansView(view))
}

// feeWords is the fee of a version, "" where there is none or money is not the
// reader's to see.
func feeWords(v billing.Version, w workspace) string {
	if v.BaseFee == 0 || !w.May(seeMoney) {
		return ""
	}
	return sums.FormatMinor(v.BaseFee, v.Currency) + " " + v.Currency + " a month"
}

// planPage is one plan: its current version, its draft, and those before.
type planPage struct {
	workspace
	ID, Name string
	Current  versionView  // the published one, or the first draft
	Draft    *versionView // a newer version that is not published yet
	Versions []versionView
	On       []standeeRow
	MoreOn   bool
	Older    int64 // customers on another version than the published one
}

// versionView is a version as people read it.
type versionView struct {
	Number    int
	Status    billing.VersionStatus
	Says      string
	Fine      []string
	Prices    priceList
	Fee       string
	Minimum   string // "" none
	Trial     int
	Customers int64
	Published time.Time
}

// priceList is a price list as people read it: a row for each pattern of
// models, a column for each class that has a price.
type priceList struct {
	Classes []string
	Rows    []priceLine
}

// priceLine has a price for each class, "" where there is none.
type priceLine struct {
	Models string
	Prices []string
}

func (p *Pages) plan(c echo.Context, who auth.Person, w workspace) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	x, err := p.billing.Plan(ctx, who.Tenant, plan)
	if err != nil {
		return err
	}
	versions, err := p.billing.Versions(ctx, who.Tenant, plan)
	if err != nil {
		return err
	}
	on, err := p.billing.Subscribed(ctx, who.Tenant)
	if err != nil {
		return err
	}
	view := planPage{workspace: w, ID: id.Plan.Format(x.ID), Name: x.Name}
	for _, v := range versions {
		said := versionOf(v, on, w)
		if v.ID == x.Version.ID {
			view.Current = said
		} else if v.Status == billing.Draft && v.Number > x.Version.Number && view.Draft == nil {
			view.Draft = &said
		}
		view.Versions = append(view.Versions, said)
	}
	if w.May(seeCustomers) {
		if view.On, view.MoreOn, err = p.standees(c, who, plan); err != nil {
			return err
		}
	}
	for _, v := range view.Versions {
		if v.Number != view.Current.Number {
			view.Older += v.Customers
		}
	}
	return show(c, http.StatusOK, planView(view))
}

func versionOf(v billing.Version, on map[uuid.UUID]int64, w workspace) versionView {
	out := versionView{
		Number: v.Number, Status: v.Status, Says: sentence(v.Limits), Fine: billing.FinePrint(v.Limits, v.CapOutput, w.Tenant.Zone),
		Fee: feeWords(v, w), Customers: on[v.ID], Published: inZone(v.PublishedAt, w.Now),
	}
	if !w.May(seeMoney) {
		return out
	}
	out.Prices = pricesOf(v.Prices)
	if out.Trial = v.TrialDays; v.Minimum > 0 {
		out.Minimum = signedAmount(v.Minimum, v.Currency)
	}
	return out
}

func pricesOf(list []billing.Price) (out priceList) {
	var classes []usage.Class
	for _, c := range usage.Classes {
		if slices.ContainsFunc(list, func(x billing.Price) bool { return x.Class == c }) {
			classes, out.Classes = append(classes, c), append(out.Classes, classWords(c))
		}
	}
	for _, x := range list {
		i := slices.IndexFunc(out.Rows, func(l priceLine) bool { return l.Models == modelsWords(x.Models) })
		if i < 0 {
			i, out.Rows = len(out.Rows), append(out.Rows, priceLine{modelsWords(x.Models), make([]string, len(classes))})
		}
		out.Rows[i].Prices[slices.Index(classes, x.Class)] = lineWords(x)
	}
	return out
}

func modelsWords(pattern string) string {
	if pattern == "*" {
		return "every model"
	}
	return pattern
}

// statusWords says where a version stands.
func statusWords(s billing.VersionStatus) (ui.Tone, string) {
	switch s {
	case billing.Published:
		return ui.OK, "published"
	case billing.Draft:
		return ui.Warn, "draft"
	}
	return ui.Idle, "retired"
}

// publish makes the newest draft of a plan its current version.
func (p *Pages) publish(c echo.Context, who auth.Person, _ workspace) error {
	plan, err := param(c, id.Plan, "plan")
	if err != nil {
		return err
	}
	if _, err := p.billing.Publish(asPerson(c, who), who.Tenant, plan); err != nil {
		return err
	}
	return done(c, "/plans/"+c.Param("id"), "plan-published")
}
