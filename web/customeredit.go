package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/exports"
	"weir/internal/id"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// customerEditPage is the form of a customer's name, address and own id.
type customerEditPage struct {
	workspace
	form
	ID, Called string
}

func (p *Pages) editCustomer(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	f := form{Values: url.Values{"name": {x.Name}, "email": {x.Email}, "external_id": {x.ExternalID}}}
	return show(c, http.StatusOK, customerEditView(customerEditPage{w, f, c.Param("id"), x.Name}))
}

// customerOf reads the customer of the path.
func (p *Pages) customerOf(c echo.Context, who auth.Person) (tenants.Customer, error) {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return tenants.Customer{}, err
	}
	return p.tenants.Customer(c.Request().Context(), who.Tenant, customer)
}

func (p *Pages) saveCustomer(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	name, email, external := strings.TrimSpace(f.Get("name")), strings.TrimSpace(f.Get("email")), strings.TrimSpace(f.Get("external_id"))
	_, err = p.tenants.ChangeCustomer(asPerson(c, who), who.Tenant, x.ID, tenants.CustomerChange{Name: &name, Email: &email, ExternalID: &external})
	if err == nil {
		return done(c, "/customers/"+c.Param("id"), "customer-saved")
	}
	status, err := f.refuse(err)
	if err != nil {
		return err
	}
	return show(c, status, customerEditView(customerEditPage{w, f, c.Param("id"), x.Name}))
}

// suspendPage asks before every call of a customer is refused, and POST does it.
func (p *Pages) suspendPage(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	at := "/customers/" + c.Param("id")
	if c.Request().Method == http.MethodPost {
		if _, err := p.tenants.SuspendCustomer(asPerson(c, who), who.Tenant, x.ID); err != nil {
			return err
		}
		return done(c, at, "customer-suspended")
	}
	_, working, err := p.tenants.WorkingBeside(c.Request().Context(), who.Tenant, tenants.APIKey{Customer: x.ID}, w.Now)
	if err != nil {
		return err
	}
	return p.ask(c, w, ui.Confirm{
		Title: "Suspend " + x.Name + "?", Text: "Every call of this customer is refused within a second, until you resume it.",
		Action: at + "/suspend", Back: at, Keep: "Let it call", Do: "Suspend " + x.Name,
		Consequences: []ui.Consequence{
			ui.Consequence{Tone: ui.Bad}.Of(working, "key that works now is refused; it is not revoked", "keys that work now are refused; none is revoked"),
			{Number: "0", Text: "figures change: plan, usage and levels stay as they are"},
		},
	})
}

// erasePage asks before a customer's personal data goes, and POST does it.
func (p *Pages) erasePage(c echo.Context, who auth.Person, w workspace) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	at := "/customers/" + c.Param("id")
	ask := ui.Confirm{
		Title: "Erase " + x.Name + "?", Text: "Name, address and your own id of it go; from its quotes whom they were for, notes and answers, with the mail and webhook messages that say so; from its overrides why it has them; and from its calls who used it and their tags. What could be accepted yet is withdrawn. This cannot be taken back. The audit keeps what it has noted, and files that were exported stay with who has them.",
		Action: at + "/erase", Back: at, Keep: "Keep it", Do: "Erase for good", Word: x.Name, Typed: ui.Input{Name: "word"},
	}
	if c.Request().Method != http.MethodPost {
		_, working, err := p.tenants.WorkingBeside(c.Request().Context(), who.Tenant, tenants.APIKey{Customer: x.ID}, w.Now)
		if err != nil {
			return err
		}
		ask.Consequences = []ui.Consequence{
			ui.Consequence{Tone: ui.Bad}.Of(working, "key that works now is refused", "keys that work now are refused"),
			{Number: "0", Text: "figures change: every sum, report and invoice stays as it is"},
		}
		return p.ask(c, w, ask)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.Get("word")) != x.Name {
		return p.askAgain(c, w, ask, f)
	}
	if _, err := p.tenants.EraseCustomer(asPerson(c, who), who.Tenant, x.ID, usage.Erase, quotes.Forget, billing.Forget, portal.Forget, exports.Forget); err != nil {
		return err
	}
	return done(c, at, "customer-erased")
}

func (p *Pages) resumeCustomer(c echo.Context, who auth.Person, _ workspace) error {
	x, err := p.customerOf(c, who)
	if err != nil {
		return err
	}
	if _, err := p.tenants.ResumeCustomer(asPerson(c, who), who.Tenant, x.ID); err != nil {
		return err
	}
	return done(c, "/customers/"+c.Param("id"), "customer-resumed")
}

// ownIDHint says what a customer's external id is for.
const ownIDHint = "What your CRM or billing calls it, to find it by. Unique."
