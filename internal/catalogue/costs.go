package catalogue

import (
	"strings"
	"time"

	"weir/internal/limits"
	"weir/internal/money"
)

// Costs are what providers charge, as a tenant knows it. The zero Costs knows no
// price. It is immutable and safe for concurrent use.
type Costs struct {
	by map[string]*tariff // of each provider
}

// tariff is one provider's prices, the tenant's own before those built in.
type tariff struct {
	ranks [2]priceList
}

// priceList finds prices by name; those with patterns are tried one by one.
type priceList struct {
	exact    map[string][]Price
	patterns []Price
}

func newCosts(o overlay[Price]) Costs {
	c := Costs{by: map[string]*tariff{}}
	for rank, list := range [][]Price{o.own, o.built} {
		for _, p := range list {
			t := c.by[p.Provider]
			if t == nil {
				t = &tariff{}
				c.by[p.Provider] = t
			}
			t.ranks[rank].add(p)
		}
	}
	return c
}

func (l *priceList) add(p Price) {
	if strings.Contains(p.Model, "*") {
		l.patterns = append(l.patterns, p)
		return
	}
	if l.exact == nil {
		l.exact = map[string][]Price{}
	}
	l.exact[p.Model] = append(l.exact[p.Model], p)
}

// Of is what a provider charges for requests and tokens of one of its models at
// an instant, exact. priced is false where no price of a class that was used is
// known, or prices of two currencies would be mixed: such a cost is unknown, and
// never 0. Tokens of what is priced by the request alone cost nothing.
func (c Costs) Of(provider, model string, at time.Time, t limits.Tokens, requests int64) (cost money.Pico, currency string, priced bool) {
	tariff := c.by[provider]
	if tariff == nil {
		return money.Pico{}, "", false
	}
	rates := tariff.ratesAt(model, at, t.Input+t.CachedInput+t.CacheWrite)
	_, perRequest := rates[PerRequest]
	for _, x := range []struct {
		class Class
		n     int64
	}{
		{Class(limits.ClassInput), t.Input},
		{Class(limits.ClassCachedInput), t.CachedInput},
		{Class(limits.ClassCacheWrite), t.CacheWrite},
		{Class(limits.ClassOutput), t.Output},
		{Class(limits.ClassReasoning), t.Reasoning},
		{PerRequest, requests},
	} {
		r, known := rates.of(x.class)
		switch {
		case x.n == 0, !known && x.class == PerRequest && len(rates) > 0, !known && perRequest:
			continue
		case !known, currency != "" && currency != r.Currency:
			return money.Pico{}, "", false
		}
		cost, currency = cost.Add(money.Times(x.n, r.MicrosPerMillion)), r.Currency
	}
	if currency == "" { // nothing was used, or nothing that costs
		for _, r := range rates {
			return money.Pico{}, r.Currency, true
		}
	}
	return cost, currency, currency != ""
}

// rates are the prices that count for one call, by class.
type rates map[Class]Price

// fallback is the class whose price counts where a class has none of its own: a
// provider without a price for cached input charges it as input.
var fallback = map[Class]Class{
	Class(limits.ClassCachedInput): Class(limits.ClassInput), Class(limits.ClassCacheWrite): Class(limits.ClassInput), Class(limits.ClassReasoning): Class(limits.ClassOutput),
}

func (r rates) of(c Class) (Price, bool) {
	if p, known := r[c]; known {
		return p, true
	}
	p, known := r[fallback[c]]
	return p, known
}

// ratesAt picks the price of each class: the tenant's own first, then an exact
// name, then the pattern with the longest literal text; of those the one for the
// longest prompts that this one exceeds, and of these the newest.
func (t *tariff) ratesAt(model string, at time.Time, prompt int64) rates {
	out := rates{}
	for _, list := range t.ranks {
		found := rates{}
		for _, p := range list.exact[model] {
			found.consider(p, at, prompt)
		}
		for _, p := range list.patterns {
			if (limits.Limit{Models: []string{p.Model}}).Applies(model) {
				found.consider(p, at, prompt)
			}
		}
		for c, p := range found {
			if _, taken := out[c]; !taken {
				out[c] = p
			}
		}
	}
	return out
}

func (r rates) consider(p Price, at time.Time, prompt int64) {
	if p.ValidFrom.After(at) || p.Above > 0 && prompt <= p.Above {
		return
	}
	if old, found := r[p.Class]; !found || p.before(old) {
		r[p.Class] = p
	}
}

// before tells whether p counts rather than q.
func (p Price) before(q Price) bool {
	if a, b := specificity(p.Model), specificity(q.Model); a != b {
		return a > b
	}
	if p.Above != q.Above {
		return p.Above > q.Above
	}
	return p.ValidFrom.After(q.ValidFrom)
}

func specificity(pattern string) int {
	literal := len(strings.ReplaceAll(pattern, "*", ""))
	if !strings.Contains(pattern, "*") {
		return 1_000_000 + literal
	}
	return literal
}
