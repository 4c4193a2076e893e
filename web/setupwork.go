package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// again shows a step with what was typed, and what of it is not right.
func (p *Pages) again(c echo.Context, who auth.Person, w workspace, step string, f form, status int) error {
	return p.showSetup(c, who, setupPage{workspace: w, form: f, Open: step}, status)
}

// setupProvider stores the first provider key, or the practice one.
func (p *Pages) setupProvider(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	n := tenants.NewProviderKey{Provider: f.Get("provider"), Secret: keyring.NewSecret(strings.TrimSpace(f.Get("secret")))}
	if known, _ := catalogue.Lookup(n.Provider); known.NeedsBaseURL {
		n.BaseURL = strings.TrimSpace(f.Get("base_url"))
	}
	if f.Get("do") == "practice" {
		if there, err := p.hasPractice(c.Request().Context(), who.Tenant); err != nil {
			return err
		} else if there {
			return c.Redirect(http.StatusSeeOther, "/setup")
		}
		n = tenants.NewProviderKey{Provider: "practice"}
	}
	if n.Name, err = p.freeName(c, who, n.Provider); err != nil {
		return err
	}
	k, err := p.tenants.AddProviderKey(asPerson(c, who), who.Tenant, n)
	if e := fault.Of(err); e != nil && e.Code == "name_taken" { // by the same form, in this very moment
		return c.Redirect(http.StatusSeeOther, "/setup?step=provider")
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.again(c, who, w, "provider", f, status)
	}
	if !k.Usable() {
		return c.Redirect(http.StatusSeeOther, "/setup?step=provider")
	}
	return c.Redirect(http.StatusSeeOther, "/setup")
}

// freeName is a name for a provider's key that none has: "OpenAI 2".
func (p *Pages) freeName(c echo.Context, who auth.Person, provider string) (string, error) {
	name := "Key"
	if known, ok := catalogue.Lookup(provider); ok {
		name, _, _ = strings.Cut(known.Name, ",")
		name = strings.TrimSuffix(name, " provider")
	}
	page, err := p.tenants.ProviderKeys(c.Request().Context(), who.Tenant, uuid.Nil, 100)
	free := name
	for n := 2; slices.ContainsFunc(page.Items, func(k tenants.ProviderKey) bool { return strings.EqualFold(k.Name, free) }); n++ {
		free = name + " " + strconv.Itoa(n)
	}
	return free, err
}

// setupPlan makes a plan of two numbers, and publishes it.
func (p *Pages) setupPlan(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("do") == "preview" {
		return p.again(c, who, w, "plan", f, http.StatusOK)
	}
	list, from := f.limits()
	if len(f.Wrong) > 0 {
		return p.again(c, who, w, "plan", f, http.StatusBadRequest)
	}
	ctx := asPerson(c, who)
	if _, err := p.billing.AddPublished(ctx, who.Tenant, f.Get("name"), billing.NewVersion{Limits: list}); err != nil {
		status, err := f.refuse(rowed(err, "limits", from))
		if err != nil {
			return err
		}
		return p.again(c, who, w, "plan", f, status)
	}
	return c.Redirect(http.StatusSeeOther, "/setup")
}

// setupKey makes a customer on a plan, and a key whose secret is shown once.
func (p *Pages) setupKey(c echo.Context, who auth.Person, w workspace) error {
	if !w.May(changeCustomers) {
		return forbidden(who.Role, changeCustomers)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	once := f.once(p.now())
	plan, err := id.Plan.Parse(f.Get("plan"))
	if err == nil {
		var x billing.Plan
		if x, err = p.billing.Plan(c.Request().Context(), who.Tenant, plan); err == nil && x.Version.Status != billing.Published {
			err = tenants.NotFound("plan")
		}
	}
	if err != nil {
		f.wrong("plan", "Choose a plan that is published.")
	}
	if len(f.Wrong) > 0 {
		return p.again(c, who, w, "key", f, http.StatusBadRequest)
	}
	ctx := asPerson(c, who)
	k, err := p.billing.Onboard(ctx, p.tenants, who.Tenant, billing.Onboarding{
		Customer: tenants.NewCustomer{Name: f.Get("name")}, Plan: plan, Key: tenants.NewAPIKey{ID: once, Name: "First key"}, Asked: id.Time(once),
	})
	if e := fault.Of(err); e != nil && e.Code == "already_made" {
		return show(c, http.StatusConflict, setupKeyMadeView(w))
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.again(c, who, w, "key", f, status)
	}
	v := setupPage{workspace: w, Open: "call", Secret: k.Secret, Tabs: callTabs(p.publicURL, k.Secret, p.modelFor(ctx, who.Tenant, k.APIKey))}
	return p.showSetup(c, who, v, http.StatusOK)
}

// A key that runs into its limit on purpose, and for how long it works.
const (
	tripName = "Refused on purpose"
	tripLife = time.Hour
)

// setupRefusal makes a key of one request a minute, and shows the two calls of
// which the second is refused.
func (p *Pages) setupRefusal(c echo.Context, who auth.Person, w workspace) error {
	if !w.May(seeCustomerKeys) {
		return forbidden(who.Role, seeCustomerKeys)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	ctx := asPerson(c, who)
	of, found, err := p.setupCustomer(ctx, w)
	if err != nil {
		return err
	}
	once := f.once(p.now())
	if !found {
		f.wrong("", "A customer with a key is needed first: step 3 makes both.")
	}
	if len(f.Wrong) > 0 {
		return p.again(c, who, w, "refusal", f, http.StatusBadRequest)
	}
	until := p.now().Add(tripLife)
	k, err := p.tenants.AddAPIKey(ctx, who.Tenant, tenants.NewAPIKey{
		ID: once, Kind: tenants.ForCustomer, Customer: of.Customer, Name: tripName, ExpiresAt: &until,
		Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 1}},
	})
	if fault.Of(err) != nil && fault.Of(err).Code == "already_made" {
		return c.Redirect(http.StatusSeeOther, "/setup?step=refusal")
	}
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("{url}", p.publicURL, "{key}", k.Secret, "{model}", p.modelFor(ctx, who.Tenant, k.APIKey))
	return p.showSetup(c, who, setupPage{workspace: w, Open: "refusal", Trip: fill.Replace(tripCurl)}, http.StatusOK)
}

const tripCurl = `for i in 1 2; do
  curl -i {url}/v1/chat/completions \
    -H "Authorization: Bearer {key}" \
    -H "Content-Type: application/json" \
    -d '{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}'
done`

// setupSkip leaves a step out, or the rest of the path.
func (p *Pages) setupSkip(c echo.Context, who auth.Person, _ workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	if err := p.tenants.SkipSetup(asPerson(c, who), who.Tenant, f.Get("step")); err != nil {
		return err
	}
	if f.Get("step") == "path" {
		return c.Redirect(http.StatusSeeOther, "/")
	}
	return c.Redirect(http.StatusSeeOther, "/setup")
}
