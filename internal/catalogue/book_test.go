package catalogue

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
)

var (
	june = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	now  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

func TestWhatIsBuiltInIsReadAndSaysWhereItIsFrom(t *testing.T) {
	b := BuiltIn()
	for _, m := range b.models.all() {
		if !strings.HasPrefix(m.Source, "https://") || m.Context > 0 && m.MaxOutput > m.Context {
			t.Errorf("%+v", m)
		}
	}
	for _, p := range b.prices.all() {
		if !strings.HasPrefix(p.Source, "https://") {
			t.Errorf("%+v", p)
		}
	}
	for _, provider := range []string{"openai", "anthropic", "google", "groq", "openrouter", "mistral", "nvidia", "modelscope"} {
		offers := b.Offers(provider, now)
		if len(offers) == 0 {
			t.Errorf("%s: nothing is offered", provider)
		}
		for _, o := range offers {
			var set []limits.Limit
			for _, l := range o.Limits {
				set = append(set, l.Limit)
			}
			if wrong := limits.Check(set); len(wrong) > 0 || !strings.HasPrefix(o.Limits[0].Source, "https://") {
				t.Errorf("%s, %s: %v", provider, o.Tier, wrong)
			}
		}
	}
	if offers := b.Offers("cerebras", now); len(offers) != 0 {
		t.Errorf("a plan that ended is offered: %v", offers)
	}
}

func TestLimitsThatAreAlikeForSeveralModelsAreOneWithALedgerForEach(t *testing.T) {
	free, found := OfferOf(BuiltIn().Offers("google", now), "free")
	if !found {
		t.Fatal("no free tier")
	}
	var tokens []limits.Limit
	for _, l := range free.Limits {
		if l.Dimension == limits.DimensionInputTokens {
			tokens = append(tokens, l.Limit)
		}
	}
	if len(tokens) != 1 || !tokens[0].EachModel || len(tokens[0].Models) < 5 || tokens[0].Amount != 250_000 {
		t.Errorf("%+v", tokens)
	}
	account, _ := OfferOf(BuiltIn().Offers("openrouter", now), "free, $10 bought")
	if len(account.Limits) != 2 || account.Limits[0].EachModel || !cmp.Equal(account.Limits[0].Models, []string{"*:free"}) {
		t.Errorf("%+v", account.Limits)
	}
	if tiers := BuiltIn().Offers("openai", now); len(tiers) != 5 || tiers[0].Tier != "tier 1" || tiers[4].Tier != "tier 5" {
		t.Errorf("%+v", tiers)
	}
}

func TestWhatSomebodySetCountsBeforeWhatIsOffered(t *testing.T) {
	offer, _ := OfferOf(BuiltIn().Offers("nvidia", now), "free")
	own := limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 7}
	if got := offer.With([]limits.Limit{own}); len(got) != 1 || got[0].Amount != 7 {
		t.Errorf("%+v", got)
	}
	if got := offer.With(nil); len(got) != 1 || got[0].Amount != 40 {
		t.Errorf("%+v", got)
	}
}

// pico is a worked amount of money.md.
func TestACostIsExact(t *testing.T) {
	tokens := limits.Tokens{Input: 210, CachedInput: 1024, Output: 567}
	cost, currency, priced := BuiltIn().Costs.Of("openai", "gpt-4o", now, tokens, 1)
	if !priced || currency != "USD" || cost.String() != "7475000000" {
		t.Errorf("%s %s %v", cost, currency, priced)
	}
	if cost.Decimal() != "0.007475" {
		t.Error(cost.Decimal())
	}
}

func price(model string, c limits.Class, micros int64, change func(*Price)) Price {
	p := Price{Provider: "custom", Model: model, Class: Class(c), MicrosPerMillion: micros, Currency: "USD", ValidFrom: june, Source: "x"}
	if change != nil {
		change(&p)
	}
	return p
}

