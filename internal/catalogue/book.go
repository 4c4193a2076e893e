package catalogue

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed data/*.csv
var data embed.FS

// Book is what a tenant's calls are judged by: what is built in, and before it
// what the tenant brought. It is immutable and safe for concurrent use.
type Book struct {
	Costs     Costs
	models    overlay[Model]
	byName    [2]map[modelName][]Model // the tenant's own, and those built in
	published overlay[Published]
	prices    overlay[Price]
}

type modelName struct{ provider, model string }

// named finds models by their names.
func named(list []Model) map[modelName][]Model {
	out := make(map[modelName][]Model, len(list))
	for _, m := range list {
		n := modelName{m.Provider, m.Model}
		out[n] = append(out[n], m)
	}
	return out
}

// overlay are rows in order: a tenant's own before those that are built in, of
// which it hides the ones that it has itself.
type overlay[R any] struct {
	own, built []R
}

func (o overlay[R]) all() []R { return append(slices.Clip(o.own), o.built...) }

func overlaid[R any](s sheet[R], own, built []R) overlay[R] {
	hidden := map[string]bool{}
	for _, r := range own {
		hidden[s.key(r)] = true
	}
	o := overlay[R]{own: own}
	for _, r := range built {
		if !hidden[s.key(r)] {
			o.built = append(o.built, r)
		}
	}
	return o
}

// BuiltIn is the catalogue as it comes with this release.
var BuiltIn = sync.OnceValue(func() *Book { return newBook(ownRows{}) })

// ownRows are what a tenant brought.
type ownRows struct {
	models    []Model
	published []Published
	prices    []Price
}

func newBook(own ownRows) *Book {
	b := &Book{
		models:    overlaid(modelSheet, own.models, builtModels()),
		published: overlaid(limitSheet, own.published, builtLimits()),
		prices:    overlaid(priceSheet, own.prices, builtPrices()),
	}
	b.byName = [2]map[modelName][]Model{named(b.models.own), named(b.models.built)}
	b.Costs = newCosts(b.prices)
	return b
}

var (
	builtModels = sync.OnceValue(func() []Model { return seed(modelSheet) })
	builtLimits = sync.OnceValue(func() []Published { return seed(limitSheet) })
	builtPrices = sync.OnceValue(func() []Price { return seed(priceSheet) })
)

// seed reads what is built in; a file of this repository that is wrong is a bug.
func seed[R any](s sheet[R]) []R {
	file, err := data.ReadFile("data/" + s.kind + ".csv")
	if err != nil {
		panic(err)
	}
	lines, err := s.parse(string(file))
	if err != nil {
		panic(err)
	}
	return rowsOf(lines)
}

func rowsOf[R any](lines []line[R]) []R {
	out := make([]R, len(lines))
	for i, l := range lines {
		out[i] = l.row
	}
	return out
}

// Model is what is known of a provider's model at an instant: the tenant's own
// row, else the one that is built in.
func (b *Book) Model(provider, model string, at time.Time) (Model, bool) {
	for _, names := range b.byName {
		var found *Model
		list := names[modelName{provider, model}]
		for i, m := range list {
			if !m.ValidFrom.After(at) && (found == nil || m.ValidFrom.After(found.ValidFrom)) {
				found = &list[i]
			}
		}
		if found != nil {
			return *found, true
		}
	}
	return Model{}, false
}

// Models are the provider's models that are known at an instant, by name.
func (b *Book) Models(provider string, at time.Time) (out []Model) {
	seen := map[string]bool{}
	for _, m := range b.models.all() {
		if m.Provider != provider || seen[m.Model] {
			continue
		}
		seen[m.Model] = true
		if now, known := b.Model(provider, m.Model, at); known {
			out = append(out, now)
		}
	}
	slices.SortFunc(out, func(a, b Model) int { return strings.Compare(a.Model, b.Model) })
	return out
}

// Published are a provider's published limits that count at an instant. Of one
// quota the newest row does, a tenant's own before the one that is built in.
func (b *Book) Published(provider string, at time.Time) (out []Published) {
	type quota struct{ model, tier, dimension, window string }
	taken := map[quota]bool{}
	for _, list := range [][]Published{b.published.own, b.published.built} {
		newest := slices.Clone(list)
		slices.SortStableFunc(newest, func(a, b Published) int { return b.ValidFrom.Compare(a.ValidFrom) })
		for _, p := range newest {
			q := quota{p.Model, p.Tier, string(p.Dimension), string(p.Window)}
			if p.Provider != provider || p.ValidFrom.After(at) || taken[q] {
				continue
			}
			taken[q] = true
			if p.ValidTo.IsZero() || at.Before(p.ValidTo) {
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Published) int {
		return cmp.Or(strings.Compare(a.Tier, b.Tier), strings.Compare(a.Model, b.Model))
	})
	return out
}
