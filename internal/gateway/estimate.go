package gateway

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/limits"
)

const (
	perMessage    = 4    // tokens around a message, as OpenAI's chat format adds them
	perImage      = 1105 // an image of 1024×1024 at high detail, by OpenAI's published tiles: 85 + 6 × 170
	defaultOutput = 1024 // where nothing states or limits the output
)

// estimate is what a chat call is expected to take: its prompt by a guess over
// the text, and an output allowance that a small plan can still hold.
func (call *chatCall) estimate(plan []limits.Limit) limits.Cost {
	input := guessJSON(call.body.Get("messages")) + guessJSON(call.body.Get("tools")) + guessJSON(call.body.Get("functions")) + guessJSON(call.body.Get("response_format"))
	return limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: input, Output: call.allowance(input, plan)}}
}

// allowance is the output to reserve: what the call states, for all its choices;
// otherwise the smallest of a default, a quarter of the tightest token ceiling,
// and what that ceiling leaves beside the input. So a guess never makes the
// first call of a small plan impossible.
func (call *chatCall) allowance(input int64, plan []limits.Limit) int64 {
	if call.maxOutput >= 0 {
		return call.maxOutput
	}
	out := int64(defaultOutput)
	for _, l := range plan {
		if !l.Applies(call.model) || l.Dimension != limits.DimensionTokens && l.Dimension != limits.DimensionOutputTokens {
			continue
		}
		ceiling := max(l.Amount, l.Burst)
		out = min(out, ceiling/4)
		if l.Dimension == limits.DimensionTokens {
			out = min(out, ceiling-input)
		}
	}
	return max(out, 0)
}

// guessJSON sums a guess over every string in a JSON value, with a fixed figure
// for each message and each image, whose data is no text. It keeps nothing but
// where it stands.
func guessJSON(v jsontext.Value) (n int64) {
	if v == nil {
		return 0
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true), lenient)
	for {
		t, err := d.ReadToken()
		if err != nil {
			return n // the end; what is no JSON was refused before
		}
		switch t.Kind() {
		case '"':
			n += guessString(d, t)
		case '0', 't', 'f':
			n++
		}
	}
}

// guessString counts a string that was just read: a value by its text, a name
// by what it stands for.
func guessString(d *jsontext.Decoder, t jsontext.Token) int64 {
	kind, length := d.StackIndex(d.StackDepth())
	if kind != '{' || length%2 == 0 {
		return guess(t.String())
	}
	switch t.String() {
	case "role":
		_ = d.SkipValue() // its end shows at the next token
		return perMessage
	case "type":
		_ = d.SkipValue()
		return 0
	case "image_url", "input_audio", "file":
		_ = d.SkipValue()
		return perImage
	}
	return 1
}

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
