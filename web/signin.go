package web

import (
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/web/ui"
)

// clearSite makes the browser forget what it kept of these pages. Not
// "cookies": that would take those of every host of the domain along.
const clearSite = `"cache", "storage"`

// signInPage explains how one signs in.
func (p *Pages) signInPage(c echo.Context) error {
	_, ended := c.QueryParams()["ended"]
	return show(c, http.StatusOK, signInView(p.door(), form{Values: map[string][]string{"to": {localOnly(c.QueryParam("to"))}}}, ended))
}

// linkPage asks before it signs in: programs that look at links in mails only
// ever get this far, and use nothing up.
func (p *Pages) linkPage(c echo.Context) error {
	if !wellFormed(c.Param("token")) {
		return show(c, http.StatusUnauthorized, deadLinkView())
	}
	return show(c, http.StatusOK, linkView(c.Param("token")))
}

// signIn takes a password, or uses a link up, and opens a session.
func (p *Pages) signIn(c echo.Context) error {
	r := c.Request()
	link := r.PostFormValue("token")
	if _, typed := r.PostForm["email"]; typed {
		return p.passwordSignIn(c)
	}
	if !wellFormed(link) {
		return show(c, http.StatusUnauthorized, deadLinkView())
	}
	issued, err := p.sessions.SignIn(r.Context(), link, browserOf(r), c.RealIP())
	if fault.Is(err, fault.Unauthenticated) {
		return show(c, http.StatusUnauthorized, deadLinkView())
	}
	if err != nil {
		return err
	}
	return p.enter(c, issued)
}

func (p *Pages) signOut(c echo.Context) error {
	if token := p.cookie.token(c.Request()); token != "" {
		if err := p.sessions.SignOut(c.Request().Context(), token); err != nil {
			return err
		}
	}
	p.cookie.clear(c)
	c.Response().Header().Set("Clear-Site-Data", clearSite)
	return c.Redirect(http.StatusSeeOther, "/")
}

// illustratedLevel is where the picture's flow is held, as a share of its
// height.
const illustratedLevel = 0.76

// illustration is a flow that rises above its level and is held there.
func illustration() []ui.Column {
	const n = 48
	columns := make([]ui.Column, n)
	for i := range columns {
		x := float64(i)
		wanted := 0.5 + 0.09*math.Sin(x*0.9) + 0.06*math.Sin(x*2.3+1) + 0.33*math.Exp(-(x-29)*(x-29)/28)
		columns[i].Passed = min(wanted, illustratedLevel)
		if wanted > illustratedLevel+0.01 {
			columns[i].Refused = wanted - illustratedLevel
		}
		if i >= n-2 {
			columns[i].Held = 0.06
		}
	}
	return columns
}
