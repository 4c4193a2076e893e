package wire

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The types of this file read members of a stream's events without keeping
// more than is needed, whatever JSON kind stands there: an odd member must not
// hide the others.

// size is how many bytes of text a string has; of a list or an object, how long
// its JSON is.
type size int64

// UnmarshalJSONFrom reads any value.
func (n *size) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() == '"':
		*n = size(textLength(v))
	case v.Kind() == '{' || v.Kind() == '[':
		*n = size(len(v))
	}
	return nil
}

// textLength is the length in bytes of a JSON string's text.
func textLength(quoted []byte) (n int) {
	s := quoted[1 : len(quoted)-1]
	for i := 0; i < len(s); n++ {
		switch {
		case s[i] != '\\':
			i++
		case s[i+1] != 'u':
			i += 2
		default:
			r := hex4(s[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				if len(s) >= i+6 && s[i] == '\\' && s[i+1] == 'u' && utf16.DecodeRune(r, hex4(s[i+2:])) != utf8.RuneError {
					i += 6
					n++
				}
				r = utf8.RuneError
			}
			n += utf8.RuneLen(r) - 1
		}
	}
	return n
}

// hex4 reads the four digits of an escape that the decoder has checked.
func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// loose is a string's text, or the JSON of anything else but null: some
// providers write a tool's arguments as an object.
type loose string

// UnmarshalJSONFrom reads any value.
func (l *loose) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case '"':
		*l = loose(text(v))
	case 'n':
		*l = ""
	default:
		*l = loose(v)
	}
	return nil
}

// raw is a value's text, or nothing for null.
type raw []byte

// UnmarshalJSONFrom reads any value.
func (r *raw) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*r = nil
	if v.Kind() != 'n' {
		*r = append(*r, v...)
	}
	return nil
}

// word is a string, mostly of a small vocabulary; "" for anything else.
type word string

// UnmarshalJSONFrom reads any value.
func (w *word) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*w = ""
	if v.Kind() == '"' {
		*w = intern(v)
	}
	return nil
}

// intern is a string's text, without an allocation for those that every stream
// repeats.
func intern(quoted []byte) word {
	switch string(quoted) {
	case `"stop"`:
		return "stop"
	case `"content_block_delta"`:
		return "content_block_delta"
	case `"text_delta"`:
		return "text_delta"
	case `"input_json_delta"`:
		return "input_json_delta"
	case `"thinking_delta"`:
		return "thinking_delta"
	case `"response.output_text.delta"`:
		return "response.output_text.delta"
	case `"response.function_call_arguments.delta"`:
		return "response.function_call_arguments.delta"
	}
	return word(text(quoted))
}

// place is a position in a list; anything but a small whole number is −1.
type place int

// UnmarshalJSONFrom reads any value.
func (p *place) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*p = 0
	for _, c := range v {
		if c < '0' || c > '9' || len(v) > 6 {
			*p = -1
			return nil
		}
		*p = *p*10 + place(c-'0')
	}
	return nil
}
