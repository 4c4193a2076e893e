package web

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/tenants"
)

// home is what the first page shows: tiles, each of which is nil where it could
// not be read.
type home struct {
	workspace
	Flow  *flow
	Today *today
	Caps  *caps
	Needs *[]need
	Begin []beginStep // while something is missing before a first call
	Setup bool        // the first path is not walked to its end
}

// home answers GET /: what passes, what it adds up to today, which limits are
// close, and what needs a person.
func (p *Pages) home(c echo.Context, _ auth.Person, w workspace) error {
	ctx := c.Request().Context()
	h := home{workspace: w}
	h.Today = tile(p, c, "usage", func() (today, error) { return p.today(ctx, w.Tenant, w.Now, w.May(seeMoney)) })
	h.Flow = tile(p, c, "flow", func() (flow, error) { return p.readFlow(ctx, w, c.QueryParams(), h.Today) })
	h.Caps = tile(p, c, "caps", func() (caps, error) { return p.readCaps(ctx, w) })
	h.Needs = tile(p, c, "needs", func() ([]need, error) { return p.readNeeds(ctx, w, h.Caps) })
	var err error
	if h.Begin, err = p.begin(ctx, w); err != nil {
		p.log.Error("tile failed", "request_id", w.RequestID, "tile", "begin", "error", err.Error())
	}
	if on := tile(p, c, "set-up", func() (bool, error) { return p.onPath(ctx, w) }); on != nil {
		h.Setup = *on
	}
	return show(c, http.StatusOK, homeView(h))
}

// tile reads one part of a page. An error is logged and costs that part only.
func tile[T any](p *Pages, c echo.Context, what string, read func() (T, error)) *T {
	v, err := read()
	if err != nil {
		p.log.Error("tile failed", "request_id", requestID(c), "tile", what, "error", err.Error())
		return nil
	}
	return &v
}

// begin are the steps to a first call that a person may take, until one can be
// made.
func (p *Pages) begin(ctx context.Context, w workspace) ([]beginStep, error) {
	if !w.May(seeCustomerKeys) || !w.May(seeProviderKeys) {
		return nil, nil
	}
	providers, err := p.tenants.ProviderKeys(ctx, w.Tenant.ID, uuid.Nil, 1)
	if err != nil {
		return nil, err
	}
	keys, err := p.tenants.APIKeys(ctx, w.Tenant.ID, tenants.KeyFilter{Kind: tenants.ForCustomer}, uuid.Nil, 1)
	if err != nil {
		return nil, err
	}
	return begin(p.publicURL, len(providers.Items) > 0, len(keys.Items) > 0), nil
}

// The tiles by themselves, as the page asks for them again.

func (p *Pages) flowTile(c echo.Context, _ auth.Person, w workspace) error {
	ctx := c.Request().Context()
	day := tile(p, c, "usage", func() (today, error) { return p.today(ctx, w.Tenant, w.Now, w.May(seeMoney)) })
	f := tile(p, c, "flow", func() (flow, error) { return p.readFlow(ctx, w, c.QueryParams(), day) })
	return show(c, http.StatusOK, flowView(w, f, flowQuery(c.QueryParams())))
}

func (p *Pages) todayTile(c echo.Context, _ auth.Person, w workspace) error {
	d := tile(p, c, "usage", func() (today, error) {
		return p.today(c.Request().Context(), w.Tenant, w.Now, w.May(seeMoney))
	})
	return show(c, http.StatusOK, todayView(w, d))
}

func (p *Pages) capsTile(c echo.Context, _ auth.Person, w workspace) error {
	ctx := c.Request().Context()
	list := tile(p, c, "caps", func() (caps, error) { return p.readCaps(ctx, w) })
	return show(c, http.StatusOK, capsView(w, list))
}

func (p *Pages) needsTile(c echo.Context, _ auth.Person, w workspace) error {
	ctx := c.Request().Context()
	list := tile(p, c, "needs", func() ([]need, error) { return p.readNeeds(ctx, w, nil) })
	return show(c, http.StatusOK, needsView(w, list))
}

// flowQuery is what of an address is the flow's.
func flowQuery(q url.Values) url.Values {
	out := url.Values{}
	for _, name := range []string{"flow", "unit"} {
		if v := q.Get(name); v != "" {
			out.Set(name, v)
		}
	}
	return out
}
