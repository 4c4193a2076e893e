package gateway

import (
	"math"
	"math/big"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/usage"
)

const (
	perMessage    = 4    // tokens around a message, as OpenAI's chat format adds them
	perImage      = 1105 // an image of 1024×1024 at high detail, by OpenAI's published tiles: 85 + 6 × 170
	defaultOutput = 1024 // where nothing states or limits the output
)

// known is what is known of calls before one is made; zeros are not.
type known struct {
	factor float64 // by which guesses of prompts were too low
	p95    int64   // 95 % of earlier answers had at most so many tokens
	usual  int64   // the model's output where a call states no ceiling
	most   int64   // any of the models can write
}

// estimate is what a call is expected to take, at what its customer pays: its
// prompt by a guess over the text, corrected by what earlier calls showed, and an
// output allowance that a small plan can still hold. The guess is what it was before the correction.
func (call *call) estimate(plan []limits.Limit, rates []usage.Rate, k known) (c limits.Cost, guess int64) {
	c.Requests = 1
	if call.form.media {
		return c, 0
	}
	guess = call.guess()
	c.Tokens.Input = guess
	if k.factor > 0 {
		c.Tokens.Input = min(int64(math.Ceil(float64(guess)*k.factor)), maxOutputTokens)
	}
	c.Tokens.Output = call.allowance(c, k, plan, rates)
	return c, guess
}

// guess is how many tokens the prompt has, about.
func (call *call) guess() (n int64) {
	for _, name := range call.form.input {
		n += guessJSON(call.body.Get(name))
	}
	return min(n, maxOutputTokens)
}

// allowance is the output to reserve beside an input: what the call states, for
// all its answers and no more than the model can write; otherwise the smallest of
// what is usual, a quarter of the tightest ceiling of tokens or money, and what
// that ceiling leaves beside the input. So a guess never makes the first call of a
// small plan impossible.
func (call *call) allowance(c limits.Cost, k known, plan []limits.Limit, rates []usage.Rate) int64 {
	most := int64(maxOutputTokens)
	if k.most > 0 {
		most = min(k.most, maxOutputTokens/call.answers) * call.answers
	}
	if call.maxOutput >= 0 {
		return min(call.maxOutput, most)
	}
	out := min(k.output(), maxOutputTokens/call.answers) * call.answers
	out = min(out, most)
	for _, l := range plan {
		if !l.Applies(call.model) {
			continue
		}
		ceiling := max(l.Amount, l.Burst)
		switch l.Dimension {
		case limits.DimensionTokens:
			out = min(out, ceiling/4, ceiling-c.Tokens.Input)
		case limits.DimensionOutputTokens:
			out = min(out, ceiling/4)
		case limits.DimensionSpend:
			out = min(out, affordable(ceiling, c, rates))
		}
	}
	return max(out, 0)
}

// affordable is how much output a quarter of a ceiling of money buys, and no more
// than what it leaves beside the rest of a call. The ceiling is in micro-units.
func affordable(ceiling int64, c limits.Cost, rates []usage.Rate) int64 {
	i := slices.IndexFunc(rates, func(r usage.Rate) bool { return r.Class == usage.Output })
	if i < 0 || rates[i].MicrosPerMillion <= 0 {
		return maxOutputTokens
	}
	rest, _ := usage.Charge(rates, c)
	all := money.Times(ceiling, 1_000_000)
	price := big.NewInt(rates[i].MicrosPerMillion)
	quarter := new(big.Int).Quo(all.Big(), new(big.Int).Mul(price, big.NewInt(4)))
	left := new(big.Int).Quo(all.Sub(rest).Big(), price)
	if left.Cmp(quarter) < 0 {
		quarter = left
	}
	if !quarter.IsInt64() {
		return maxOutputTokens
	}
	return quarter.Int64()
}

// output is what an answer takes where nothing is stated.
func (k known) output() int64 {
	out := int64(defaultOutput)
	if k.usual > 0 {
		out = k.usual
	}
	if k.p95 > 0 {
		out = min(out, k.p95)
	}
	return out
}

// guessJSON sums a guess over every string in a JSON value.
func guessJSON(v jsontext.Value) int64 { return countJSON(v, guess) }

// guess estimates the tokens of a text without a vocabulary. Words of Latin
// letters are about one token for each started six letters, digits one for each
// started three, other scripts nearly one for each rune, and every other sign
// one; a fifth is added, since an estimate that is too low becomes debt.
func guess(s string) int64 {
	var n, run int64
	var class rune
	end := func() {
		switch class {
		case 'a':
			n += (run + 5) / 6
		case '0':
			n += (run + 2) / 3
		}
		run = 0
	}
	for _, r := range s {
		c := classOf(r)
		if c != class {
			end()
			class = c
		}
		switch c {
		case 'a', '0':
			run++
		case 'x', '.':
			n++
		}
	}
	end()
	return n + n/5 + min(n, 1)
}

func classOf(r rune) rune {
	switch {
	case r == ' ' || r == '\n' || r == '\t':
		return ' '
	case r >= '0' && r <= '9':
		return '0'
	case r < utf8.RuneSelf && unicode.IsLetter(r), unicode.Is(unicode.Latin, r):
		return 'a'
	case unicode.IsLetter(r):
		return 'x'
	}
	return '.'
}
