package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/web/ui"
)

// limitsPage is every live limit that a role may see.
type limitsPage struct {
	workspace
	Query  url.Values
	Groups *[]limitGroup // nil: they could not be read
	Flat   bool          // one list, the closest first
	Heat   *heat
	All    int // limits there are
	Idle   int // of them, with nothing used or held
	Shown  int
	Users  bool   // some hold for each end user
	User   string // whose levels of these are asked for
	More   bool   // there are customers beyond those that are looked at
	Asked  string // a request id that is not there
}

// limitGroup are the limits of one: a customer, a provider key, the tenant.
type limitGroup struct {
	Name, Of, Href string
	Lines          []limitLine
}

// limitLine is one ledger now.
type limitLine struct {
	ui.Level
	State  limits.State
	Whose  string // where lines of many stand in one list
	Policy string
	Reset  string
	Apart  bool // it has a level for each end user, and none by itself
}

// limitsPage answers GET /limits. With ?why= it leads to what became of a
// request.
func (p *Pages) limitsPage(c echo.Context, who auth.Person, w workspace) error {
	v := limitsPage{workspace: w, Query: c.QueryParams()}
	if asked := strings.TrimSpace(c.QueryParam("why")); asked != "" {
		e, err := p.requestOf(c.Request().Context(), w, asked)
		if err == nil {
			return c.Redirect(http.StatusSeeOther, "/requests/"+id.Request.Format(e.RequestID)+"#limits")
		}
		v.Asked = asked
	}
	p.fillLimits(c, &v)
	if w.May(seeCustomers) {
		v.Heat = tile(p, c, "heat", func() (heat, error) { return p.readCustomersHeat(c.Request().Context(), w) })
	}
	return show(c, http.StatusOK, limitsView(v))
}

// limitsTile is the list by itself, as the page asks for it again.
func (p *Pages) limitsTile(c echo.Context, _ auth.Person, w workspace) error {
	v := limitsPage{workspace: w, Query: c.QueryParams()}
	p.fillLimits(c, &v)
	return show(c, http.StatusOK, limitsList(v))
}

func (p *Pages) fillLimits(c echo.Context, v *limitsPage) {
	v.Flat, v.User = v.Query.Get("order") == "closest", strings.TrimSpace(v.Query.Get("end_user"))
	groups := tile(p, c, "limits", func() ([]limitGroup, error) { return p.readLimits(c.Request().Context(), v) })
	if groups == nil {
		return
	}
	for _, g := range *groups {
		for _, l := range g.Lines {
			v.All++
			v.Users = v.Users || l.State.Limit.EachEndUser()
			if l.idle() {
				v.Idle++
			}
		}
	}
	v.narrow(groups)
	v.Groups = groups
}

// narrow keeps what is asked for.
func (v *limitsPage) narrow(groups *[]limitGroup) {
	dimension, mode, idle := v.Query.Get("counts"), v.Query.Get("mode"), v.Query.Get("idle") != ""
	var kept []limitGroup
	for _, g := range *groups {
		g.Lines = slices.DeleteFunc(g.Lines, func(l limitLine) bool {
			return dimension != "" && string(l.State.Limit.Dimension) != dimension || mode != "" && string(l.State.Limit.Mode) != mode || !idle && l.idle()
		})
		v.Shown += len(g.Lines)
		if len(g.Lines) > 0 {
			kept = append(kept, g)
		}
	}
	if v.Flat {
		kept = flat(kept)
	}
	*groups = kept
}

// flat puts all lines into one list, the closest to its limit first.
func flat(groups []limitGroup) []limitGroup {
	var all limitGroup
	for _, g := range groups {
		for _, l := range g.Lines {
			l.Whose = g.Name
			all.Lines = append(all.Lines, l)
		}
	}
	slices.SortStableFunc(all.Lines, func(a, b limitLine) int { return cmp.Compare(b.Gauge.Full(), a.Gauge.Full()) })
	if len(all.Lines) == 0 {
		return nil
	}
	return []limitGroup{all}
}

// idle tells whether nothing of a limit is taken. One that admits nothing is
// not idle: somebody may wonder.
func (l limitLine) idle() bool {
	return l.State.Limit.Amount > 0 && !l.Apart && l.State.Used+l.State.Held+l.State.Debt == 0
}

// standing counts the limits that need a look, of all that are read.
func (v limitsPage) standing() (spent, debt, near int) {
	if v.Groups == nil {
		return 0, 0, 0
	}
	for _, g := range *v.Groups {
		for _, l := range g.Lines {
			s := l.State
			switch {
			case l.Apart || s.Limit.Mode == limits.ModeShadow || s.Limit.Amount == 0:
			case s.Debt > 0:
				debt++
			case s.Remaining == 0:
				spent++
			case l.Gauge.Full() >= 0.8:
				near++
			}
		}
	}
	return spent, debt, near
}

// Headline says the state of them all, so that one may stop reading there.
func (v limitsPage) Headline() string {
	if v.Groups == nil || v.All == 0 {
		return "Limits"
	}
	spent, debt, near := v.standing()
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{spent, "at its end"}, {debt, "in debt"}, {near, "close"}} {
		if part.n > 0 {
			parts = append(parts, ui.Of(int64(part.n), "is", "are")+" "+part.what)
		}
	}
	if len(parts) == 0 {
		return ui.Of(int64(v.All), "limit holds, and it is", "limits hold, and none is") + " close."
	}
	return ui.Of(int64(v.All), "limit holds", "limits hold") + ". " + strings.Join(parts, ", ") + "."
}

// The ways to look at the list.

func (v limitsPage) orders() []ui.Link {
	return []ui.Link{
		{Words: "By whose it is", Href: link("/limits", v.Query, "order", "", "why", ""), Current: !v.Flat},
		{Words: "Closest first", Href: link("/limits", v.Query, "order", "closest", "why", ""), Current: v.Flat},
	}
}

func (v limitsPage) dimensions() []ui.Option {
	out := []ui.Option{{Label: "Everything counted"}}
	for _, d := range []limits.Dimension{limits.DimensionRequests, limits.DimensionTokens, limits.DimensionInputTokens, limits.DimensionOutputTokens, limits.DimensionUnits, limits.DimensionConcurrency, limits.DimensionSpend} {
		out = append(out, ui.Option{Value: string(d), Label: dimensionWords(d), Chosen: v.Query.Get("counts") == string(d)})
	}
	return out
}

func (v limitsPage) modes() []ui.Option {
	return ui.Choose(v.Query.Get("mode"), ui.Option{Label: "Stop and shadow"}, ui.Option{Value: string(limits.ModeEnforce), Label: "Only what stops"}, ui.Option{Value: string(limits.ModeShadow), Label: "Only shadow"})
}

func (v limitsPage) idles() []ui.Option {
	return ui.Choose(v.Query.Get("idle"), ui.Option{Label: "Without untouched"}, ui.Option{Value: "show", Label: "With untouched"})
}
