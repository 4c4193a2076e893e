package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
)

// handedLink is a link into a portal that somebody hands over themselves.
type handedLink struct {
	workspace
	Customer, Path, URL string
	Until               time.Time
}

// sendPortalLink mails a customer the way into its portal.
func (p *Pages) sendPortalLink(c echo.Context, who auth.Person, w workspace) error {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return err
	}
	if _, err = p.portal.SendLink(asPerson(c, who), who.Tenant, customer); err != nil {
		var f form
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return p.showCustomer(c, who, w, f, status)
	}
	return done(c, "/customers/"+c.Param("id"), "portal-sent")
}

// makePortalLink shows a link to be handed over, once.
func (p *Pages) makePortalLink(c echo.Context, who auth.Person, w workspace) error {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return err
	}
	x, err := p.tenants.Customer(c.Request().Context(), who.Tenant, customer)
	if err != nil {
		return err
	}
	link, err := p.portal.MakeLink(asPerson(c, who), who.Tenant, customer)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, handedLinkView(handedLink{w, x.Name, "/customers/" + c.Param("id"), link.URL, link.ExpiresAt.In(w.Now.Location())}))
}

// endPortal signs a customer's people out.
func (p *Pages) endPortal(c echo.Context, who auth.Person, _ workspace) error {
	customer, err := param(c, id.Customer, "customer")
	if err != nil {
		return err
	}
	if _, err := p.portal.EndSessions(asPerson(c, who), who.Tenant, customer); err != nil {
		return err
	}
	return done(c, "/customers/"+c.Param("id"), "portal-ended")
}
