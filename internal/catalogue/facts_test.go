package catalogue

import (
	"testing"
	"time"

	"weir/internal/limits"
)

func TestFactsOfAModelAreItsRowItsLimitsAndItsPrices(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	b := newBook(ownRows{
		models: []Model{{Provider: "openai", Model: "own-1", Context: 9000, ValidFrom: day(1)}},
		published: []Published{
			{Provider: "openai", Model: "own-*", Tier: "Tier 1", Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 7, ValidFrom: day(1)},
			{Provider: "openai", Model: "other", Tier: "Tier 1", Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 8, ValidFrom: day(1)},
		},
		prices: []Price{
			{Provider: "openai", Model: "own-1", Class: "output", MicrosPerMillion: 4, Currency: "USD", ValidFrom: day(1)},
			{Provider: "openai", Model: "own-1", Class: "output", MicrosPerMillion: 5, Currency: "USD", ValidFrom: day(3)},
			{Provider: "openai", Model: "own-1", Class: "output", Above: 200_000, MicrosPerMillion: 9, Currency: "USD", ValidFrom: day(1)},
			{Provider: "openai", Model: "own-*", Class: "input", MicrosPerMillion: 2, Currency: "USD", ValidFrom: day(1)},
		},
	})
	f := b.Facts("openai", "own-1", day(2))
	if !f.Known || f.Model.Context != 9000 || len(f.Published) != 1 || f.Published[0].Amount != 7 {
		t.Errorf("got %+v", f)
	}
	if len(f.Prices) != 2 || f.Prices[0].Class != "input" || f.Prices[0].MicrosPerMillion != 2 || f.Prices[1].MicrosPerMillion != 4 {
		t.Errorf("prices %+v", f.Prices)
	}
	if f := b.Facts("openai", "own-1", day(4)); f.Prices[1].MicrosPerMillion != 5 {
		t.Errorf("later %+v", f.Prices)
	}
	for _, unknown := range []Facts{b.Facts("openai", "nobody's", day(2)), b.Facts("custom", "own-1", day(2))} {
		if unknown.Known || len(unknown.Prices) > 0 {
			t.Errorf("got %+v", unknown)
		}
	}
}
