package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// newProviderPage is the form of a provider key. The secret is never sent back
// to a page.
type newProviderPage struct {
	workspace
	form
	Providers []ui.Option
	More      bool // the optional fields are open
	Again     bool // the form came back, without the secret that was typed
	Offers    offersView
}

func (p *Pages) newProvider(c echo.Context, _ auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	f.Set("provider", "openai")
	if known, ok := catalogue.Lookup(c.QueryParam("provider")); ok {
		f.Set("provider", known.Slug)
		if known.Practice {
			f.Set("name", "Practice")
		}
	}
	f.put(0, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute})
	f.put(1, limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute})
	f.Set(row("limits", 0, "amount"), "")
	f.Set(row("limits", 1, "amount"), "")
	return p.showNewProvider(c, w, f, http.StatusOK)
}

func (p *Pages) showNewProvider(c echo.Context, w workspace, f form, status int) error {
	view := newProviderPage{workspace: w, form: f, More: f.Get("models") != "" || f.Error("models") != ""}
	for _, x := range catalogue.Providers() {
		view.Providers = append(view.Providers, ui.Option{Value: x.Slug, Label: x.Name, Chosen: x.Slug == f.Get("provider")})
	}
	for _, r := range f.limitRows(0) {
		view.More = view.More || r.Amount.Value != ""
	}
	offers, _, err := p.offers(c.Request().Context(), w, f.Get("provider"), f.Get("tier"))
	if err != nil {
		return err
	}
	view.Offers, view.Again = offers, f.Get("secret") != ""
	f.Del("secret")
	return show(c, status, newProviderView(view))
}

// addProvider stores a key after a live check, whatever the check says.
func (p *Pages) addProvider(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	n := tenants.NewProviderKey{Provider: f.Get("provider"), Name: f.Get("name"), Models: f.words("models")}
	known, _ := catalogue.Lookup(n.Provider)
	if !known.Practice { // what the form hides for a provider is not meant
		n.Secret = keyring.NewSecret(strings.TrimSpace(f.Get("secret")))
	}
	if known.NeedsBaseURL {
		n.BaseURL = strings.TrimSpace(f.Get("base_url"))
	}
	list, from := f.limits()
	n.Limits = list
	if f.Get("do") == "tiers" {
		f.Wrong = nil
		return p.showNewProvider(c, w, f, http.StatusOK)
	}
	if f.Get("do") == "row" {
		f.Wrong = nil
		return p.showNewProvider(c, w, f.another(), http.StatusOK)
	}
	if len(f.Wrong) > 0 {
		return p.showNewProvider(c, w, f, http.StatusBadRequest)
	}
	_, offers, err := p.offers(c.Request().Context(), w, n.Provider, "")
	if err != nil {
		return err
	}
	var offer catalogue.Offer
	if n.Tier, offer = chosenTier(n.Provider, f.Get("tier"), offers); n.Tier != "" {
		n.Limits = offer.With(n.Limits)
	}
	k, err := p.tenants.AddProviderKey(asPerson(c, who), who.Tenant, n)
	if err != nil {
		status, err := f.refuse(rowed(err, "limits", from))
		if err != nil {
			return err
		}
		return p.showNewProvider(c, w, f, status)
	}
	return done(c, "/providers/"+id.ProviderKey.Format(k.ID), "provider-added")
}
