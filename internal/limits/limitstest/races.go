package limitstest

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
)

// together runs n calls at once and returns their answers.
func together[T any](n int, do func(i int) T) []T {
	answers := make([]T, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			answers[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return answers
}

var races = []guarantee{
	{"SixtyFourCallersNeverPassMoreThanThereIsAndRefusalsCostNothing", func(t *testing.T, open Open) {
		b := newBench(t, open)
		key, full, roomy := id.New(), id.New(), id.New()
		scoped := func(kind limits.ScopeKind, scope uuid.UUID, d limits.Dimension, w limits.Window, amount int64) limits.Limit {
			l := b.limit(d, w, amount)
			l.Scope.Kind, l.Scope.ID = kind, scope
			return l
		}
		plan := []limits.Limit{
			scoped(limits.ScopeTenant, b.tenant, limits.DimensionRequests, limits.WindowMinute, 100_000),
			scoped(limits.ScopeTenant, b.tenant, limits.DimensionTokens, limits.WindowMonth, 10_000_000),
			b.limit(limits.DimensionTokens, limits.WindowMinute, 5_000), // binds: 500 calls of 10
			b.limit(limits.DimensionTokens, limits.WindowDay, 1_000_000),
			b.limit(limits.DimensionConcurrency, limits.WindowNone, 10_000),
			scoped(limits.ScopeAPIKey, key, limits.DimensionInputTokens, limits.WindowDay, 900_000),
		}
		small, large := provider(full, limits.DimensionRequests, limits.WindowDay, 7), provider(roomy, limits.DimensionTokens, limits.WindowMinute, 100_000)
		candidates := []limits.Candidate{
			{ProviderKey: full, Model: "m", Limits: limits.Compile([]limits.Limit{small})},
			{ProviderKey: roomy, Model: "m", Limits: limits.Compile([]limits.Limit{large})},
		}
		sets := of(plan)
		const callers, each = 64, 25
		total := 0
		for _, n := range together(callers, func(int) int {
			passed := 0
			for range each {
				if b.ask(limits.Request{Plan: sets, Candidates: candidates, Estimate: tokens(10)}).Admitted {
					passed++
				}
			}
			return passed
		}) {
			total += n
		}
		if total != 500 {
			t.Fatalf("%d of %d calls admitted, want 500", total, callers*each)
		}
		used := func(l limits.Limit) int64 { s := b.live(l)[0]; return s.Used + s.Held }
		for l, want := range map[*limits.Limit]int64{
			&plan[0]: 500, &plan[1]: 5000, &plan[2]: 5000, &plan[3]: 5000, &plan[4]: 500,
			&plan[5]: 5000, &small: 7, &large: 4930,
		} {
			if got := used(*l); got != want {
				t.Errorf("%s counts %d, want %d", l.Ledger("m"), got, want)
			}
		}
	}},
	{"OneOutcomeStandsHoweverManySettleAtOnce", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		r := b.admitted([]limits.Limit{day}, 500)
		first := 0
		for _, o := range together(64, func(i int) limits.Outcome {
			if i%2 == 0 {
				o, _ := b.Cancel(context.Background(), b.tenant, r.ID)
				return o
			}
			o, _ := b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{Actual: tokens(int64(i))})
			return o
		}) {
			if o.First {
				first++
				b.remaining(1000-o.Actual.Tokens.Total(), day)
			}
		}
		if first != 1 {
			t.Fatalf("%d outcomes were first", first)
		}
	}},
}
