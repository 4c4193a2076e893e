package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
)

func (p *Pages) mountFirst(e *echo.Echo) {
	p.get(e, "/first", p.firstPage)
	p.get(e, "/first/:token", p.firstPage)
	p.post(e, "/first", p.makeFirst)
}

// isEmpty tells whether the installation waits for its first visit.
func (p *Pages) isEmpty(c echo.Context) (bool, error) {
	if p.first == nil {
		return false, nil
	}
	return p.first.Open(c.Request().Context())
}

// firstPage offers to make the first tenant, as long as there is none. The
// token is in the link that the process printed.
func (p *Pages) firstPage(c echo.Context) error {
	open, err := p.isEmpty(c)
	if err != nil {
		return err
	}
	if !open {
		return c.Redirect(http.StatusSeeOther, "/sign-in")
	}
	return show(c, http.StatusOK, firstView(p.door(), form{Values: map[string][]string{"token": {c.Param("token")}, "zone": {""}}}))
}

// makeFirst makes it, and leads to the first path.
func (p *Pages) makeFirst(c echo.Context) error {
	if p.first == nil {
		return echo.ErrNotFound
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	issued, err := p.first.Make(c.Request().Context(), f.Get("token"), auth.NewAccount{
		Name: f.Get("name"), Email: f.Get("email"), Password: f.Get("password"), Tenant: f.Get("tenant"), Zone: f.Get("zone"), IP: c.RealIP(),
	}, browserOf(c.Request()))
	if err == nil {
		return p.enterAt(c, issued, "/setup")
	}
	e := fault.Of(err)
	if e.Code == "first_token_wrong" {
		f.wrong("token", e.Message)
		return show(c, http.StatusUnauthorized, firstView(p.door(), f))
	}
	if e.Code == "already_begun" {
		return show(c, http.StatusConflict, begunView(e.Message))
	}
	status, err := f.refuseEntry(err)
	if err != nil {
		return err
	}
	return show(c, status, firstView(p.door(), f))
}

// atDoor leads the first visitor of an empty installation to where it begins.
func (p *Pages) atDoor(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if p.cookie.token(c.Request()) == "" {
			if open, err := p.isEmpty(c); err == nil && open {
				return c.Redirect(http.StatusSeeOther, "/first")
			}
		}
		return h(c)
	}
}
