package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/ui"
)

// providersPage is what the list of provider keys shows.
type providersPage struct {
	workspace
	Rows          []providerKeyRow
	Pools         *[]poolRow
	Newest, Older string
	UsageFailed   bool
}

// providerKeyRow is a provider key in a list.
type providerKeyRow struct {
	providerRow
	ID        string
	Checked   time.Time // zero: never with success
	Level     *ui.Level // of its limit with the least room; nil: no limit
	LevelLost bool
	Today     usage.Sums
}

func (p *Pages) providers(c echo.Context, who auth.Person, w workspace) error {
	ctx := c.Request().Context()
	from, _ := id.ProviderKey.Parse(c.QueryParam("after"))
	page, err := p.tenants.ProviderKeys(ctx, who.Tenant, from, pageRows)
	if err != nil {
		return err
	}
	view := providersPage{
		workspace: w, Newest: newest("/providers", c.QueryParams(), "after"),
		Older: older("/providers", c.QueryParams(), "after", id.ProviderKey.Format(page.Next)),
	}
	today := tile(p, c, "usage by provider key", func() (map[uuid.UUID]usage.Sums, error) {
		return p.usedToday(ctx, w, usage.ByProviderKey, usage.Filter{})
	})
	view.UsageFailed = today == nil
	for _, k := range page.Items {
		r := providerKeyRow{providerRow: providerRowOf(k, w.Now), ID: id.ProviderKey.Format(k.ID), Checked: inZone(k.VerifiedAt, w.Now)}
		if today != nil {
			r.Today = (*today)[k.ID]
		}
		if levels := tile(p, c, "levels", func() ([]ui.Level, error) { return p.levels(ctx, who.Tenant, k.Configured(), "", w.Now) }); levels == nil {
			r.LevelLost = true
		} else {
			r.Level = fullest(*levels)
		}
		view.Rows = append(view.Rows, r)
	}
	view.Pools = tile(p, c, "pools", func() ([]poolRow, error) { return p.poolRows(c, w) })
	return show(c, http.StatusOK, providersView(view))
}

// Headline says how the keys are; a reader may stop there.
func (v providersPage) Headline() string {
	counts := map[ui.Tone]int64{}
	for _, r := range v.Rows {
		counts[r.Tone]++
	}
	n := int64(len(v.Rows))
	said := ui.Of(n, "provider key", "provider keys")
	var parts []string
	for _, x := range []struct {
		tone      ui.Tone
		one, many string
	}{{ui.OK, "works", "work"}, {ui.Cool, "cools", "cool"}, {ui.Warn, "could not be checked", "could not be checked"}, {ui.Bad, "is refused by its provider", "are refused by their providers"}, {ui.Idle, "is switched off", "are switched off"}} {
		switch c := counts[x.tone]; {
		case c == n && n == 1:
			return "One provider key, which " + x.one + "."
		case c == n && n > 1:
			return said + ", and all " + x.many + "."
		case c > 0:
			parts = append(parts, ui.Of(c, x.one, x.many))
		}
	}
	return said + ": " + strings.Join(parts, ", ") + "."
}

// usedToday sums up the tenant's day by a group.
func (p *Pages) usedToday(ctx context.Context, w workspace, by usage.GroupBy, f usage.Filter) (map[uuid.UUID]usage.Sums, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	f.Tests = usage.WithTests
	report, err := p.reports.Report(ctx, w.Tenant.ID, dayQuery(w, by, f))
	out := map[uuid.UUID]usage.Sums{}
	for _, r := range report.Rows {
		out[r.Group.ID] = r.Sums
	}
	return out, err
}

// fullest is the level with the smallest share left; nil of none.
func fullest(list []ui.Level) *ui.Level {
	var found *ui.Level
	for i := range list {
		if found == nil || list[i].Gauge.Full() > found.Gauge.Full() {
			found = &list[i]
		}
	}
	return found
}

// inZone is an instant on the reader's clock; zero where there is none.
func inZone(t *time.Time, now time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.In(now.Location())
}

// providerPage is one provider key.
type providerPage struct {
	workspace
	providerRow
	ID, BaseURL, Fingerprint, Zone string
	Listed                         bool // its models were listed, not discovered
	ModelNames                     []string
	Added, Checked                 time.Time
	Cooling                        cooling
	Facts                          []factRow
	Tier                           string
	Offered                        bool // the provider publishes limits for tiers
	Off                            bool
	Peaks                          *peaks
	ByModel                        *modelTableRows
	Levels                         *[]ui.Level
	Pool, PoolHref                 string // whose quota it shares; "" none
	Today                          *usage.Sums
}