func TestThePriceThatCountsIsTheTenantsThenTheMostSpecificThenTheNewest(t *testing.T) {
	in := limits.ClassInput
	costs := newCosts(overlay[Price]{
		own: []Price{price("own-*", in, 1, nil)},
		built: []Price{
			price("own-model", in, 2, nil), price("*", in, 3, nil), price("m-*", in, 4, nil), price("m-1", in, 5, nil),
			price("m-1", in, 6, func(p *Price) { p.ValidFrom = june.AddDate(0, 1, 0) }),
			price("m-1", in, 7, func(p *Price) { p.ValidFrom = now.AddDate(0, 1, 0) }),
			price("long", in, 8, nil), price("long", in, 9, func(p *Price) { p.Above = 1000 }), price("long", limits.ClassOutput, 10, nil),
			price("late", in, 11, func(p *Price) { p.ValidFrom = now.AddDate(1, 0, 0) }),
		},
	})
	for name, c := range map[string]struct {
		model  string
		at     time.Time
		tokens limits.Tokens
		want   int64
	}{
		"the tenant's own":              {"own-model", now, limits.Tokens{Input: 1}, 1},
		"an exact name":                 {"m-1", june, limits.Tokens{Input: 1}, 5},
		"the newest that counts":        {"m-1", now, limits.Tokens{Input: 1}, 6},
		"one that is not yet":           {"m-1", now.AddDate(0, 2, 0), limits.Tokens{Input: 1}, 7},
		"the longer pattern":            {"m-2", now, limits.Tokens{Input: 1}, 4},
		"any":                           {"x", now, limits.Tokens{Input: 1}, 3},
		"a prompt as long as the bound": {"long", now, limits.Tokens{Input: 1000}, 8000},
		"a longer prompt":               {"long", now, limits.Tokens{Input: 1, CachedInput: 1000}, 9009},
		"the answer of a longer prompt": {"long", now, limits.Tokens{Input: 1001, Output: 2}, 9009 + 20},
		"cached input without a price":  {"m-2", now, limits.Tokens{CachedInput: 2, CacheWrite: 1}, 12},
		"reasoning without a price":     {"long", now, limits.Tokens{Reasoning: 2}, 20},
		"before its day":                {"late", now, limits.Tokens{Input: 1}, 3},
	} {
		got, currency, priced := costs.Of("custom", c.model, c.at, c.tokens, 1)
		if !priced || currency != "USD" || got.String() != money.FromInt(c.want).String() {
			t.Errorf("%s: %s %q %v, want %d", name, got, currency, priced, c.want)
		}
	}
}

func TestAnUnknownPriceIsNeverNought(t *testing.T) {
	euro := func(p *Price) { p.Currency = "EUR" }
	costs := newCosts(overlay[Price]{built: []Price{
		price("in-only", limits.ClassInput, 1, nil),
		price("mixed", limits.ClassInput, 1, nil), price("mixed", limits.ClassOutput, 1, euro),
		price("by-request", "request", 2_000_000, nil),
		price("free", limits.ClassInput, 0, nil), price("free", limits.ClassOutput, 0, nil),
	}})
	both := limits.Tokens{Input: 5, Output: 5}
	for name, c := range map[string]struct {
		provider, model string
		tokens          limits.Tokens
		requests        int64
		priced          bool
		want            string
	}{
		"no such provider":                {"nobody", "in-only", both, 1, false, "0"},
		"no such model":                   {"custom", "nothing", both, 1, false, "0"},
		"no price of one class":           {"custom", "in-only", both, 1, false, "0"},
		"that class is not used":          {"custom", "in-only", limits.Tokens{Input: 5}, 1, true, "5"},
		"two currencies":                  {"custom", "mixed", both, 1, false, "0"},
		"by the request":                  {"custom", "by-request", both, 3, true, "6000000"},
		"nothing was used":                {"custom", "in-only", limits.Tokens{}, 0, true, "0"},
		"nothing was used of the unknown": {"custom", "nothing", limits.Tokens{}, 0, false, "0"},
		"stated as free":                  {"custom", "free", both, 1, true, "0"},
	} {
		got, currency, priced := costs.Of(c.provider, c.model, now, c.tokens, c.requests)
		if priced != c.priced || got.String() != c.want || (currency == "USD") != priced {
			t.Errorf("%s: %s %q %v", name, got, currency, priced)
		}
	}
	if _, _, priced := (Costs{}).Of("openai", "gpt-4o", now, both, 1); priced {
		t.Error("the zero Costs knows a price")
	}
}

func TestTheModelThatIsKnownIsTheNewestRowTheTenantsFirst(t *testing.T) {
	row := func(context int64, from time.Time) Model {
		return Model{Provider: "custom", Model: "m", Context: context, Input: []string{"text"}, ValidFrom: from, Source: "x"}
	}
	models := overlaid(modelSheet, []Model{row(1, june), row(2, june.AddDate(0, 1, 0)), row(3, now.AddDate(1, 0, 0))}, []Model{row(9, june), row(8, june.AddDate(0, 2, 0))})
	b := &Book{models: models, byName: [2]map[modelName][]Model{named(models.own), named(models.built)}}
	for at, want := range map[time.Time]int64{june: 1, now: 2, now.AddDate(2, 0, 0): 3} {
		if m, known := b.Model("custom", "m", at); !known || m.Context != want {
			t.Errorf("%s: %+v", at, m)
		}
	}
	if _, known := b.Model("custom", "m", june.AddDate(0, 0, -1)); known {
		t.Error("known before its day")
	}
	if list := b.Models("custom", now); len(list) != 1 || list[0].Context != 2 {
		t.Errorf("%+v", list)
	}
}

