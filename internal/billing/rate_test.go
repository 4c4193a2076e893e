package billing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/limits"
	"weir/internal/usage"
)

func TestExactlyOneLinePricesATokenAndTheMostSpecificOne(t *testing.T) {
	prices := []Price{
		{Models: "*", Class: usage.Input, MicrosPerMillion: 1},
		{Models: "gpt-*", Class: usage.Input, MicrosPerMillion: 2},
		{Models: "gpt-4o*", Class: usage.Input, MicrosPerMillion: 3},
		{Models: "gpt-4o", Class: usage.Input, MicrosPerMillion: 4},
		{Models: "*", Class: usage.Output, MicrosPerMillion: 10},
		{Models: "*", Class: usage.CachedInput, MicrosPerMillion: 5},
	}
	at := func(model string) map[usage.Class]int64 {
		out := map[usage.Class]int64{}
		for _, r := range RatesFor(prices, model) {
			if _, twice := out[r.Class]; twice {
				t.Fatalf("%s: %s is priced twice", model, r.Class)
			}
			out[r.Class] = r.MicrosPerMillion
		}
		return out
	}
	for model, input := range map[string]int64{"gpt-4o": 4, "gpt-4o-mini": 3, "gpt-5": 2, "claude": 1} {
		want := map[usage.Class]int64{usage.Input: input, usage.CachedInput: 5, usage.CacheWrite: input, usage.Output: 10, usage.Reasoning: 10}
		if diff := cmp.Diff(want, at(model)); diff != "" {
			t.Errorf("%s: %s", model, diff)
		}
	}
}

func TestAnEventIsChargedByItsRates(t *testing.T) {
	rates := []usage.Rate{{Class: usage.Input, MicrosPerMillion: 2_500_000}, {Class: usage.CachedInput, MicrosPerMillion: 1_250_000}, {Class: usage.Output, MicrosPerMillion: 10_000_000}}
	sum, _ := usage.Charge(rates, limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 210, CachedInput: 1024, Output: 567}})
	if sum.Decimal() != "0.007475" {
		t.Fatalf("got %s", sum.Decimal())
	}
}
