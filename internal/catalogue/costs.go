package catalogue

import (
	"slices"
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
	patterns []patterned
}

// patterned is a price with its pattern made ready to be held against names.
type patterned struct {
	Price
	models limits.Limit
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
		l.patterns = append(l.patterns, patterned{p, limits.Limit{Models: []string{p.Model}}})
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
	var r rates
	tariff.ratesAt(&r, model, at, t.Input+t.CachedInput+t.CacheWrite)
	perRequest := r[classRequest] != nil
	for c, n := range [...]int64{t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning, requests} {
		p := r.of(c)
		switch {
		case n == 0, p == nil && c == classRequest && r.any() != nil, p == nil && perRequest:
			continue
		case p == nil, currency != "" && currency != p.Currency:
			return money.Pico{}, "", false
		}
		cost, currency = cost.Add(money.Times(n, p.MicrosPerMillion)), p.Currency
	}
	if p := r.any(); currency == "" && p != nil { // nothing was used, or nothing that costs
		currency = p.Currency
	}
	return cost, currency, currency != ""
}

// rates are the prices that count for one call, in the order of classes; nil
// where none is known.
type rates [6]*Price

// classRequest is where the price of a request stands.
const classRequest = 5

// fallbacks are the classes whose price counts where a class has none of its
// own: a provider without a price for cached input charges it as input.
var fallbacks = [...]int{0, 0, 0, 3, 3, classRequest}

func (r *rates) of(c int) *Price {
	if r[c] != nil {
		return r[c]
	}
	return r[fallbacks[c]]
}

// any is one of the prices; nil where there is none.
func (r *rates) any() *Price {
	for _, p := range r {
		if p != nil {
			return p
		}
	}
	return nil
}

// ratesAt picks the price of each class: the tenant's own first, then an exact
// name, then the pattern with the longest literal text; of those the one for the
// longest prompts that this one exceeds, and of these the newest.
func (t *tariff) ratesAt(out *rates, model string, at time.Time, prompt int64) {
	for i := range t.ranks {
		var found rates
		list := t.ranks[i].exact[model]
		for j := range list {
			found.consider(&list[j], at, prompt)
		}
		for j := range t.ranks[i].patterns {
			if x := &t.ranks[i].patterns[j]; x.models.Applies(model) {
				found.consider(&x.Price, at, prompt)
			}
		}
		for c, p := range found {
			if out[c] == nil {
				out[c] = p
			}
		}
	}
}

func (r *rates) consider(p *Price, at time.Time, prompt int64) {
	if p.ValidFrom.After(at) || p.Above > 0 && prompt <= p.Above {
		return
	}
	c := slices.Index(classes, p.Class)
	if r[c] == nil || p.before(*r[c]) {
		r[c] = p
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