func TestAFileIsRefusedLineByLine(t *testing.T) {
	head := strings.Join(priceSheet.columns, ",") + "\n"
	for name, c := range map[string]struct{ file, code, says string }{
		"empty":               {"", "bad_csv", "The file is empty"},
		"a column missing":    {"provider,model\n", "bad_csv", "is missing"},
		"a column too many":   {"x," + head, "bad_csv", `"x" is no column`},
		"a column twice":      {"model," + head, "bad_csv", "stands twice"},
		"quotes that are off": {head + "openai,\"gpt", "bad_csv", "no CSV"},
		"a cell too few":      {head + "openai,gpt,input,0,1,USD,2026-01-01\n", "wrong_length", "Line 2: it has 7 cells, and the header 8"},
		"no provider":         {head + "nobody,gpt,input,0,1,USD,2026-01-01,x\n", "unknown_provider", "Line 2, provider"},
		"no model":            {head + "openai,g p t,input,0,1,USD,2026-01-01,x\n", "bad_model", "Line 2, model"},
		"a line break":        {head + "openai,\"gpt\nx\",input,0,1,USD,2026-01-01,x\n", "bad_model", "Line 2, model"},
		"no class":            {head + "openai,gpt,thought,0,1,USD,2026-01-01,x\n", "not_one_of", "Line 2, class"},
		"below nought":        {head + "openai,gpt,input,0,-1,USD,2026-01-01,x\n", "out_of_range", "Line 2, micros_per_million"},
		"decimals":            {head + "openai,gpt,input,0,1.5,USD,2026-01-01,x\n", "out_of_range", "Line 2, micros_per_million"},
		"too much":            {head + "openai,gpt,input,0,9999999999999,USD,2026-01-01,x\n", "out_of_range", "Line 2, micros_per_million"},
		"no currency":         {head + "openai,gpt,input,0,1,dollars,2026-01-01,x\n", "bad_currency", "Line 2, currency"},
		"no day":              {head + "openai,gpt,input,0,1,USD,30.11.2026,x\n", "bad_day", "Line 2, valid_from"},
		"no source":           {head + "openai,gpt,input,0,1,USD,2026-01-01,\n", "bad_text", "Line 2, source"},
		"control characters":  {head + "openai,gpt,input,0,1,USD,2026-01-01,a\x00b\n", "bad_text", "Line 2, source"},
		"the same twice":      {head + strings.Repeat("openai,gpt,input,0,1,USD,2026-01-01,x\n", 2), "duplicate", "Line 3: line 2 is about the same"},
		"too long":            {head + strings.Repeat("x", mostBytes), "body_too_large", "bytes"},
		"too many rows":       {head + strings.Repeat("openai,gpt,input,0,1,USD,2026-01-01,x\n", mostRows+1), "too_many_rows", "rows"},
	} {
		_, err := priceSheet.parse(c.file)
		f := fault.Of(err)
		if err == nil || f.Code != c.code && (len(f.Fields) == 0 || f.Fields[0].Code != c.code) || !strings.Contains(f.Message, c.says) && !strings.Contains(f.Fields[0].Message, c.says) {
			t.Errorf("%s: %v %+v", name, err, f)
		}
		if f != nil && len(f.Fields) > mostWrong {
			t.Errorf("%s: %d fields", name, len(f.Fields))
		}
	}
	if _, err := limitSheet.parse(strings.Join(limitSheet.columns, ",") + "\nopenai,*,free,concurrency,minute,5,counted,2026-01-01,,x\n"); err == nil {
		t.Error("a limit that cannot be enforced was taken")
	}
	if lines, err := priceSheet.parse("\ufeffsource,valid_from,currency,micros_per_million,above,class,model,provider\nx,2026-01-01,USD,1,,input,gpt,openai\n"); err != nil || len(lines) != 1 || lines[0].row.Provider != "openai" {
		t.Errorf("columns in another order: %+v, %v", lines, err)
	}
}

func TestNoCellOfAFileIsAFormulaAndEveryCellComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]string{"", "=", "+", "-", "@", "'", "''=", "'=", "＝", "a"}).Draw(t, "first")
		p := Price{Provider: "openai", Model: first + rapid.StringMatching(`[!-~]{1,20}`).Draw(t, "model"), Class: "input", Currency: "USD", ValidFrom: june, Source: first + rapid.StringMatching(`[!-~]([ -~]{0,20}[!-~])?`).Draw(t, "source")}
		if !ValidModel(p.Model) {
			p.Model = "m"
		}
		file := priceSheet.file([]Price{p})
		lines, err := priceSheet.parse(file)
		if err != nil || len(lines) != 1 || !cmp.Equal(lines[0].row, p) {
			t.Fatalf("%+v came back as %+v, %v\n%s", p, lines, err, file)
		}
		for _, v := range priceSheet.write(p) {
			if g := guarded(v); g != "" && strings.ContainsRune(formula, []rune(g)[0]) {
				t.Fatalf("a formula: %q", g)
			}
		}
	})
}

func BenchmarkCost(b *testing.B) {
	costs, tokens := BuiltIn().Costs, limits.Tokens{Input: 210, CachedInput: 1024, Output: 567}
	b.ReportAllocs()
	for b.Loop() {
		costs.Of("openai", "gpt-4o", now, tokens, 1)
	}
}