// modelTableRows are the models of a key, and those for which there is no row.
type modelTableRows struct {
	Rows []modelRow
	Rest []string
}

// modelGauges is for how many models a limit on each of them is drawn.
const modelGauges = 12

func (p *Pages) provider(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	view := providerPage{
		workspace: w, providerRow: providerRowOf(k, w.Now), Cooling: coolingOf(k, w.Now), ID: id.ProviderKey.Format(k.ID), BaseURL: k.BaseURL, Fingerprint: k.Fingerprint, Zone: dayZones(k, w.Now),
		Listed: k.ModelsListed, ModelNames: k.Models, Added: k.CreatedAt.In(w.Now.Location()), Checked: inZone(k.VerifiedAt, w.Now),
	}
	if view.Pool = k.Pool.Name; view.Pool != "" {
		view.PoolHref = "/providers/pools/" + id.Pool.Format(k.Pool.ID)
	}
	offers := tile(p, c, "published limits", func() ([]catalogue.Offer, error) {
		_, offers, err := p.offers(ctx, w, k.Provider, "")
		return offers, err
	})
	var tier catalogue.Offer
	if offers != nil {
		tier, _ = catalogue.OfferOf(*offers, k.Tier)
		view.Offered = len(*offers) > 0
	}
	view.Facts, view.Tier, view.Off = factRows(k, tier, w.Now), k.Tier, k.Status == tenants.Disabled
	view.Peaks = tile(p, c, "headroom", func() (peaks, error) { return p.peaksOf(ctx, w, k) })
	view.ByModel = tile(p, c, "models", func() (modelTableRows, error) {
		rows, rest, err := p.modelRows(ctx, w, k)
		return modelTableRows{rows, rest}, err
	})
	view.Levels = tile(p, c, "levels", func() ([]ui.Level, error) { return p.providerLevels(ctx, w, k) })
	view.Today = tile(p, c, "usage", func() (usage.Sums, error) {
		sums, err := p.usedToday(ctx, w, usage.ByNothing, usage.Filter{ProviderKey: k.ID})
		return sums[uuid.Nil], err
	})
	return show(c, http.StatusOK, providerView(view))
}

// providerLevelsTile is the levels by themselves, as the page asks for them
// again.
func (p *Pages) providerLevelsTile(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	view := providerPage{workspace: w, ID: id.ProviderKey.Format(k.ID)}
	view.Levels = tile(p, c, "levels", func() ([]ui.Level, error) { return p.providerLevels(c.Request().Context(), w, k) })
	return show(c, http.StatusOK, providerLevels(view))
}

func (p *Pages) providerKey(c echo.Context, who auth.Person) (tenants.ProviderKey, error) {
	key, err := param(c, id.ProviderKey, "provider key")
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	return p.tenants.ProviderKey(c.Request().Context(), who.Tenant, key)
}

// providerLevels are the shared ledgers of a key, then those of each model.
func (p *Pages) providerLevels(ctx context.Context, w workspace, k tenants.ProviderKey) ([]ui.Level, error) {
	out, err := p.levels(ctx, w.Tenant.ID, k.Configured(), "", w.Now)
	var each []limits.Limit
	for _, l := range k.Configured() {
		if l.EachModel {
			each = append(each, l)
		}
	}
	for _, model := range k.Models[:min(len(k.Models), modelGauges)] {
		if err != nil || len(each) == 0 {
			break
		}
		var of []ui.Level
		of, err = p.levels(ctx, w.Tenant.ID, each, model, w.Now)
		for _, l := range of {
			l.Of = model
			out = append(out, l)
		}
	}
	for _, model := range learnedModels(k) {
		if err != nil {
			break
		}
		var of []ui.Level
		of, err = p.levels(ctx, w.Tenant.ID, k.LimitsFor(model)[len(k.Limits):], model, w.Now)
		for _, l := range of {
			l.Name += ", learned"
			out = append(out, l)
		}
	}
	return out, err
}

// learnedModels are the first of the models of which something was learned.
func learnedModels(k tenants.ProviderKey) (out []string) {
	for _, l := range k.Learned {
		if len(out) < modelGauges && (len(out) == 0 || out[len(out)-1] != l.Model) {
			out = append(out, l.Model)
		}
	}
	return out
}

// learns tells whether anything was learned of the key's limits.
func (v providerPage) learns() bool {
	return slices.ContainsFunc(v.Facts, func(r factRow) bool { return r.Model != "" })
}

