package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// rotateProviderPage is the form of a provider key's new secret and address.
type rotateProviderPage struct {
	workspace
	form
	ID, Name, Last4 string
	Optional        bool // it may go on without a secret
	Again           bool // the form came back, without the secret that was typed
}

// rotateProvider shows where a provider key calls, and a POST gives it another
// secret or address.
func (p *Pages) rotateProvider(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	known, _ := catalogue.Lookup(k.Provider)
	v := rotateProviderPage{workspace: w, form: form{Values: url.Values{"base_url": {k.BaseURL}}}, ID: c.Param("id"), Name: k.Name, Last4: k.Last4, Optional: !known.NeedsSecret}
	if c.Request().Method != http.MethodPost {
		return show(c, http.StatusOK, rotateProviderView(v))
	}
	if v.form, err = typed(c); err != nil {
		return err
	}
	change := tenants.KeyChange{}
	if base := strings.TrimSpace(v.Get("base_url")); v.Has("base_url") && base != k.BaseURL {
		change.BaseURL = &base
	}
	if secret := keyring.NewSecret(strings.TrimSpace(v.Get("secret"))); !secret.IsZero() {
		change.Secret = &secret
	}
	if change.Secret == nil && change.BaseURL == nil {
		v.wrong("secret", "Nothing is changed yet: type the new key, or another address.")
		return show(c, http.StatusBadRequest, rotateProviderView(v))
	}
	if _, err = p.tenants.ChangeProviderKey(asPerson(c, who), who.Tenant, k.ID, change); err == nil {
		return done(c, "/providers/"+v.ID, "provider-rotated")
	}
	v.Again = v.Get("secret") != ""
	v.Del("secret")
	status, err := v.refuse(err)
	if err != nil {
		return err
	}
	return show(c, status, rotateProviderView(v))
}

// switchProvider asks before a provider key is switched off, and a POST switches
// it off or on.
func (p *Pages) switchProvider(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	off := k.Status != tenants.Disabled
	if c.Request().Method != http.MethodPost {
		ask, err := p.switching(c.Request().Context(), w, k)
		if err != nil {
			return err
		}
		return p.ask(c, w, ask)
	}
	if _, err := p.tenants.ChangeProviderKey(asPerson(c, who), who.Tenant, k.ID, tenants.KeyChange{Disabled: &off}); err != nil {
		return err
	}
	if off {
		return done(c, "/providers/"+c.Param("id"), "provider-off")
	}
	return done(c, "/providers/"+c.Param("id"), "provider-on")
}

// switching says what switching a key off, or on, means.
func (p *Pages) switching(ctx context.Context, w workspace, k tenants.ProviderKey) (ui.Confirm, error) {
	at := "/providers/" + id.ProviderKey.Format(k.ID)
	if k.Status == tenants.Disabled {
		return ui.Confirm{
			Title: "Switch " + k.Name + " on?", Text: "It is checked live first. Calls go out through it within a second.",
			Action: at + "/switch", Back: at, Keep: "Leave it off", Do: "Switch on",
		}, nil
	}
	ask := ui.Confirm{
		Title: "Switch " + k.Name + " off?", Text: "No new call uses it within a second, on every replica. Calls that run go on. Its secret, its limits and what is used stay.",
		Action: at + "/switch", Back: at, Keep: "Leave it on", Do: "Switch off",
	}
	r, err := p.tenants.RemovalOf(ctx, w.Tenant.ID, k.ID)
	if err != nil {
		return ask, err
	}
	today, err := p.usedToday(ctx, w, usage.ByNothing, usage.Filter{ProviderKey: k.ID})
	if err != nil {
		return ask, err
	}
	alone := ui.Consequence{Number: "0", Text: "models that only this key serves"}
	if n := int64(len(r.Models)); n > 0 {
		served := "served by this key alone, and by none until it is on again: " + some(r.Models, 4)
		alone = ui.Consequence{Tone: ui.Bad}.Of(n, "model is "+served, "models are "+served)
	}
	ask.Consequences = []ui.Consequence{
		alone,
		ui.Consequence{}.Of(today[uuid.Nil].Requests, "call went through it today", "calls went through it today"),
		ui.Consequence{}.Of(r.Others, "other provider key goes on", "other provider keys go on"),
	}
	return ask, nil
}
