package jsonbody

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/fault"
)

// Object is a JSON object whose members keep their order and their exact text,
// so that what was validated is what goes on.
type Object struct {
	members []member
}

type member struct {
	name  string
	value jsontext.Value
}

// maxMembers is the most members that one object may have.
const maxMembers = 1000

// ParseObject reads an object. A second member of the same name, at any depth
// or, in this object, in another case, is Invalid with code ambiguous_json;
// every other fault is Invalid too.
func ParseObject(body []byte) (*Object, error) {
	if depth(body) > maxDepth {
		return nil, one("", "too_deep", "The JSON is nested more than 64 levels deep.")
	}
	// The decoder refuses duplicates at every depth and bad UTF-8.
	d, done := Decoder(body)
	defer done()
	if d.PeekKind() != '{' {
		return nil, noObject(d, body)
	}
	o, err := members(d, body, "")
	if err != nil {
		return nil, err
	}
	return o, trailing(d, body)
}

// noObject says what is wrong with a body that does not begin as an object.
func noObject(d *jsontext.Decoder, body []byte) error {
	if err := d.SkipValue(); err != nil {
		return parseFault(err)
	}
	if err := trailing(d, body); err != nil {
		return err
	}
	return one("", "wrong_type", "The body must be a JSON object.")
}

func trailing(d *jsontext.Decoder, body []byte) error {
	if len(bytes.TrimSpace(body[d.InputOffset():])) > 0 {
		return one("", "bad_json", "Something follows the JSON value; send one object.")
	}
	return nil
}

func parseFault(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return syntax(syntactic)
	}
	return one("", "bad_json", "The body is not valid JSON.")
}

// members reads the object that d is at, which stands at a pointer. Values are
// parts of text, not copies.
func members(d *jsontext.Decoder, text []byte, at string) (*Object, error) {
	if _, err := d.ReadToken(); err != nil { // {
		return nil, parseFault(err)
	}
	o := &Object{members: make([]member, 0, 16)}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, parseFault(err)
		}
		m := member{name: name.String()}
		if m.value, err = next(d, text); err != nil {
			return nil, parseFault(err)
		}
		if other, twice := o.alike(m.name); twice {
			return nil, one(at+"/"+escape(m.name), "ambiguous_json", fmt.Sprintf("%q and %q differ in case only; send one of them.", other, m.name))
		}
		if o.members = append(o.members, m); len(o.members) > maxMembers {
			return nil, one(at, "too_many", "The object has more than 1,000 members.")
		}
	}
	if _, err := d.ReadToken(); err != nil { // }
		return nil, parseFault(err)
	}
	return o, nil
}

// alike is a member whose name differs from this one in case only.
func (o *Object) alike(name string) (other string, found bool) {
	for i := range o.members {
		if strings.EqualFold(o.members[i].name, name) {
			return o.members[i].name, true
		}
	}
	return "", false
}

// next skips the decoder over a value and returns its text.
func next(d *jsontext.Decoder, text []byte) (jsontext.Value, error) {
	d.PeekKind() // over the colon and white space before it
	from := d.InputOffset()
	if err := d.SkipValue(); err != nil {
		return nil, err
	}
	return bytes.TrimLeft(text[from:d.InputOffset()], " \t\r\n:"), nil
}

// escape writes a name as a segment of a JSON pointer.
func escape(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

// Get is a member's exact text, or nil.
func (o *Object) Get(name string) jsontext.Value {
	for _, m := range o.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// Names lists the members in their order.
func (o *Object) Names() []string {
	out := make([]string, len(o.members))
	for i, m := range o.members {
		out[i] = m.name
	}
	return out
}

// Set replaces a member in its place, or adds it at the end.
func (o *Object) Set(name string, value jsontext.Value) {
	for i, m := range o.members {
		if m.name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

// Drop removes a member, where it is there.
func (o *Object) Drop(name string) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.name == name })
}

// Object reads a member that is an object itself; nil where it is absent or
// null.
func (o *Object) Object(name string) (*Object, error) {
	v := o.Get(name)
	if v == nil || v.Kind() == 'n' {
		return nil, nil //nolint:nilnil // absent is no error
	}
	if v.Kind() != '{' {
		return nil, one("/"+escape(name), "wrong_type", "This must be an object.")
	}
	d, done := Decoder(v)
	defer done()
	return members(d, v, "/"+escape(name))
}

// Bytes writes the object as one line of JSON.
func (o *Object) Bytes() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := jsontext.AppendQuote(nil, m.name)
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Field makes the fault of one member.
func Field(pointer, code, message string) *fault.Error {
	f := fault.InvalidFields(fault.Field{Pointer: pointer, Code: code, Message: message})
	f.Code = code
	return f
}
