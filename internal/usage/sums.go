package usage

import "weir/internal/money"

// Add adds other sums to s, amounts by currency.
func (s *Sums) Add(o Sums) {
	s.Requests += o.Requests
	s.Refused += o.Refused
	s.Errors += o.Errors
	s.Unpriced += o.Unpriced
	s.Units += o.Units
	s.Tokens.Input += o.Tokens.Input
	s.Tokens.CachedInput += o.Tokens.CachedInput
	s.Tokens.CacheWrite += o.Tokens.CacheWrite
	s.Tokens.Output += o.Tokens.Output
	s.Tokens.Reasoning += o.Tokens.Reasoning
	s.Latency.plus(o.Latency)
	for _, m := range o.Charges {
		s.Charges = plus(s.Charges, m)
	}
	for _, m := range o.Costs {
		s.Costs = plus(s.Costs, m)
	}
}

// Quiet tells whether nothing was asked for.
func (s Sums) Quiet() bool { return s.Requests == 0 && s.Refused == 0 }

// Margins are the charges less the costs, by currency: of one in which nothing
// is charged, or nothing costs, too. Unpriced requests are in none of them.
func (s Sums) Margins() []Money {
	var out []Money
	for _, m := range s.Charges {
		out = plus(out, m)
	}
	for _, m := range s.Costs {
		out = plus(out, Money{m.Currency, money.Pico{}.Sub(m.Amount)})
	}
	return out
}
