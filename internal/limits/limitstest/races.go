package limitstest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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
	{"WhateverSixtyFourDoAtOnceTheLedgersHoldWhatTheOutcomesCharge", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day, slots := b.limit(limits.DimensionTokens, limits.WindowDay, 1_000_000), b.limit(limits.DimensionConcurrency, limits.WindowNone, 1000)
		minute := b.limit(limits.DimensionTokens, limits.WindowMinute, 1_000_000)
		minute.Policy = limits.PolicySliding
		keys := []limits.Limit{}
		for range 2 {
			keys = append(keys, provider(id.New(), limits.DimensionTokens, limits.WindowDay, 1_000_000))
		}
		plan := of([]limits.Limit{day, slots, minute})
		charged := together(64, func(i int) map[string]int64 {
			sum := map[string]int64{}
			for round := range 10 {
				ctx, n := context.Background(), int64(i+round)
				d := b.ask(limits.Request{Plan: plan, Estimate: tokens(n), Candidates: b.candidates(keys[:1], keys[1:])})
				call := d.Reservation.ID
				if round%3 == 1 {
					_, _ = b.Move(ctx, limits.Next{Tenant: b.tenant, ID: call, Ended: limits.Settlement{Actual: tokens(n / 2)}, Candidates: b.candidates(keys[1:])})
				}
				_ = b.Extend(ctx, b.tenant, call, Noon.Add(20*time.Minute))
				o, err := b.Settle(ctx, b.tenant, call, limits.Settlement{Actual: tokens(n * int64(round%4) / 2)})
				if round%5 == 4 {
					_, err2 := b.Cancel(ctx, b.tenant, call)
					if err2 == nil {
						err = errors.New("cancelled after it was settled")
					}
				}
				if err != nil {
					t.Error(err)
				}
				for _, c := range o.Charges {
					sum[c.Ledger] += c.Amount
				}
			}
			return sum
		})
		total := map[string]int64{}
		for _, sum := range charged {
			for ledger, n := range sum {
				total[ledger] += n
			}
		}
		for _, l := range []limits.Limit{day, keys[0], keys[1]} {
			if s := b.live(l)[0]; s.Used != total[l.Ledger("")] || s.Held != 0 || s.Used == 0 {
				t.Errorf("%s holds %d + %d, the outcomes charged %d", s.Ledger, s.Used, s.Held, total[l.Ledger("")])
			}
		}
		if s := b.live(minute)[0]; s.Used != total[day.Ledger("")] || s.Held != 0 {
			t.Errorf("the minute holds %d + %d, want %d", s.Used, s.Held, total[day.Ledger("")])
		}
		b.remaining(1000, slots)
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
