package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// Names and limits of keys that are there already.

// keyForm is a form of a key's name and its limits.
func keyForm(name string, list []limits.Limit) form {
	f := form{Values: url.Values{"name": {name}}}
	for i, l := range list {
		f.put(i, l)
	}
	return f
}

// change reads the form; limits only where it has rows for them.
func (f *form) change() (c tenants.KeyChange, from []int) {
	name := strings.TrimSpace(f.Get("name"))
	c.Name = &name
	if f.Has("zone") {
		zone := strings.TrimSpace(f.Get("zone"))
		c.Zone = &zone
	}
	if f.Has("tier") {
		tier := f.Get("tier")
		c.Tier = &tier
	}
	if f.rows("limits", "amount") > 0 {
		list, rows := f.limits()
		c.Limits, from = &list, rows
	}
	return c, from
}

// save changes something by what was typed. What is not right comes back as the
// status to show the form with; 0 where all is done.
func (f *form) save(change func(tenants.KeyChange) error) (int, error) {
	if f.Get("do") == "row" {
		*f = f.another()
		return http.StatusOK, nil
	}
	c, from := f.change()
	if len(f.Wrong) > 0 {
		return http.StatusBadRequest, nil
	}
	err := change(c)
	if err == nil {
		return 0, nil
	}
	return f.refuse(rowed(err, "limits", from))
}

// changeKey changes the name and the limits of an API key.
func (p *Pages) changeKey(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.keyOf(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	status, err := f.save(func(change tenants.KeyChange) error {
		_, err := p.tenants.ChangeAPIKey(asPerson(c, who), who.Tenant, k.ID, change)
		return err
	})
	if err != nil || status == 0 {
		return orDone(c, err, "/keys/"+c.Param("id"), "key-changed")
	}
	return p.showKey(c, who, w, k, f, form{Values: url.Values{}}, status)
}

// providerEditPage is a provider key's form.
type providerEditPage struct {
	workspace
	form
	ID, Name string
	Tiers    []ui.Option // of the provider; none: it publishes none
}

// dayZone is where the provider's days end.
func (v providerEditPage) dayZone() ui.Input {
	in := v.input("zone", "Its days end in")
	in.Class, in.Hint = "zone", "An IANA name such as America/Los_Angeles. Another zone counts once the running day ends; what is used until then stays used."
	return in
}

// setTiers offers the tiers that the provider publishes limits for.
func (v *providerEditPage) setTiers(offers []catalogue.Offer) {
	tier := v.Get("tier")
	_, published := catalogue.OfferOf(offers, tier)
	if len(offers) == 0 && tier == "" {
		return
	}
	v.Tiers = []ui.Option{{Label: "Not known"}}
	if tier != "" && !published {
		v.Tiers = append(v.Tiers, ui.Option{Value: tier, Label: tier + ", of which nothing is published", Chosen: true})
	}
	for _, o := range offers {
		v.Tiers = append(v.Tiers, ui.Option{Value: o.Tier, Label: strings.ToUpper(o.Tier[:1]) + o.Tier[1:], Chosen: o.Tier == tier})
	}
}

// filled is the form with what is published for its tier, where it says nothing
// of the same kind.
func (v providerEditPage) filled(offers []catalogue.Offer) providerEditPage {
	list, _ := v.limits()
	offer, _ := catalogue.OfferOf(offers, v.Get("tier"))
	next := keyForm(v.Get("name"), offer.With(list))
	next.Set("zone", v.Get("zone"))
	next.Set("tier", v.Get("tier"))
	v.form = next
	return v
}

// editProvider shows the name and the limits of a provider key, and a POST
// changes them.
func (p *Pages) editProvider(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	v := providerEditPage{workspace: w, form: keyForm(k.Name, k.Limits), ID: c.Param("id"), Name: k.Name}
	v.Set("zone", k.Zone)
	v.Set("tier", k.Tier)
	_, offers, err := p.offers(c.Request().Context(), w, k.Provider, "")
	if err != nil {
		return err
	}
	v.setTiers(offers)
	if c.Request().Method != http.MethodPost {
		return show(c, http.StatusOK, providerEditView(v))
	}
	if v.form, err = typed(c); err != nil {
		return err
	}
	v.setTiers(offers)
	if v.Get("do") == "tier" {
		return show(c, http.StatusOK, providerEditView(v.filled(offers)))
	}
	status, err := v.save(func(change tenants.KeyChange) error {
		_, err := p.tenants.ChangeProviderKey(asPerson(c, who), who.Tenant, k.ID, change)
		return err
	})
	if err != nil || status == 0 {
		return orDone(c, err, "/providers/"+v.ID, "provider-changed")
	}
	return show(c, status, providerEditView(v))
}

// orDone is the error, else the way to what was changed.
func orDone(c echo.Context, err error, to, what string) error {
	if err != nil {
		return err
	}
	return done(c, to, what)
}
