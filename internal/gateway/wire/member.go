package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/fault"
	"weir/internal/jsonbody"
)

// decode reads a member of a request that stands at a pointer; nothing where it
// is absent.
func decode(v jsontext.Value, at string, dst any) error {
	if !present(v) {
		return nil
	}
	err := json.Unmarshal(v, dst, lenient)
	if err == nil {
		return nil
	}
	var wrong *json.SemanticError
	if errors.As(err, &wrong) {
		at += string(wrong.JSONPointer)
	}
	return jsonbody.Field(at, "wrong_type", "This member has another type than the reference of the API says.")
}

// encode writes what this package has built.
func encode(v any) (jsontext.Value, error) {
	b, err := json.Marshal(v, lenient)
	if err != nil {
		return nil, fault.Of(err)
	}
	return b, nil
}

// cannotSay is the fault of a member that the provider's form has no word for.
func cannotSay(at, name string) error {
	return jsonbody.Field(at, "unsupported_parameter", "The provider that serves this model speaks another API, which cannot say "+name+". Leave it out, or ask for a model of a provider that can.")
}

// foreign is a member that cannot be said in the other form, but for values
// that say nothing.
type foreign struct {
	name  string
	empty []string
}

// refuseForeign finds the first member of a table that says something.
func refuseForeign(body *jsonbody.Object, table []foreign) error {
	for _, f := range table {
		v := body.Get(f.name)
		if present(v) && !slices.Contains(f.empty, compacted(v)) {
			return cannotSay("/"+f.name, f.name)
		}
	}
	return nil
}

func compacted(v jsontext.Value) string {
	c := v.Clone()
	if c.Compact(lenientText...) != nil {
		return string(v)
	}
	return string(c)
}

var lenientText = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// at is a pointer to a place in a list.
func at(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// object is a JSON object out of a string; what is none, or is ambiguous, stands
// in one as invalid_json, so that nothing of it is lost.
func object(arguments string) (jsontext.Value, error) {
	v := jsontext.Value(bytes.TrimSpace([]byte(arguments)))
	if len(v) == 0 {
		return jsontext.Value("{}"), nil
	}
	if v.Kind() == '{' && v.IsValid(jsontext.AllowInvalidUTF8(true)) {
		return v, nil
	}
	return encode(struct {
		Text string `json:"invalid_json"`
	}{arguments})
}

// longestUser is the longest end user that OpenAI takes; Anthropic refuses what
// looks like an address or a name.
const longestUser = 64

// opaque is an end user as both take it: one that is long, or has other signs
// than letters, digits, _ and -, as its digest, by which it still is one and
// the same.
func opaque(user string) string {
	if len(user) <= longestUser && toolID(user) == user {
		return user
	}
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// quoted is a text as a JSON string.
func quoted(s string) jsontext.Value {
	b, _ := jsontext.AppendQuote(nil, s) // what is no UTF-8 is replaced
	return b
}
