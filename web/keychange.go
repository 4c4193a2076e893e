package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
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
}

// dayZone is where the provider's days end.
func (v providerEditPage) dayZone() ui.Input {
	in := v.input("zone", "Its days end in")
	in.Class, in.Hint = "zone", "An IANA name such as America/Los_Angeles. Another zone counts once the running day ends; what is used until then stays used."
	return in
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
	if c.Request().Method != http.MethodPost {
		return show(c, http.StatusOK, providerEditView(v))
	}
	if v.form, err = typed(c); err != nil {
		return err
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
