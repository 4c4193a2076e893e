package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
)

// portalDoor is where a customer asks for a link.
func (p *Pages) portalDoor(c echo.Context) error {
	_, ended := c.QueryParams()["ended"]
	return show(c, http.StatusOK, portalDoorView(form{}, ended, false, p.portal.CanMail()))
}

// askPortalLink answers the same whether or not anybody has the address.
func (p *Pages) askPortalLink(c echo.Context) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	err = p.portal.Ask(c.Request().Context(), f.Get("email"), c.RealIP())
	if fault.Is(err, fault.Limited) {
		f.wrong("", fault.Of(err).Message)
		return show(c, http.StatusTooManyRequests, portalDoorView(f, false, false, true))
	}
	if err != nil {
		status, err := f.refuse(err)
		if err != nil {
			return err
		}
		return show(c, status, portalDoorView(f, false, false, p.portal.CanMail()))
	}
	return show(c, http.StatusOK, portalDoorView(f, false, true, true))
}

// portalLinkPage asks before it signs in: programs that look at links in mails
// only ever get this far, and use nothing up.
func (p *Pages) portalLinkPage(c echo.Context) error {
	if !wellFormed(c.Param("token")) {
		return show(c, http.StatusUnauthorized, portalDeadLinkView())
	}
	return show(c, http.StatusOK, portalLinkView(c.Param("token")))
}

// enterPortal uses a link up and opens a session, which replaces the one that
// this browser had.
func (p *Pages) enterPortal(c echo.Context) error {
	r := c.Request()
	link := r.PostFormValue("token")
	if !wellFormed(link) {
		return show(c, http.StatusUnauthorized, portalDeadLinkView())
	}
	issued, err := p.portal.SignIn(r.Context(), link, browserOf(r), c.RealIP())
	if fault.Is(err, fault.Unauthenticated) {
		return show(c, http.StatusUnauthorized, portalDeadLinkView())
	}
	if err != nil {
		return err
	}
	if old := p.guests.token(r); old != "" {
		if err := p.portal.SignOut(r.Context(), old); err != nil {
			return err
		}
	}
	p.guests.set(c, issued.Token, issued.ExpiresAt, p.now())
	return c.Redirect(http.StatusSeeOther, portalPath)
}

func (p *Pages) leavePortal(c echo.Context) error {
	if token := p.guests.token(c.Request()); token != "" {
		if err := p.portal.SignOut(c.Request().Context(), token); err != nil {
			return err
		}
	}
	p.guests.clear(c)
	c.Response().Header().Set("Clear-Site-Data", clearSite)
	return c.Redirect(http.StatusSeeOther, portalPath+"/sign-in")
}
