package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/internal/usage"
	"weir/web/ui"
)

// ask shows a question: as a dialog where htmx asks for it, else as a page.
func (p *Pages) ask(c echo.Context, w workspace, ask ui.Confirm) error {
	if partial(c) {
		return show(c, http.StatusOK, ui.ConfirmDialog(ask))
	}
	return show(c, http.StatusOK, confirmView(w, ask))
}

// askAgain shows a question whose word was not typed as it stands.
func (p *Pages) askAgain(c echo.Context, w workspace, ask ui.Confirm, f form) error {
	ask.Typed.Value, ask.Typed.Error = f.Get("word"), "This is not the name. Type it as it stands, or go back."
	return show(c, http.StatusBadRequest, confirmView(w, ask))
}

// dayQuery asks for the tenant's day so far.
func dayQuery(w workspace, by usage.GroupBy, f usage.Filter) usage.Query {
	from, to, zone := w.Tenant.Zones.Day(w.Now)
	return usage.Query{From: from, To: to, Bucket: usage.Day, Zone: zone, GroupBy: by, Filter: f}
}
