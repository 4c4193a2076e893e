package limitstest

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/limits"
)

// passed is an admitted call and what it really was.
type passed struct {
	limits.Reservation
	actual int64
}

// withinBound counts actual tokens by the instant of admission, over random
// histories with many calls open at once, against what the plan page prints: of
// a bucket the bound of any 60 seconds, of a sliding window its amount.
func withinBound(t *testing.T, open Open, checks func(*testing.T, func(*rapid.T))) {
	checks(t, func(rt *rapid.T) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowMinute, rapid.SampledFrom([]int64{1, 60, 300, 10_000}).Draw(rt, "rate"))
		length, scale := time.Minute, int64(1)
		switch rapid.SampledFrom([]string{"bucket", "bucket", "minute", "day"}).Draw(rt, "policy") {
		case "minute":
			l.Policy = limits.PolicySliding
		case "day":
			l.Window, l.Policy = limits.WindowRollingDay, limits.PolicySliding
			length, scale = 24*time.Hour, 1440
		default:
			if rapid.Bool().Draw(rt, "bursts") {
				l.Burst = l.Amount + rapid.Int64Range(0, 600).Draw(rt, "more")
			}
		}
		calls := flood(b, rt, l, scale)
		most, ok := l.MaxIn60s()
		if !ok {
			most = l.Amount
		}
		for i, first := range calls {
			var sum, overruns int64
			for _, c := range calls[i:] {
				if c.At.Sub(first.At) >= length {
					break
				}
				sum += c.actual
				overruns += max(0, c.actual-c.Estimate.Tokens.Total())
			}
			if sum > most+overruns {
				rt.Fatalf("%d actual tokens in the %s from %s on; the bound is %d + %d", sum, length, first.At.Sub(Noon), most, overruns)
			}
		}
	})
}

// flood takes all it can get: mostly large calls that turn out small, settled
// whenever.
func flood(b *bench, rt *rapid.T, l limits.Limit, scale int64) []*passed {
	var calls, unsettled []*passed
	top := max(l.Amount, l.Burst)
	pace := rapid.SampledFrom([]int64{5, 200, 2000, 30_000}).Draw(rt, "pace") * scale
	for range rapid.IntRange(20, 200).Draw(rt, "steps") {
		ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, pace), rapid.Int64Range(0, 30_000*scale), rapid.Int64Range(0, 1500)).Draw(rt, "ms")
		b.clock.Move(time.Duration(ms) * time.Millisecond)
		if len(unsettled) > 0 && rapid.IntRange(0, 2).Draw(rt, "settles") == 0 {
			i := rapid.IntRange(0, len(unsettled)-1).Draw(rt, "call")
			c := unsettled[i]
			unsettled = append(unsettled[:i], unsettled[i+1:]...)
			estimate := c.Estimate.Tokens.Total()
			c.actual = rapid.OneOf(rapid.Just(int64(0)), rapid.Just(estimate), rapid.Int64Range(0, estimate+top/4)).Draw(rt, "actual")
			b.settled(c.Reservation, c.actual)
			continue
		}
		left := b.live(l)[0].Remaining
		n := rapid.OneOf(rapid.Just(left), rapid.Int64Range(0, max(left, 1)), rapid.Int64Range(0, 10)).Draw(rt, "estimate")
		d := b.ask(limits.Request{Plan: of([]limits.Limit{l}), Estimate: tokens(n), TTL: limits.MaxTTL})
		if d.Admitted {
			c := &passed{d.Reservation, n}
			calls, unsettled = append(calls, c), append(unsettled, c)
		} else if rapid.Bool().Draw(rt, "waits") {
			b.clock.Move(d.RetryAfter) // the very first instant that something fits
		}
	}
	return calls
}
