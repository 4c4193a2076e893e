package limitstest

import (
	"testing"
	"time"

	"weir/internal/limits"
)

// cases are faults that users of comparable products met (G1, G4, G7, G14, G15,
// G17, C5, C6, C8).
var cases = []guarantee{
	{"ParallelCallsNeverShareTheSameRoom", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(100, 100)
		admitted, tooLarge := 0, 0
		for _, d := range together(5, func(i int) limits.Decision {
			return b.call(plan, []int64{58, 80, 175, 175, 175}[i])
		}) {
			if d.Admitted {
				admitted++
			}
			if d.TooLarge {
				tooLarge++
			}
		}
		if admitted != 1 || tooLarge != 3 {
			t.Fatalf("%d admitted and %d too large, want 1 and 3", admitted, tooLarge)
		}
	}},
	{"RefusedCallsCostNothing", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(1000, 1000)
		b.admitted(plan, 950)
		for range 50 {
			b.refused(plan, 100)
		}
		b.admitted(plan, 50)
		b.remaining(0, plan[1])
		b.remaining(998, plan[0])
	}},
	{"ADayEndsAtMidnightOfItsZone", func(t *testing.T, open Open) {
		b := newBench(t, open)
		b.clock.Set(time.Date(2026, 3, 10, 14, 59, 58, 0, time.UTC)) // 23:59:58 in Tokyo
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		day.Zone = "Asia/Tokyo"
		b.admitted([]limits.Limit{day}, 1000)
		wantWait(t, b.refused([]limits.Limit{day}, 1), 2*time.Second)
		b.clock.Move(3 * time.Second)
		b.admitted([]limits.Limit{day}, 10)
		s := b.live(day)[0]
		if s.Used+s.Held != 10 {
			t.Fatalf("the new day counts %d, want 10", s.Used+s.Held)
		}
		if want := time.Date(2026, 3, 11, 15, 0, 0, 0, time.UTC); !s.ResetAt.Equal(want) {
			t.Fatalf("resets at %s, want midnight in Tokyo, %s", s.ResetAt, want)
		}
	}},
	{"AUsageOfZeroGivesEverythingBackButTheRequest", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 1000)
		b.settled(b.admitted(plan, 400), 0)
		b.remaining(1000, plan[1])
		b.remaining(9, plan[0])
	}},
	{"AHoldThatIsNeverReturnedEndsWithItsLeaseAndStaysCharged", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		one := b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)
		plan := []limits.Limit{day, one}
		b.admitted(plan, 400)
		if d := b.refused(plan, 400); d.RetryAfter < time.Second {
			t.Fatalf("retry after %s, want at least 1 s", d.RetryAfter)
		}
		b.clock.Move(limits.DefaultTTL - time.Millisecond)
		b.refused(plan, 400)
		b.clock.Move(time.Millisecond)
		b.admitted(plan, 400)
		b.remaining(200, day)
	}},
	{"ARotatedKeyKeepsItsSpentWindow", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.limit(limits.DimensionRequests, limits.WindowDay, 1)
		day.Scope.Kind, day.Scope.Name = limits.ScopeAPIKey, "before"
		b.admitted([]limits.Limit{day}, 1)
		day.Scope.Name = "after"
		b.refused([]limits.Limit{day}, 1)
	}},
	{"RequestsAndTokensRefillEachOnItsOwn", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(500, 200_000)
		b.admitted(plan, 190_000)
		b.clock.Move(5 * time.Second)
		d := b.refused(plan, 40_000)
		if len(d.Violations) != 1 || d.Violations[0].Limit.Label() != "tokens per minute" {
			t.Fatalf("refused by %s, want tokens per minute alone", describe(d.Violations))
		}
		// 10,000 left and 16,666 ⅔ refilled; the missing 13,333 ⅓ take 4 s.
		wantWait(t, d, 4*time.Second)
		b.clock.Set(Noon.Add(125 * time.Second))
		b.admitted(plan, 150_000)
	}},
	{"AStrictWindowOfTokensLetsTheSameCallsPass", func(t *testing.T, open Open) {
		b := newBench(t, open)
		tokens := b.limit(limits.DimensionTokens, limits.WindowMinute, 200_000)
		tokens.Policy = limits.PolicySliding
		plan := []limits.Limit{b.limit(limits.DimensionRequests, limits.WindowMinute, 500), tokens}
		b.admitted(plan, 190_000)
		b.clock.Move(5 * time.Second)
		d := b.refused(plan, 20_000)
		if len(d.Violations) != 1 || d.Violations[0].Limit.Label() != "tokens per minute" {
			t.Fatalf("refused by %s, want tokens per minute alone", describe(d.Violations))
		}
		wantWait(t, d, 56*time.Second) // the first second has left the window whole at 61 s
		b.clock.Set(Noon.Add(125 * time.Second))
		b.admitted(plan, 150_000)
	}},
	{"ADayBeginsAtMidnightNotAtItsFirstCall", func(t *testing.T, open Open) {
		b := newBench(t, open)
		b.clock.Set(time.Date(2026, 3, 10, 14, 50, 0, 0, time.UTC)) // 23:50 in Tokyo
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		day.Zone = "Asia/Tokyo"
		b.settled(b.admitted([]limits.Limit{day}, 1000), 1000)
		b.clock.Set(time.Date(2026, 3, 10, 15, 0, 1, 0, time.UTC))
		b.admitted([]limits.Limit{day}, 5)
		b.remaining(995, day)
		if s := b.live(day)[0]; !s.WindowStart.Equal(time.Date(2026, 3, 10, 15, 0, 0, 0, time.UTC)) {
			t.Fatalf("the window began at %s, want midnight in Tokyo", s.WindowStart)
		}
	}},
	{"AStormOfRefusalsLeavesTheNextMinuteWhole", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionRequests, limits.WindowMinute, 5)}
		admitted := 0
		for range 100 {
			d := b.call(plan, 1)
			if d.Admitted {
				admitted++
			}
			if d.States[0].Remaining < 0 {
				t.Fatalf("remaining is %d", d.States[0].Remaining)
			}
			b.clock.Move(10 * time.Millisecond)
		}
		b.clock.Set(Noon.Add(125 * time.Second))
		for range 5 {
			if b.call(plan, 1).Admitted {
				admitted++
			}
		}
		if admitted != 10 {
			t.Fatalf("%d admitted, want 5 and 5", admitted)
		}
	}},
}
