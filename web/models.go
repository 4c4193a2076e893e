package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// mountModels puts the pages of models, aliases and pools on e.
func (p *Pages) mountModels(e *echo.Echo) {
	p.get(e, "/models", p.page(seeModels, p.models))
	p.get(e, "/models/way", p.page(seeModels, p.modelWay))
	p.get(e, "/models/aliases/new", p.page(seeProviderKeys, p.newAlias))
	p.post(e, "/models/aliases", p.page(seeProviderKeys, p.addAlias))
	p.get(e, "/models/aliases/:id", p.page(seeProviderKeys, p.editAlias))
	p.post(e, "/models/aliases/:id", p.page(seeProviderKeys, p.editAlias))
	p.get(e, "/models/aliases/:id/remove", p.page(seeProviderKeys, p.removeAlias))
	p.post(e, "/models/aliases/:id/remove", p.page(seeProviderKeys, p.removeAlias))
	p.get(e, "/providers/pools/new", p.page(seeProviderKeys, p.newPool))
	p.post(e, "/providers/pools", p.page(seeProviderKeys, p.addPool))
	p.get(e, "/providers/pools/:id", p.page(seeProviderKeys, p.editPool))
	p.post(e, "/providers/pools/:id", p.page(seeProviderKeys, p.editPool))
	p.get(e, "/providers/pools/:id/remove", p.page(seeProviderKeys, p.removePool))
	p.post(e, "/providers/pools/:id/remove", p.page(seeProviderKeys, p.removePool))
}

// modelsPage is what calls may ask for: the tenant's own names, and the models
// of providers.
type modelsPage struct {
	workspace
	Search        string
	Aliases       []nameRow
	Models        []nameRow
	Ready, All    int // names, of those that are not filtered out
	More          int // models beyond the page
	Next          string
	First         bool
	UsageFailed   bool
	ProviderKeys  int
	AliasesFailed bool
}

// nameRow is a name that calls may ask for.
type nameRow struct {
	Name, Description string
	AliasID           string // "" a provider's model
	Sticky, Shadows   bool
	Serves            []servesRow
	Tone              ui.Tone
	State, Note       string
	Today             usage.Sums
	Way, Try          string // addresses; "" where the role may not
	Facts             []string
}

// servesRow is one line of what serves a name: a candidate of an alias, or the
// keys that have a model.
type servesRow struct {
	Model, Through string
	Shared         bool // with the one before it
	Weight         int
}

// Via says through which keys, and how much of the calls it gets.
func (s servesRow) Via() string {
	if s.Weight > 1 {
		return s.Through + ", weight " + strconv.Itoa(s.Weight)
	}
	return s.Through
}

// modelRowsAPage is how many models of providers one page lists.
const modelRowsAPage = 50

func (p *Pages) models(c echo.Context, who auth.Person, w workspace) error {
	ctx := c.Request().Context()
	view := modelsPage{workspace: w, Search: strings.TrimSpace(c.QueryParam("q")), First: c.QueryParam("after") == ""}
	supply, err := p.supply(ctx, who.Tenant)
	if err != nil {
		return err
	}
	view.ProviderKeys = len(supply.routes)
	today := tile(p, c, "usage by model", func() (map[string]usage.Sums, error) { return p.usedByName(ctx, w, usage.Filter{}) })
	view.UsageFailed = today == nil
	for _, name := range tenants.AskedNames(supply.aliases, supply.routes) {
		if view.Search != "" && !strings.Contains(strings.ToLower(name), strings.ToLower(view.Search)) {
			continue
		}
		r := supply.row(name, w)
		if today != nil {
			r.Today = (*today)[name]
		}
		view.All++
		if r.Tone == ui.OK {
			view.Ready++
		}
		switch {
		case r.AliasID != "":
			if view.First {
				view.Aliases = append(view.Aliases, r)
			}
		case name <= c.QueryParam("after"):
		case len(view.Models) == modelRowsAPage:
			view.More++
		default:
			view.Models = append(view.Models, r)
		}
	}
	if view.More > 0 {
		q := url.Values{"after": {view.Models[len(view.Models)-1].Name}}
		if view.Search != "" {
			q.Set("q", view.Search)
		}
		view.Next = "/models?" + q.Encode()
	}
	return show(c, http.StatusOK, modelsView(view))
}

// supply is what a tenant's calls can be served by, as calls find it.
type supply struct {
	aliases map[string]tenants.Alias
	routes  []tenants.Route
	pools   map[uuid.UUID]string
	book    *catalogue.Book
	try     bool // there is a playground
}

func (p *Pages) supply(ctx context.Context, tenant uuid.UUID) (s supply, err error) {
	if s.routes, err = p.directory.Routes(ctx, tenant); err != nil {
		return s, err
	}
	if s.aliases, err = p.directory.Aliases(ctx, tenant); err != nil {
		return s, err
	}
	if s.book, err = p.directory.Book(ctx, tenant); err != nil {
		return s, err
	}
	s.pools, s.try = map[uuid.UUID]string{}, p.mounted["/playground"]
	for _, r := range s.routes {
		s.pools[r.Pool.ID] = r.Pool.Name
	}
	return s, nil
}

