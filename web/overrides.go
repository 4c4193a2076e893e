package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// overridePage is the form of a customer's override.
type overridePage struct {
	workspace
	form
	ID, Name, Says string
}

func (p *Pages) newOverride(c echo.Context, who auth.Person, w workspace) error {
	f := form{Values: url.Values{}}
	f.put(0, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute})
	f.Set(row("limits", 0, "amount"), "")
	return p.showOverride(c, who, w, f, http.StatusOK)
}

func (p *Pages) showOverride(c echo.Context, who auth.Person, w workspace, f form, status int) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	contract, err := p.billing.ContractOf(c.Request().Context(), who.Tenant, x.ID)
	if err != nil {
		return err
	}
	return show(c, status, overrideView(overridePage{w, f, c.Param("id"), x.Name, sentence(contract.Own)}))
}

// addOverride gives a customer a limit of its own.
func (p *Pages) addOverride(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	n := f.override(x, w.Now.Location())
	if len(f.Wrong) > 0 {
		return p.showOverride(c, who, w, f, http.StatusBadRequest)
	}
	if _, err = p.billing.AddOverride(asPerson(c, who), who.Tenant, n); err == nil {
		return done(c, "/customers/"+c.Param("id"), "override-added")
	}
	status, err := f.refuse(ofFirstRow(err))
	if err != nil {
		return err
	}
	return p.showOverride(c, who, w, f, status)
}

// override reads the form. What is not right is noted in it.
func (f *form) override(x tenants.Customer, zone *time.Location) billing.NewOverride {
	n := billing.NewOverride{Customer: x.ID, Reason: f.Get("reason"), From: f.instant("from", zone), Until: f.instant("until", zone)}
	list, _ := f.limits()
	switch {
	case len(list) == 1:
		n.Limit = list[0]
	case f.Error(row("limits", 0, "amount")) == "":
		f.wrong(row("limits", 0, "amount"), "How much? 0 admits nothing.")
	}
	return n
}

// instant is a local time that was typed, nil none.
func (f *form) instant(name string, zone *time.Location) *time.Time {
	text := strings.TrimSpace(f.Get(name))
	if text == "" {
		return nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04", text, zone)
	if err != nil {
		f.wrong(name, "This is not a time such as 2026-12-24T18:00.")
		return nil
	}
	return &t
}

// ofFirstRow names the fields of one limit as those of the first row.
func ofFirstRow(err error) error {
	e := *fault.Of(err)
	e.Fields = nil
	for _, x := range fault.Of(err).Fields {
		if rest, found := strings.CutPrefix(x.Pointer, "/limit/"); found {
			x.Pointer = "/limits/0/" + rest
		}
		e.Fields = append(e.Fields, x)
	}
	return &e
}

// endOverride ends one of the customer's overrides.
func (p *Pages) endOverride(c echo.Context, who auth.Person, _ workspace) error {
	override, err := id.Override.Parse(c.Param("override"))
	if err != nil {
		return tenants.NotFound("override")
	}
	o, err := p.billing.Override(c.Request().Context(), who.Tenant, override)
	if err != nil {
		return err
	}
	if id.Customer.Format(o.Customer) != c.Param("id") {
		return tenants.NotFound("override")
	}
	if _, err := p.billing.EndOverride(asPerson(c, who), who.Tenant, override); err != nil {
		return err
	}
	return done(c, "/customers/"+c.Param("id"), "override-ended")
}
