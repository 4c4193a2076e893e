package web

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	sums "weir/internal/money"
	"weir/web/ui"
)

// changePlanPage is the way of a customer to another plan: what it would do
// stands on it before anything is done.
type changePlanPage struct {
	workspace
	form
	ID, Name string
	Plans    []ui.Option
	Preview  *changeView // nil: no plan is chosen yet
}

// changeView is what a change would do.
type changeView struct {
	Token         string
	When, Takes   string
	Before, After string
	Lines         []moneyLine
	Total, Next   string
	Used          []usedOf
}

type moneyLine struct{ Says, Amount string }

// usedOf is what is used of a limit that will hold.
type usedOf struct {
	Name, Used, Limit string
	Over              bool
}

var whenOptions = []ui.Option{
	{Value: "", Label: "Upgrades now, downgrades when the period ends"}, {Value: string(billing.AtOnce), Label: "Now"}, {Value: string(billing.AtPeriodEnd), Label: "When the period ends"},
}

// changePlan shows what going to another plan would do.
func (p *Pages) changePlan(c echo.Context, who auth.Person, w workspace) error {
	return p.showChangePlan(c, who, w, form{Values: c.QueryParams()}, http.StatusOK)
}

func (p *Pages) showChangePlan(c echo.Context, who auth.Person, w workspace, f form, status int) error {
	x, sub, err := p.subscriptionIn(c, who)
	if err != nil {
		return err
	}
	v := changePlanPage{workspace: w, form: f, ID: c.Param("id"), Name: x.Name}
	if v.Plans, err = p.publishedPlans(c.Request().Context(), who.Tenant, f.Get("plan"), sub.PlanVersion); err != nil {
		return err
	}
	plan, err := id.Plan.Parse(f.Get("plan"))
	switch {
	case f.Get("plan") == "":
		return show(c, status, changePlanView(v))
	case err != nil:
		v.wrong("plan", "Choose a plan.")
		return show(c, http.StatusBadRequest, changePlanView(v))
	}
	preview, err := p.billing.PreviewChange(c.Request().Context(), who.Tenant, sub.ID, plan, billing.When(f.Get("at")))
	if err == nil {
		v.Preview, err = p.changeOf(c, who, w, preview)
	}
	if fault.Is(err, fault.NotFound) {
		v.wrong("plan", "There is no such plan.")
		return show(c, http.StatusBadRequest, changePlanView(v))
	}
	if err != nil {
		if status, err = v.refuse(err); err != nil {
			return err
		}
	}
	return show(c, status, changePlanView(v))
}

func (p *Pages) changeOf(c echo.Context, who auth.Person, w workspace, x billing.Change) (*changeView, error) {
	v := &changeView{
		Token: x.Token, Before: sentence(x.Before), After: sentence(x.After), Takes: "now",
		When:  "An " + string(x.Direction) + ", now",
		Total: signedAmount(x.TotalMinor, x.Currency), Next: sums.FormatMinor(x.NextFeeMinor, x.Currency) + " " + x.Currency,
	}
	if x.Direction == billing.Downgrade {
		v.When = "A downgrade, now"
	}
	if x.When == billing.AtPeriodEnd {
		v.Takes = ui.Instant(x.At.In(w.Now.Location()), w.Now)
		v.When = "When the period ends, " + v.Takes
	}
	for _, l := range x.Lines {
		v.Lines = append(v.Lines, moneyLine{l.Description, signedAmount(l.AmountMinor, x.Currency)})
	}
	var err error
	v.Used, err = p.usedOf(c, who, x.After)
	return v, err
}

// signedAmount is an amount with its sign.
func signedAmount(minor int64, currency string) string {
	if minor < 0 {
		return "−" + sums.FormatMinor(-minor, currency) + " " + currency
	}
	return sums.FormatMinor(minor, currency) + " " + currency
}

// usedOf is what is used now of limits that all models and end users share.
func (p *Pages) usedOf(c echo.Context, who auth.Person, list []limits.Limit) (out []usedOf, err error) {
	states, err := p.limits.Live(c.Request().Context(), who.Tenant, list, "", "")
	for _, st := range states {
		if !st.Limit.EachModel && !st.Limit.EachEndUser() {
			used := st.Used + st.Held
			out = append(out, usedOf{limitName(st.Limit), ui.Count(used), ui.Count(st.Limit.Amount), used > st.Limit.Amount})
		}
	}
	return out, err
}

// makeChange carries out what was shown.
func (p *Pages) makeChange(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	_, sub, err := p.subscriptionIn(c, who)
	if err != nil {
		return err
	}
	sub, err = p.billing.ChangeBy(asPerson(c, who), who.Tenant, sub.ID, f.Get("token"))
	if err == nil {
		said := "moved"
		if plan, err := id.Plan.Parse(f.Get("plan")); err != nil || sub.Plan != plan || f.Get("takes") != "now" {
			said = "move-waits"
		}
		return done(c, "/customers/"+c.Param("id"), said)
	}
	again := form{Values: url.Values{"plan": {f.Get("plan")}, "at": {f.Get("at")}}}
	status, err := again.refuse(err)
	if err != nil {
		return err
	}
	return p.showChangePlan(c, who, w, again, status)
}
