package gateway

import (
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tiktoken-go/tokenizer"
)

// exactBytes is the longest text that is counted with a vocabulary: that takes
// milliseconds for each 10 kB.
const exactBytes = 64 << 10

// The vocabularies of OpenAI's models. They are large, and read when first
// needed.
var (
	o200k  = sync.OnceValue(func() tokenizer.Codec { return vocabulary(tokenizer.O200kBase) })
	cl100k = sync.OnceValue(func() tokenizer.Codec { return vocabulary(tokenizer.Cl100kBase) })
)

func vocabulary(e tokenizer.Encoding) tokenizer.Codec {
	c, err := tokenizer.Get(e)
	if err != nil {
		panic(err) // it is compiled in
	}
	return c
}

// families are the models whose vocabulary is known, by how their names begin;
// the first that fits counts.
var families = []struct {
	prefix string
	codec  func() tokenizer.Codec
}{
	{"gpt-4o", o200k},
	{"gpt-4.1", o200k},
	{"gpt-4.5", o200k},
	{"gpt-5", o200k},
	{"chatgpt-4o", o200k},
	{"gpt-oss", o200k},
	{"o1", o200k},
	{"o3", o200k},
	{"o4", o200k},
	{"gpt-4", cl100k},
	{"gpt-3.5", cl100k},
	{"text-embedding-", cl100k},
}

// exact counts the tokens of a call's prompt: with the model's own vocabulary
// where it is known and the text is not too long, else by the guess.
func (call *call) exact(model string) (n int64) {
	for _, name := range call.form.input {
		n += exactJSON(call.body.Get(name), model)
	}
	return n
}

func exactJSON(v jsontext.Value, model string) int64 {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if len(v) <= exactBytes {
		for _, f := range families {
			if strings.HasPrefix(model, f.prefix) {
				return countJSON(v, counter(f.codec()))
			}
		}
	}
	return guessJSON(v)
}

func counter(c tokenizer.Codec) func(string) int64 {
	return func(s string) int64 {
		n, err := c.Count(s)
		if err != nil {
			return guess(s)
		}
		return int64(n)
	}
}
