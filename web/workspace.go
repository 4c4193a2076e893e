package web

import (
	"cmp"
	"context"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// workspace is what every page inside the frame starts from.
type workspace struct {
	Frame     frame
	Tenant    tenants.Tenant
	Role      string
	Now       time.Time // in the tenant's zone
	RequestID string
}

// May tells whether the person may see or do something. It shows and hides;
// handlers check by themselves.
func (w workspace) May(r right) bool { return may(w.Role, r) }

func (p *Pages) workspace(c echo.Context, who auth.Person) (workspace, error) {
	t, err := p.tenants.Get(c.Request().Context(), who.Tenant)
	if err != nil {
		return workspace{}, err
	}
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return workspace{}, err
	}
	return workspace{
		Frame:  frame{Tenant: t.Name, Zone: t.Zone, Currency: t.Currency, Person: cmp.Or(who.User.Name, who.User.Email), Role: who.Role},
		Tenant: t, Role: who.Role, Now: p.now().In(zone), RequestID: requestID(c),
	}, nil
}

// page is a page inside the frame that needs a right.
func (p *Pages) page(needs right, h func(echo.Context, auth.Person, workspace) error) echo.HandlerFunc {
	return p.signedIn(func(c echo.Context, who auth.Person) error {
		w, err := p.workspace(c, who)
		if err != nil {
			return err
		}
		a := aroundOf(c.Request().Context())
		a.Frame = &w.Frame
		if w.Tenant.Operator && w.May(keepBooks) {
			a.Nav = operatorsOwn(a.Nav, c.Request().URL.Path)
		}
		setAround(c, a)
		if needs != "" && !may(who.Role, needs) {
			return forbidden(who.Role, needs)
		}
		return h(c, who, w)
	})
}

func forbidden(role string, needs right) error {
	return fault.New(fault.Forbidden, "role_not_allowed", "Your role here is "+role+", which does not reach "+string(needs)+". Nothing was changed. Ask an owner or admin.")
}

// asPerson returns the request's context with the person as the actor of
// whatever it changes.
func asPerson(c echo.Context, who auth.Person) context.Context {
	request, _ := id.Request.Parse(requestID(c))
	return tenants.WithActor(c.Request().Context(), tenants.Actor{
		Kind: "user", ID: who.User.ID, Credential: "session", Role: who.Role, IP: c.RealIP(), RequestID: request,
	})
}

// param reads an id of a kind from the path. One that is malformed is answered
// as one that does not exist.
func param(c echo.Context, kind id.Kind, what string) (uuid.UUID, error) {
	u, err := kind.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil, tenants.NotFound(what)
	}
	return u, nil
}

// older is the address of a list's next rows, "" where there are none. The
// parameter that says where a list goes on holds the id of its last row.
func older(path string, query url.Values, parameter, next string) string {
	if next == "" {
		return ""
	}
	q := clean(query)
	q.Set(parameter, next)
	return path + "?" + q.Encode()
}

// newest is the address of a list's beginning, "" where it stands there.
func newest(path string, query url.Values, parameter string) string {
	if query.Get(parameter) == "" {
		return ""
	}
	q := clean(query)
	q.Del(parameter)
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// clean is a query without what was said once.
func clean(query url.Values) url.Values {
	q := url.Values{}
	for name, v := range query {
		if name != "done" {
			q[name] = v
		}
	}
	return q
}