// Sentence says how the key is.
func (v providerPage) Sentence() string {
	switch v.Tone {
	case ui.OK:
		return "This key works."
	case ui.Cool:
		if v.Rests {
			return "No call uses this key now: it is " + v.State + "."
		}
		return "This key works. " + v.State + "."
	case ui.Warn:
		return "This key could not be checked. Calls use it all the same."
	case ui.Bad:
		return "The provider refuses this key. No call uses it."
	}
	return "This key is switched off. No call uses it."
}

// verifyProvider asks the provider again.
func (p *Pages) verifyProvider(c echo.Context, who auth.Person, _ workspace) error {
	key, err := param(c, id.ProviderKey, "provider key")
	if err != nil {
		return err
	}
	if _, err := p.tenants.VerifyProviderKey(asPerson(c, who), who.Tenant, key); err != nil {
		return err
	}
	return done(c, "/providers/"+c.Param("id"), "provider-checked")
}

// removeProvider asks before a provider key is removed, and POST removes it.
func (p *Pages) removeProvider(c echo.Context, who auth.Person, w workspace) error {
	k, err := p.providerKey(c, who)
	if err != nil {
		return err
	}
	ask, err := p.removal(c.Request().Context(), w, k)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return p.ask(c, w, ask)
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	if f.Get("word") != k.Name {
		return p.askAgain(c, w, ask, f)
	}
	if err := p.tenants.RemoveProviderKey(asPerson(c, who), who.Tenant, k.ID); err != nil {
		return err
	}
	return done(c, "/providers", "provider-removed")
}

// removal says what the end of a provider key means, in numbers.
func (p *Pages) removal(ctx context.Context, w workspace, k tenants.ProviderKey) (ui.Confirm, error) {
	at := "/providers/" + id.ProviderKey.Format(k.ID)
	ask := ui.Confirm{
		Title: "Remove " + k.Name + "?", Text: "No new call uses it, and its secret is forgotten. What it was used for stays in the books.",
		Action: at + "/remove", Back: at, Keep: "Keep it", Do: "Remove " + k.Name, Word: k.Name, Typed: ui.Input{Name: "word"},
	}
	r, err := p.tenants.RemovalOf(ctx, w.Tenant.ID, k.ID)
	if err != nil {
		return ask, err
	}
	today, err := p.usedToday(ctx, w, usage.ByNothing, usage.Filter{ProviderKey: k.ID})
	if err != nil {
		return ask, err
	}
	models := ui.Consequence{Number: "0", Text: "models that only this key serves"}
	if len(r.Models) > 0 {
		models = ui.Consequence{Tone: ui.Bad}.Of(int64(len(r.Models)), "model is served by this key alone, and by none from now on: "+some(r.Models, 4), "models are served by this key alone, and by none from now on: "+some(r.Models, 4))
	}
	of := " of " + ui.Of(r.Customers, "customer", "customers")
	ask.Consequences = []ui.Consequence{
		models,
		ui.Consequence{}.Of(r.Keys, "key"+of+" gets a refusal where it asks for such a model", "keys"+of+" get a refusal where they ask for such a model"),
		ui.Consequence{}.Of(today[uuid.Nil].Requests, "call went through it today", "calls went through it today"),
		ui.Consequence{}.Of(r.Others, "other provider key goes on", "other provider keys go on"),
	}
	if r.Lines > 0 {
		ask.Consequences = append(ask.Consequences, ui.Consequence{Tone: ui.Warn}.Of(r.Lines, "line of an alias names the key, and is passed over from now on", "lines of aliases name the key, and are passed over from now on"))
	}
	switch {
	case len(r.Models) == 0:
		ask.Consequences[1] = ui.Consequence{Tone: ui.OK}.Of(r.Keys, "key"+of+" goes on: other provider keys serve all of its models", "keys"+of+" go on: other provider keys serve all of its models")
	case r.Keys > 0:
		ask.Consequences[1].Tone = ui.Bad
	}
	return ask, nil
}

// some names the first few of a list, and how many more there are.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:n], ", ") + " and " + ui.Count(int64(len(list)-n)) + " more"
}

// dayZones say where a provider's days end, and where they will once a
// correction counts.
func dayZones(k tenants.ProviderKey, now time.Time) string {
	from, pending := k.Zones().Pending(now)
	if !pending {
		return k.Zone
	}
	return k.PastZones[len(k.PastZones)-1].Zone + ", from " + ui.Instant(from.In(now.Location()), now) + " " + k.Zone
}
