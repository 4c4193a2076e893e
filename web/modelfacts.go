package web

import (
	"slices"
	"strings"
	"time"

	"weir/internal/catalogue"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// modelFacts are what the catalogue knows of a model at one of its providers.
type modelFacts struct {
	Model, Provider string
	Size            string // context and answer, in words; "" not known
	Prices          string // "" not known, or not the role's to see
	Limits          []factLimit
	Since           time.Time
	Source          string
}

// factLimit is what a provider publishes for accounts of a tier.
type factLimit struct{ Tier, Says string }

// facts are those of the models behind targets, each once.
func (s supply) facts(targets []tenants.Target, w workspace) (out []modelFacts) {
	for _, t := range targets {
		provider := t.Route.Key.Provider
		known := s.book.Facts(provider, t.Model, w.Now)
		name := providerName(provider)
		if known.None() || slices.ContainsFunc(out, func(f modelFacts) bool { return f.Model == t.Model && f.Provider == name }) {
			continue
		}
		f := modelFacts{Model: t.Model, Provider: name, Size: sizeWords(known.Model), Limits: tierWords(known.Published), Since: known.Model.ValidFrom, Source: known.Model.Source}
		if w.May(seeMoney) {
			f.Prices = priceWords(known.Prices)
		}
		for _, p := range known.Prices {
			if !known.Known {
				f.Since, f.Source = p.ValidFrom, p.Source
			}
		}
		for _, p := range known.Published {
			if f.Source == "" {
				f.Since, f.Source = p.ValidFrom, p.Source
			}
		}
		out = append(out, f)
	}
	return out
}

// factLines are the shortest of what is known of a provider's model.
func (s supply) factLines(targets []tenants.Target, w workspace) (out []string) {
	known := s.facts(targets, w)
	if len(known) == 0 {
		return nil
	}
	for _, text := range []string{known[0].Size, known[0].Prices} {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

func sizeWords(m catalogue.Model) string {
	var parts []string
	if m.Context > 0 {
		parts = append(parts, ui.Short(m.Context)+" tokens of context")
	}
	if m.MaxOutput > 0 {
		parts = append(parts, "answers of at most "+ui.Count(m.MaxOutput))
	}
	return strings.Join(parts, ", ")
}

// priceWords are prices for a million, in the order of classes.
func priceWords(list []catalogue.Price) string {
	var parts []string
	for _, p := range list {
		class := strings.ReplaceAll(string(p.Class), "_", " ")
		if p.Class == catalogue.PerRequest {
			class = "requests"
		}
		parts = append(parts, class+" "+micros(p.MicrosPerMillion))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " " + list[0].Currency + " a million"
}

// tierWords are published limits, a line for each tier.
func tierWords(list []catalogue.Published) (out []factLimit) {
	for _, p := range list {
		l := limits.Limit{Dimension: p.Dimension, Window: p.Window}
		name := limitName(l)
		says := ui.Count(p.Amount) + " " + strings.ToLower(name[:1]) + name[1:]
		if i := slices.IndexFunc(out, func(f factLimit) bool { return f.Tier == p.Tier }); i >= 0 {
			out[i].Says += ", " + says
		} else {
			out = append(out, factLimit{p.Tier, says})
		}
	}
	return out
}
