// Package jsonbody reads JSON that comes from outside, strictly.
//
// The standard decoder takes the last of duplicate members, matches names in
// any case and ignores what follows the value; a request could then show one
// model to Weir and another to the provider. Here duplicates, other cases,
// unknown members, trailing data and invalid UTF-8 are errors that name the
// member (RFC 6901) and the reason in plain words.
package jsonbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/fault"
)

// Read takes a body of at most limit bytes. A larger one is TooLarge.
func Read(r io.Reader, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	b := buf.Bytes()
	if most := (*http.MaxBytesError)(nil); errors.As(err, &most) {
		return nil, tooLarge(most.Limit)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "body_unreadable", "The request's body ended early or could not be read.").Because(err)
	}
	if int64(len(b)) > limit {
		return nil, tooLarge(limit)
	}
	return b, nil
}

func tooLarge(limit int64) error {
	return fault.Newf(fault.TooLarge, "body_too_large", "The body is larger than %d bytes, the most that is read here.", limit)
}

// Decode reads a JSON object into dst, a pointer to a struct. Every error is
// Invalid and names the member.
func Decode(body []byte, dst any) error {
	if len(body) == 0 {
		return one("", "required", "A JSON body is needed.")
	}
	if depth(body) > maxDepth {
		return one("", "too_deep", "The JSON is nested more than 64 levels deep.")
	}
	if jsontext.Value(body).Kind() != '{' {
		if _, err := ParseObject(body); err != nil {
			return err
		}
	}
	err := json.Unmarshal(body, dst, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntactic):
		return syntax(syntactic)
	case errors.As(err, &semantic):
		return meaning(semantic)
	}
	return one("", "bad_json", "The body is not valid JSON.")
}

func one(pointer, code, message string) error {
	f := fault.InvalidFields(fault.Field{Pointer: pointer, Code: code, Message: message})
	f.Code = code
	return f
}

func syntax(e *jsontext.SyntacticError) error {
	if errors.Is(e, jsontext.ErrDuplicateName) {
		return one(string(e.JSONPointer), "ambiguous_json", "This member stands twice in the same object.")
	}
	return one("", "bad_json", fmt.Sprintf("The body is not valid JSON: %s at byte %d.", strings.TrimPrefix(e.Err.Error(), "jsontext: "), e.ByteOffset))
}

func meaning(e *json.SemanticError) error {
	pointer := string(e.JSONPointer)
	if errors.Is(e, json.ErrUnknownName) {
		return one(pointer, "unknown_field", "There is no such member; check its spelling and its case.")
	}
	want, article := wanted(e.GoType), "This"
	if pointer == "" {
		article = "The body"
	}
	if e.JSONKind == '0' && isInteger(e.GoType) {
		return one(pointer, "out_of_range", article+" must be "+want+", not "+clip(string(e.JSONValue))+".")
	}
	return one(pointer, "wrong_type", article+" must be "+want+".")
}

func wanted(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.String() == "time.Time":
		return "a time such as \"2026-12-01T00:00:00Z\""
	case isInteger(t):
		return "a whole number between −9,223,372,036,854,775,808 and 9,223,372,036,854,775,807"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float64, reflect.Float32:
		return "a number"
	}
	return "an object"
}

func isInteger(t reflect.Type) bool {
	if t == nil {
		return false
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

const maxDepth = 64

// depth is how deep brackets nest, without parsing: strings are skipped.
func depth(b []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += quoted(b[i:])
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// quoted is where the string ends that b begins with: at its last quote, or with b.
func quoted(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}
