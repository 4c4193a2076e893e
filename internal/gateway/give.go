package gateway

import (
	"slices"

	"weir/internal/limits"
	"weir/internal/usage"
)

// give ends a call that nobody served, and says what its client is told.
func (x *exchange) give(failures []*failure) error {
	last := failures[len(failures)-1]
	if last.unsent || x.try != nil && !x.at.Vendor.FailuresCount && last.outcome != usage.Aborted && last.outcome != usage.ClientError {
		x.move(last, nil)
	}
	x.settle(usage.Result{Outcome: last.outcome, Tokens: last.tokens, Estimated: last.estimated})
	return x.told(failures)
}

// told is what a client is told: of limits of providers before other failures,
// that its call is too large only where it was everywhere, and that keys are
// refused, or a model is unknown, only where no key rests or is full.
func (x *exchange) told(failures []*failure) error {
	last := failures[len(failures)-1]
	if last.next == never {
		return last.err
	}
	large := false
	for _, f := range failures {
		if large = large || f.err == errTooLargeThere; f.outcome == usage.ProviderLimited && f.err != errTooLargeThere { //nolint:errorlint // the one
			return x.s.capacity(x.all, x.call.model)
		}
	}
	if i := slices.IndexFunc(failures, func(f *failure) bool { return f.next == otherProvider }); i >= 0 {
		return failures[i].err
	}
	switch {
	case large:
		return errTooLargeThere
	case x.full || x.resting():
		return x.s.capacity(x.all, x.call.model)
	}
	return last.err
}

// resting tells whether a key that its provider accepts was not tried because it
// rests.
func (x *exchange) resting() bool {
	now := x.s.Now()
	return slices.ContainsFunc(x.all, func(c candidate) bool {
		b, cools := x.s.health.of(c.Key, c.model).Cools(c.model, now)
		tried := slices.ContainsFunc(x.tried, func(t candidate) bool { return t.Key.ID == c.Key.ID && t.model == c.model })
		return cools && !tried && b.Source != limits.BenchAuth && b.Source != limits.BenchCredit
	})
}
