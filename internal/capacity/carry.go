package capacity

import (
	"math"
	"math/bits"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// Unlimited is an amount without end.
const Unlimited = math.MaxInt64

// Counted is what is counted, and per what.
type Counted struct {
	Dimension limits.Dimension
	Window    limits.Window
}

// Measures are what capacity is checked in.
var Measures = []Counted{
	{limits.DimensionTokens, limits.WindowMinute},
	{limits.DimensionRequests, limits.WindowMinute},
	{limits.DimensionTokens, limits.WindowDay},
	{limits.DimensionRequests, limits.WindowDay},
}

const minutesOfDay = 24 * 60

// source is one provider key as it carries one model.
type source struct {
	pool        uuid.UUID // whose quota it shares; zero: none
	own, shared int64     // what the key itself and its pool allow
}

// carry is the most that sources carry together: each up to its own amount, and
// those of a pool together up to the pool's, which counts once.
func carry(list []source) int64 {
	pools := map[uuid.UUID]source{}
	total := int64(0)
	for _, s := range list {
		if s.pool == uuid.Nil {
			total = sum(total, min(s.own, s.shared))
			continue
		}
		p, known := pools[s.pool]
		if !known {
			p.shared = Unlimited
		}
		p.own, p.shared = sum(p.own, s.own), min(p.shared, s.shared)
		pools[s.pool] = p
	}
	for _, p := range pools {
		total = sum(total, min(p.own, p.shared))
	}
	return total
}

// sum adds amounts; without end stays without end.
func sum(a, b int64) int64 {
	if a > Unlimited-b {
		return Unlimited
	}
	return a + b
}

// allowed is how much of what is counted the limits let calls of a model use in
// a window. Of tokens, limits of input and output count together where there are
// both; a day allows no more than its minutes do. Shadow limits and those of one
// end user allow everything.
func allowed(list []limits.Limit, model string, c Counted) int64 {
	most := tightest(list, model, c.Dimension, c.Window)
	if c.Dimension == limits.DimensionTokens {
		most = min(most, sum(tightest(list, model, limits.DimensionInputTokens, c.Window), tightest(list, model, limits.DimensionOutputTokens, c.Window)))
	}
	if c.Window == limits.WindowDay {
		most = min(most, tightest(list, model, c.Dimension, limits.WindowRollingDay))
		if minute := allowed(list, model, Counted{c.Dimension, limits.WindowMinute}); minute <= Unlimited/minutesOfDay {
			most = min(most, minute*minutesOfDay)
		}
	}
	return most
}

func tightest(list []limits.Limit, model string, d limits.Dimension, w limits.Window) int64 {
	most := int64(Unlimited)
	for _, l := range list {
		if l.Dimension == d && l.Window == w && l.Mode != limits.ModeShadow && !l.EachEndUser() && l.Applies(model) {
			most = min(most, l.Amount)
		}
	}
	return most
}

// percentOf is what is sold in percent of what is carried, rounded up. carried
// is finite.
func percentOf(sold, carried int64) int64 {
	switch {
	case sold == 0:
		return 0
	case sold == Unlimited || carried == 0:
		return Unlimited
	}
	high, low := bits.Mul64(uint64(sold), 100)
	low, carry := bits.Add64(low, uint64(carried-1), 0)
	if high += carry; high >= uint64(carried) {
		return Unlimited
	}
	n, _ := bits.Div64(high, low, uint64(carried))
	return int64(min(n, Unlimited))
}
