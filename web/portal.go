package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/branding"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/portal"
	"weir/internal/tenants"
	"weir/web/ui"
)

// portalPath is where a customer's own pages are. They take a session of their
// own, and no member's.
const portalPath = "/portal"

func ofPortal(path string) bool {
	return path == portalPath || strings.HasPrefix(path, portalPath+"/")
}

// mountPortal puts the portal on e: the door, which is open, and what is behind
// it.
func (p *Pages) mountPortal(e *echo.Echo) {
	p.get(e, "/portal/sign-in", p.portalDoor)
	p.post(e, "/portal/sign-in", p.askPortalLink)
	p.get(e, "/portal/in/:token", p.portalLinkPage)
	p.post(e, "/portal/in", p.enterPortal)
	p.post(e, "/portal/sign-out", p.leavePortal)
	p.get(e, "/portal", p.visited(p.portalHome))
	p.get(e, "/portal/tiles/levels", p.visited(p.portalLevelsTile))
	p.get(e, "/portal/usage", p.visited(p.portalUsage))
	p.get(e, "/portal/usage.csv", p.visited(p.portalCSV))
	p.get(e, "/portal/requests", p.visited(p.portalRequests))
	p.get(e, "/portal/requests/:id", p.visited(p.portalRequest))
	p.get(e, "/portal/keys", p.visited(p.portalKeys))
	p.post(e, "/portal/keys/:id/rotate", p.visited(p.rotatePortalKey))
	p.get(e, "/portal/keys/:id/revoke", p.visited(p.revokePortalKey))
	p.post(e, "/portal/keys/:id/revoke", p.visited(p.revokePortalKey))
	p.get(e, "/portal/agreement", p.visited(p.portalAgreement))
}

// visit is what every page of the portal starts from.
type visit struct {
	portal.Visitor
	Brand     branding.Brand
	Tenant    tenants.Tenant
	Now       time.Time // in the tenant's zone
	RequestID string
	Path      string
	Done      string
}

type visitKey struct{}

// visited lets h see a customer's people with a session only; everybody else is
// sent to the door. What the customer may see is read with every request.
func (p *Pages) visited(h func(echo.Context, visit) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		v, err := p.visit(c)
		if fault.Is(err, fault.Unauthenticated) {
			return p.portalFirst(c)
		}
		if err != nil {
			return err
		}
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), visitKey{}, v.Brand)))
		return h(c, v)
	}
}

func (p *Pages) visit(c echo.Context) (visit, error) {
	r := c.Request()
	token := p.guests.token(r)
	if token == "" {
		return visit{}, fault.New(fault.Unauthenticated, "session_ended", "Your session has ended. Ask for a new sign-in link.")
	}
	visitor, err := p.portal.Visitor(r.Context(), token, r.Header.Get(byItself) == "")
	if err != nil {
		return visit{}, err
	}
	t, err := p.tenants.Get(r.Context(), visitor.Tenant)
	if err != nil {
		return visit{}, err
	}
	b, err := p.brands.Brand(r.Context(), visitor.Tenant)
	if err != nil {
		return visit{}, err
	}
	zone, err := time.LoadLocation(t.Zone)
	return visit{Visitor: visitor, Brand: b, Tenant: t, Now: p.now().In(zone), RequestID: requestID(c), Path: r.URL.Path, Done: portalDones[c.QueryParam("done")]}, err
}

// portalFirst sends somebody without a session to the door.
func (p *Pages) portalFirst(c echo.Context) error {
	at := portalPath + "/sign-in"
	if _, err := c.Request().Cookie(p.guests.name); err == nil {
		p.guests.clear(c)
		at += "?ended"
	}
	if partial(c) {
		c.Response().Header().Set("HX-Redirect", at)
		return c.NoContent(http.StatusUnauthorized)
	}
	return c.Redirect(http.StatusSeeOther, at)
}

// asCustomer is the request's context with the customer as the actor of whatever
// it changes. A suspended one changes nothing.
func (v visit) asCustomer(c echo.Context) (context.Context, error) {
	if v.Suspended {
		return nil, fault.New(fault.Forbidden, "customer_suspended", "Your account at "+v.Brand.Name()+" is suspended: it can be read, and changes nothing. Ask "+cmp.Or(v.Brand.SupportEmail, v.Brand.Name())+".")
	}
	request, _ := id.Request.Parse(v.RequestID)
	return tenants.WithActor(c.Request().Context(), tenants.Actor{Kind: "customer", ID: v.Customer, Credential: "portal session", IP: c.RealIP(), RequestID: request}), nil
}

// links are the words along the top.
func (v visit) links() []ui.Link {
	var out []ui.Link
	for _, l := range []ui.Link{
		{Words: "Limits", Href: "/portal"},
		{Words: "Usage", Href: "/portal/usage"},
		{Words: "Requests", Href: "/portal/requests"},
		{Words: "Keys", Href: "/portal/keys"},
		{Words: "Agreement", Href: "/portal/agreement"},
	} {
		l.Current = v.Path == l.Href || l.Href != portalPath && strings.HasPrefix(v.Path, l.Href+"/")
		out = append(out, l)
	}
	return out
}

// portalDones are what was done just now, in words.
var portalDones = map[string]string{
	"revoked": "The key is revoked. It stops working within a second.",
}
