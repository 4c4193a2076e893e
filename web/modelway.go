package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// wayPage is where a call for a name would go now, and why.
type wayPage struct {
	workspace
	nameRow
	Escaped string // the name, in an address
	Ways    []wayRow
	Missing []string // candidates that reach nothing
	Turns   int      // ways that are open
	Facts   []modelFacts
}

// wayRow is one provider's model at one key.
type wayRow struct {
	Turn, Model, Key, Of, Href string
	Tone                       ui.Tone
	State, Note                string
	Level                      *ui.Level
	LevelLost                  bool
}

// mostWays is for how many ways the levels are read.
const mostWays = 40

// modelWay answers GET /models/way?model=.
func (p *Pages) modelWay(c echo.Context, who auth.Person, w workspace) error {
	name := c.QueryParam("model")
	supply, err := p.supply(c.Request().Context(), who.Tenant)
	if err != nil {
		return err
	}
	if !slices.Contains(tenants.AskedNames(supply.aliases, supply.routes), name) {
		return tenants.NotFound("model")
	}
	view := wayPage{workspace: w, nameRow: supply.row(name, w), Escaped: url.QueryEscape(name)}
	targets, alias := tenants.Targets(supply.aliases, supply.routes, name)
	ways := tenants.Ways(targets, w.Now)
	turn, priority := 0, 0
	for i, x := range ways {
		r := supply.way(x, alias, w)
		if x.State == tenants.WayReady {
			view.Turns++
			if x.Priority != priority {
				turn, priority = turn+1, x.Priority
			}
			r.Turn = strconv.Itoa(turn)
		}
		if w.May(seeProviderKeys) && i < mostWays {
			r.Level, r.LevelLost = p.closest(c, w, x)
		}
		view.Ways = append(view.Ways, r)
	}
	view.Facts = supply.facts(targets, w)
	for i, x := range alias.Candidates {
		if !slices.ContainsFunc(targets, func(t tenants.Target) bool { return t.Candidate == i }) {
			view.Missing = append(view.Missing, supply.missing(x, w))
		}
	}
	return show(c, http.StatusOK, modelWayView(view))
}

func (s supply) way(x tenants.Way, alias tenants.Alias, w workspace) wayRow {
	k := x.Route.Key
	r := wayRow{Model: x.Model, Key: providerName(k.Provider), Turn: "–"}
	var of []string
	if w.May(seeProviderKeys) {
		r.Key, r.Href = k.Name, "/providers/"+id.ProviderKey.Format(k.ID)
		of = append(of, providerName(k.Provider))
		if k.Pool.Name != "" {
			of = append(of, "pool "+k.Pool.Name)
		}
	}
	if alias.Name != "" && x.Weight > 1 {
		of = append(of, "weight "+strconv.Itoa(x.Weight))
	}
	r.Of = strings.Join(of, ", ")
	switch x.State {
	case tenants.WayReady:
		r.Tone, r.State = ui.OK, "open"
	case tenants.WayCooling:
		r.Tone, r.State, r.Note = ui.Cool, "cooling", reasons[x.Bench.Reason]
		if !x.Bench.Until.IsZero() {
			r.Note += " Until " + ui.Instant(x.Bench.Until.In(w.Now.Location()), w.Now) + "."
		}
	case tenants.WayRefused:
		r.Tone, r.State, r.Note = ui.Bad, "refused", "The provider refuses the key."
	case tenants.WayBroken:
		r.Tone, r.State, r.Note = ui.Bad, "cannot be called", "The key’s secret cannot be opened."
	case tenants.WayPractice:
		r.Tone, r.State, r.Note = ui.Idle, "not used", "The practice provider serves a name only where no real one does, and test keys."
	}
	return r
}

// missing says why a candidate reaches no key.
func (s supply) missing(c tenants.AliasCandidate, w workspace) string {
	if slices.ContainsFunc(s.routes, func(r tenants.Route) bool { return r.Key.Serves(c.Model) }) {
		return c.Model + " is not served through " + s.through(c, w) + ", or an earlier line has it already: the line is passed over."
	}
	return c.Model + " is served by no provider key: the line is passed over."
}

// closest is the limit of a way with the least room left.
func (p *Pages) closest(c echo.Context, w workspace, x tenants.Way) (level *ui.Level, lost bool) {
	list := slices.DeleteFunc(x.Route.Key.LimitsFor(x.Model), func(l limits.Limit) bool { return !l.Applies(x.Model) })
	read := tile(p, c, "levels", func() ([]ui.Level, error) {
		return p.levels(c.Request().Context(), w.Tenant.ID, list, x.Model, w.Now)
	})
	if read == nil {
		return nil, true
	}
	return fullest(*read), false
}

// Headline says where a call goes first.
func (v wayPage) Headline() string {
	switch {
	case len(v.Ways) == 0:
		return "Nothing serves " + v.Name + "."
	case v.Turns == 0:
		return "No way of " + v.Name + " is open now."
	}
	first := v.Ways[slices.IndexFunc(v.Ways, func(r wayRow) bool { return r.Turn == "1" })]
	rest := 0
	for _, r := range v.Ways {
		if r.Turn == "1" {
			rest++
		}
	}
	switch {
	case rest > 1:
		return "A call for " + v.Name + " goes to one of " + strconv.Itoa(rest) + " ways first."
	case first.Model == v.Name:
		return "A call for " + v.Name + " goes through " + first.Key + "."
	}
	return "A call for " + v.Name + " goes to " + first.Model + ", through " + first.Key + "."
}

// Rule is in which order ways are taken.
func (v wayPage) Rule() string {
	text := "Turn 1 is tried first. Of one turn, the key with the most room in its limits goes first"
	if v.AliasID != "" {
		text = "Turn 1 is tried first. Of one turn, each line of the alias gets calls by its weight, and of a line’s keys the one with the most room in its limits goes first"
	}
	return text + ". While nothing has reached the client, a call that a provider refuses or fails goes on to the next way; the plan is charged once."
}

// providerName is what a provider is called.
func providerName(slug string) string {
	if known, ok := catalogue.Lookup(slug); ok {
		return known.Name
	}
	return slug
}
