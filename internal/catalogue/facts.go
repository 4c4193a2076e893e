package catalogue

import (
	"slices"
	"time"

	"weir/internal/limits"
)

// Facts are what the catalogue knows of one model of a provider at an instant.
type Facts struct {
	Model     Model
	Known     bool        // there is a row of the model itself
	Published []Published // of every tier, for the model or a pattern that it is of
	Prices    []Price     // one for each class that has one, for prompts of any length
}

// None tells that nothing is known.
func (f Facts) None() bool { return !f.Known && len(f.Published) == 0 && len(f.Prices) == 0 }

// Facts are what is known of a provider's model at an instant.
func (b *Book) Facts(provider, model string, at time.Time) (f Facts) {
	f.Model, f.Known = b.Model(provider, model, at)
	for _, p := range b.Published(provider, at) {
		if (limits.Limit{Models: []string{p.Model}}).Applies(model) {
			f.Published = append(f.Published, p)
		}
	}
	if t := b.Costs.by[provider]; t != nil {
		var found rates
		t.ratesAt(&found, model, at, 0)
		for _, p := range found {
			if p != nil {
				f.Prices = append(f.Prices, *p)
			}
		}
	}
	f.Published = slices.Clip(f.Published)
	return f
}
