package billing

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/usage"
)

// fallback is the class whose price counts where a class has no line of its
// own: a provider that has no price for cached input charges it as input.
var fallback = map[usage.Class]usage.Class{usage.CachedInput: usage.Input, usage.CacheWrite: usage.Input, usage.Reasoning: usage.Output}

// Price is one line of a plan's price list.
type Price struct {
	ID               uuid.UUID
	Models           string // pattern; "*" is every model
	Class            usage.Class
	MicrosPerMillion int64  // millionths of the currency for a million tokens, requests or units
	Scheme           Scheme // "" is PerUnit
	Included         int64  // units of each period that cost nothing
	Package          int64  // units of one, for PerPackage
	Tiers            []Tier // for Graduated and Volume, the last without end
}

// RatesFor picks the price lines that count for a model: for each class the
// line whose pattern is most specific (an exact name, then the longest literal
// text), so that exactly one line prices a token. A class without a line takes
// its fallback's; without that either, it costs nothing.
func RatesFor(prices []Price, model string) []usage.Rate {
	best := make([]*Price, len(usage.Classes))
	for i := range prices {
		p := &prices[i]
		at := slices.Index(usage.Classes, p.Class)
		if at < 0 || best[at] != nil && specificity(p.Models) <= specificity(best[at].Models) {
			continue
		}
		if l := (limits.Limit{Models: []string{p.Models}}); l.Applies(model) {
			best[at] = p
		}
	}
	var out []usage.Rate
	for i, c := range usage.Classes {
		p := best[i]
		if instead := slices.Index(usage.Classes, fallback[c]); p == nil && instead >= 0 {
			p = best[instead]
		}
		if p != nil {
			out = append(out, usage.Rate{Price: p.ID, Class: c, MicrosPerMillion: p.Listed()})
		}
	}
	return out
}

func specificity(pattern string) int {
	literal := len(strings.ReplaceAll(pattern, "*", ""))
	if !strings.Contains(pattern, "*") {
		return 1_000_000 + literal
	}
	return literal
}