// usedByName sums up the tenant's day by what calls asked for, test calls too.
func (p *Pages) usedByName(ctx context.Context, w workspace, f usage.Filter) (map[string]usage.Sums, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	f.Tests = usage.WithTests
	report, err := p.reports.Report(ctx, w.Tenant.ID, dayQuery(w, usage.ByModel, f))
	out := map[string]usage.Sums{}
	for _, r := range report.Rows {
		s := out[r.Group.Name]
		s.Add(r.Sums)
		out[r.Group.Name] = s
	}
	return out, err
}

func (s supply) row(name string, w workspace) nameRow {
	targets, alias := tenants.Targets(s.aliases, s.routes, name)
	r := nameRow{Name: name, Way: "/models/way?model=" + url.QueryEscape(name)}
	if s.try && w.May(seeCustomerKeys) {
		r.Try = "/playground?model=" + url.QueryEscape(name)
	}
	if alias.Name != "" {
		r.AliasID, r.Sticky, r.Description = id.Alias.Format(alias.ID), alias.Sticky, alias.Description
		plain, _ := tenants.Targets(nil, s.routes, name)
		r.Shadows = len(plain) > 0
		for i, c := range alias.Candidates {
			r.Serves = append(r.Serves, servesRow{
				Model: c.Model, Through: s.through(c, w), Weight: c.Weight,
				Shared: i > 0 && alias.Candidates[i-1].Priority == c.Priority,
			})
		}
	} else {
		r.Serves = []servesRow{{Through: s.servers(targets, w)}}
		r.Facts = s.factLines(targets, w)
	}
	r.Tone, r.State, r.Note = stateOf(tenants.Ways(targets, w.Now), w)
	return r
}

// through says by which keys a candidate is reached. Who does not see provider
// keys reads of which provider they are.
func (s supply) through(c tenants.AliasCandidate, w workspace) string {
	switch {
	case c.Provider != "":
		return providerName(c.Provider)
	case c.Key == uuid.Nil && c.Pool == uuid.Nil:
		return "any key"
	case !w.May(seeProviderKeys):
		return "some keys"
	case c.Pool != uuid.Nil:
		if name := s.pools[c.Pool]; name != "" {
			return "pool " + name
		}
		return "a pool without keys"
	}
	i := slices.IndexFunc(s.routes, func(r tenants.Route) bool { return r.Key.ID == c.Key })
	if i < 0 {
		return "a key that is gone or switched off"
	}
	return "key " + s.routes[i].Key.Name
}

// servers are the keys that serve a model, or their providers.
func (s supply) servers(targets []tenants.Target, w workspace) string {
	var names []string
	for _, t := range targets {
		name := providerName(t.Route.Key.Provider)
		if w.May(seeProviderKeys) {
			name = t.Route.Key.Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 4 {
		return strings.Join(names[:3], ", ") + " and " + ui.Of(int64(len(names)-3), "more", "more")
	}
	return strings.Join(names, ", ")
}

// stateOf says whether a call for a name could go out now, and if not why.
func stateOf(ways []tenants.Way, w workspace) (tone ui.Tone, state, note string) {
	counts := map[tenants.WayState]int{}
	var first *tenants.Way // that is over the soonest
	for i, x := range ways {
		counts[x.State]++
		if x.State == tenants.WayCooling && (first == nil || x.Bench.Until.Before(first.Bench.Until)) {
			first = &ways[i]
		}
	}
	usable := len(ways) - counts[tenants.WayPractice]
	switch {
	case len(ways) == 0:
		return ui.Bad, "nothing serves it", "No provider key has such a model."
	case counts[tenants.WayReady] == usable:
		return ui.OK, "ready", ""
	case counts[tenants.WayReady] > 0:
		return ui.OK, "ready", ui.Of(int64(usable-counts[tenants.WayReady]), "of its ways is", "of its ways are") + " closed now."
	case first != nil:
		return ui.Cool, "cooling", "Until " + ui.Instant(first.Bench.Until.In(w.Now.Location()), w.Now) + ", in " + ui.Span(first.Bench.Until.Sub(w.Now)) + "."
	case counts[tenants.WayRefused] > 0:
		return ui.Bad, "refused", "Its provider refuses the key."
	}
	return ui.Bad, "cannot be called", "The key’s secret cannot be opened."
}

// Headline says how the names are; a reader may stop there.
func (v modelsPage) Headline() string {
	n := int64(v.All)
	switch {
	case n == 0:
		return "Models & aliases"
	case v.Search != "":
		return ui.Of(n, "name holds", "names hold") + " “" + v.Search + "”."
	case v.Ready == v.All && n == 1:
		return "One name can be asked for, and it is ready."
	case v.Ready == v.All:
		return ui.Of(n, "name", "names") + " can be asked for, and all are ready."
	}
	return ui.Of(n, "name", "names") + " can be asked for; " + ui.Of(n-int64(v.Ready), "is not", "are not") + " ready."
}

// findModels are names that calls may ask for.
func (p *Pages) findModels(ctx context.Context, s search) (out []hit, err error) {
	supply, err := p.supply(ctx, s.Tenant.ID)
	if err != nil {
		return nil, err
	}
	for _, name := range tenants.AskedNames(supply.aliases, supply.routes) {
		if len(out) == mostHits {
			break
		}
		if !strings.Contains(strings.ToLower(name), strings.ToLower(s.Text)) {
			continue
		}
		h := hit{Icon: "models", Words: name, About: "model", Href: "/models/way?model=" + url.QueryEscape(name)}
		if _, own := supply.aliases[name]; own {
			h.About = "alias"
		}
		out = append(out, h)
	}
	return out, nil
}
