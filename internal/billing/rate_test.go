package billing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func TestMonthlyPeriodsTileAndKeepTheirAnchor(t *testing.T) {
	for started, want := range map[string]string{
		"2026-01-31T10:00:00Z": "2026-02-28T10:00:00Z 2026-03-31T10:00:00Z 2026-04-30T10:00:00Z",
		"2027-12-31T23:59:59Z": "2028-01-31T23:59:59Z 2028-02-29T23:59:59Z 2028-03-31T23:59:59Z",
	} {
		at, err := time.Parse(time.RFC3339, started)
		if err != nil {
			t.Fatal(err)
		}
		var ends []string
		for n := range 3 {
			ends = append(ends, MonthlyPeriod(at, time.UTC, n).End.Format(time.RFC3339))
		}
		if got := strings.Join(ends, " "); got != want {
			t.Errorf("%s: got %s", started, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/Santiago", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		started := time.Unix(rapid.Int64Range(1_500_000_000, 1_900_000_000).Draw(t, "started"), 0)
		for n := range 30 {
			p, next := MonthlyPeriod(started, zone, n), MonthlyPeriod(started, zone, n+1)
			if !p.End.Equal(next.Start) || !p.Start.Before(p.End) {
				t.Fatalf("period %d: %v, next %v", n, p, next)
			}
		}
	})
}
