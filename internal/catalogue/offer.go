package catalogue

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"weir/internal/limits"
)

// Offer is what a provider publishes for accounts of one tier, as limits that a
// key may be given.
type Offer struct {
	Tier   string
	Limits []Offered
}

// Offered is one limit, with where it is from.
type Offered struct {
	limits.Limit
	Since  time.Time // the day from which it is known to count
	Source string
}

// The order in which limits are told.
var (
	windows    = []limits.Window{limits.WindowMinute, limits.WindowRollingDay, limits.WindowDay, limits.WindowMonth, limits.WindowNone}
	dimensions = []limits.Dimension{limits.DimensionRequests, limits.DimensionTokens, limits.DimensionInputTokens, limits.DimensionOutputTokens}
)

// mostPatterns is how many models one limit may name.
const mostPatterns = 50

// Offers are the tiers that a provider publishes limits for at an instant, the
// smallest first as the provider names them. Limits that are alike for several
// models are one limit with a ledger for each.
func (b *Book) Offers(provider string, at time.Time) (out []Offer) {
	for _, p := range b.Published(provider, at) {
		if len(out) == 0 || out[len(out)-1].Tier != p.Tier {
			out = append(out, Offer{Tier: p.Tier})
		}
		out[len(out)-1].add(p)
	}
	slices.SortStableFunc(out, compareAmounts)
	for i := range out {
		slices.SortStableFunc(out[i].Limits, func(a, b Offered) int {
			return cmp.Or(
				strings.Compare(strings.Join(a.Models, " "), strings.Join(b.Models, " ")),
				cmp.Compare(slices.Index(windows, a.Window), slices.Index(windows, b.Window)),
				cmp.Compare(slices.Index(dimensions, a.Dimension), slices.Index(dimensions, b.Dimension)),
			)
		})
	}
	return out
}

// compareAmounts orders tiers by the smallest amount that they have.
func compareAmounts(a, b Offer) int {
	least := func(o Offer) (n int64) {
		n = mostCount
		for _, l := range o.Limits {
			n = min(n, l.Amount)
		}
		return n
	}
	sum := func(o Offer) (n int64) {
		for _, l := range o.Limits {
			n += l.Amount
		}
		return n
	}
	if x, y := least(a), least(b); x != y {
		return int(min(max(x-y, -1), 1))
	}
	return int(min(max(sum(a)-sum(b), -1), 1))
}

func (o *Offer) add(p Published) {
	l := p.limit()
	one := len(l.Models) == 1 && !strings.Contains(l.Models[0], "*")
	for i, x := range o.Limits {
		if one && x.alike(l) && x.Since.Equal(p.ValidFrom) && x.Source == p.Source && len(x.Models) < mostPatterns {
			o.Limits[i].Models = slices.Concat(x.Models, l.Models)
			o.Limits[i].EachModel = true
			return
		}
	}
	o.Limits = append(o.Limits, Offered{Limit: l, Since: p.ValidFrom, Source: p.Source})
}

// alike tells whether two limits differ in nothing but the models they name.
func (o Offered) alike(l limits.Limit) bool {
	_, a := o.Weights[limits.ClassCachedInput]
	_, b := l.Weights[limits.ClassCachedInput]
	return o.Dimension == l.Dimension && o.Window == l.Window && o.Amount == l.Amount && a == b && len(o.Models) > 0 && !strings.Contains(o.Models[0], "*")
}

// limit is the row as a limit.
func (p Published) limit() limits.Limit {
	l := limits.Limit{Dimension: p.Dimension, Window: p.Window, Amount: p.Amount}
	if p.Model != "*" {
		l.Models = []string{p.Model}
	}
	if p.CachedFree {
		l.Weights = map[limits.Class]int64{limits.ClassCachedInput: 0}
	}
	return limits.Default(l)
}

// OfferOf finds the offer of a tier.
func OfferOf(offers []Offer, tier string) (Offer, bool) {
	i := slices.IndexFunc(offers, func(o Offer) bool { return o.Tier == tier })
	if i < 0 {
		return Offer{}, false
	}
	return offers[i], true
}

// With adds the offer's limits to those that somebody set, which count where
// both are about the same.
func (o Offer) With(set []limits.Limit) []limits.Limit {
	out := slices.Clone(set)
	taken := map[string]bool{}
	for _, l := range set {
		l.EachModel = false
		taken[l.Ledger("")] = true
	}
	for _, x := range o.Limits {
		same := x.Limit
		same.EachModel = false
		if !taken[same.Ledger("")] {
			out = append(out, x.Limit)
		}
	}
	return out
}
