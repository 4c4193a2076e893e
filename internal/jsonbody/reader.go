package jsonbody

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// reader is a decoder over a text that is in memory.
type reader struct {
	d    *jsontext.Decoder
	text bytes.Buffer
	done func()
}

// readers are kept with what they know of names and nesting: to make that anew
// takes a fifth of what it takes to read a call.
var readers sync.Pool

// Decoder reads text, token by token, until done is called: then neither it nor
// a token that it returned may be used. The text must not change meanwhile.
func Decoder(text []byte, options ...jsontext.Options) (d *jsontext.Decoder, done func()) {
	r, _ := readers.Get().(*reader)
	if r == nil {
		r = &reader{}
		r.d, r.done = jsontext.NewDecoder(&r.text), r.close
	}
	r.text = *bytes.NewBuffer(text)
	r.d.Reset(&r.text, options...)
	return r.d, r.done
}

func (r *reader) close() {
	r.text = bytes.Buffer{}
	r.d.Reset(&r.text)
	readers.Put(r)
}
