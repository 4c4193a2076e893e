package httpapi

import (
	"time"

	"weir/internal/catalogue"
	"weir/internal/id"
	"weir/internal/tenants"
)

// modelJSON is a name that calls may ask for.
type modelJSON struct {
	Name        string    `json:"name" example:"gpt-4o"`
	Kind        string    `json:"kind" enum:"alias,model" description:"alias: a name of the tenant's own; model: a provider's"`
	Alias       *string   `json:"alias" description:"The alias; null for a provider's model" example:"als_01kb0000000000000000000000"`
	Description string    `json:"description,omitempty"`
	Shadows     bool      `json:"shadows" description:"An alias that stands before a provider's model of the same name"`
	Ready       bool      `json:"ready" description:"A call could go out now"`
	Ways        []wayJSON `json:"candidates" description:"In the order in which they are tried; those of one priority by weight and headroom"`
}

// wayJSON is a provider's model at one provider key.
type wayJSON struct {
	Model       string     `json:"model"`
	Provider    string     `json:"provider"`
	ProviderKey string     `json:"provider_key" example:"pvk_01kb0000000000000000000000"`
	Pool        *string    `json:"pool"`
	Priority    int        `json:"priority"`
	Weight      int        `json:"weight"`
	State       string     `json:"state" enum:"ready,cooling,refused,broken,practice" description:"refused: the provider refuses the key; broken: its secret cannot be opened; practice: used only where no real provider serves the name"`
	Reason      string     `json:"reason,omitempty" description:"Why it cools, as cooldowns say it"`
	Until       *time.Time `json:"until" description:"When it may be tried again; null: it may now, or until a check passes"`
	Facts       *factsJSON `json:"catalogue" description:"What the catalogue knows of the model at its provider; null: nothing"`
}

// factsJSON is what the catalogue knows of a provider's model.
type factsJSON struct {
	Context   *int64          `json:"context_tokens" description:"That prompt and answer may have together; null: not known"`
	MaxOutput *int64          `json:"max_output_tokens" description:"Null: not known"`
	Limits    []publishedJSON `json:"published_limits" description:"Of accounts of each tier"`
	Prices    []tariffJSON    `json:"prices" description:"What the provider charges; none: not known, never 0"`
}

type publishedJSON struct {
	Tier      string    `json:"tier" example:"Tier 1"`
	Models    string    `json:"models" description:"Which models share it, by name or pattern" example:"gpt-4o"`
	Dimension string    `json:"dimension" example:"tokens"`
	Window    string    `json:"window" example:"minute"`
	Amount    int64     `json:"amount" example:"200000"`
	Since     time.Time `json:"since"`
	Source    string    `json:"source"`
}

type tariffJSON struct {
	Class            string    `json:"class" enum:"input,cached_input,cache_write,output,reasoning,request"`
	MicrosPerMillion int64     `json:"micros_per_million" description:"Millionths of the currency for a million tokens or requests" example:"2500000"`
	Currency         string    `json:"currency" example:"USD"`
	Since            time.Time `json:"since"`
	Source           string    `json:"source"`
}

func factsOf(f catalogue.Facts) *factsJSON {
	if f.None() {
		return nil
	}
	out := &factsJSON{Limits: []publishedJSON{}, Prices: []tariffJSON{}}
	if f.Model.Context > 0 {
		out.Context = &f.Model.Context
	}
	if f.Model.MaxOutput > 0 {
		out.MaxOutput = &f.Model.MaxOutput
	}
	for _, p := range f.Published {
		out.Limits = append(out.Limits, publishedJSON{p.Tier, p.Model, string(p.Dimension), string(p.Window), p.Amount, p.ValidFrom, p.Source})
	}
	for _, p := range f.Prices {
		out.Prices = append(out.Prices, tariffJSON{string(p.Class), p.MicrosPerMillion, p.Currency, p.ValidFrom, p.Source})
	}
	return out
}

func wayOf(w tenants.Way, book *catalogue.Book, now time.Time) wayJSON {
	k := w.Route.Key
	out := wayJSON{
		Model: w.Model, Provider: k.Provider, ProviderKey: id.ProviderKey.Format(k.ID), Pool: optionalPool(k.Pool.ID),
		Priority: w.Priority, Weight: w.Weight, State: string(w.State), Reason: string(w.Bench.Reason), Facts: factsOf(book.Facts(k.Provider, w.Model, now)),
	}
	if !w.Bench.Until.IsZero() {
		out.Until = &w.Bench.Until
	}
	return out
}

func listModels(s *Server, r *request, q listQuery, _ none) (page[modelJSON], error) {
	routes, err := s.directory.Routes(r.ctx, r.tenant())
	if err != nil {
		return page[modelJSON]{}, err
	}
	aliases, err := s.directory.Aliases(r.ctx, r.tenant())
	if err != nil {
		return page[modelJSON]{}, err
	}
	book, err := s.directory.Book(r.ctx, r.tenant())
	if err != nil {
		return page[modelJSON]{}, err
	}
	own := func(name string) string { return name }
	return listByName(s, r, q, "models", tenants.AskedNames(aliases, routes), own, func(name string) modelJSON {
		return modelOf(name, aliases, routes, book, s.now())
	})
}

func modelOf(name string, aliases map[string]tenants.Alias, routes []tenants.Route, book *catalogue.Book, now time.Time) modelJSON {
	targets, alias := tenants.Targets(aliases, routes, name)
	out := modelJSON{Name: name, Kind: "model", Ways: []wayJSON{}}
	if alias.Name != "" {
		text := id.Alias.Format(alias.ID)
		out.Kind, out.Alias, out.Description = "alias", &text, alias.Description
		plain, _ := tenants.Targets(nil, routes, name)
		out.Shadows = len(plain) > 0
	}
	for _, w := range tenants.Ways(targets, now) {
		out.Ways = append(out.Ways, wayOf(w, book, now))
		out.Ready = out.Ready || w.State == tenants.WayReady
	}
	return out
}
