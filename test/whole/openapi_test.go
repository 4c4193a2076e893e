package whole

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"weir/test/stack"
)

// spec is what of /openapi.json the tests are generated from.
type spec struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Parameters []struct {
		Name string `json:"name"`
		In   string `json:"in"`
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]struct {
			Schema  *schema         `json:"schema"`
			Example json.RawMessage `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
}

type schema struct {
	Ref        string             `json:"$ref"`
	Type       json.RawMessage    `json:"type"` // a name, or a list of names
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Additional *schema            `json:"additionalProperties"`
	Examples   []any              `json:"examples"`
	Minimum    *float64           `json:"minimum"`
}

func readSpec(t *testing.T) spec {
	t.Helper()
	a := weir.Want(t, 200, "GET", "/openapi.json", "", nil)
	var s spec
	if err := json.Unmarshal(a.Body, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Paths) < 10 {
		t.Fatalf("only %d paths are described", len(s.Paths))
	}
	return s
}

// body is the schema and the example of an operation's JSON body; nil for none.
func (o operation) body() (*schema, json.RawMessage) {
	c := o.RequestBody.Content["application/json"]
	return c.Schema, c.Example
}

// at follows a reference.
func (s spec) at(x *schema) *schema {
	for x != nil && x.Ref != "" {
		x = s.Components.Schemas[strings.TrimPrefix(x.Ref, "#/components/schemas/")]
	}
	return x
}

// is tells whether values of the schema are of a JSON type; null aside, they
// are of one.
func (x *schema) is(name string) bool {
	var one string
	var many []string
	if json.Unmarshal(x.Type, &one) == nil {
		return one == name
	}
	_ = json.Unmarshal(x.Type, &many) // one of the two
	return slices.Contains(many, name)
}

// fill puts a world's ids into an example body or a path.
func fill(text string, w stack.World) string {
	return strings.NewReplacer("{customer}", w.Customer, "{plan}", w.Plan).Replace(text)
}

// eachRoute calls f for every route of the document, in a stable order.
func (s spec) eachRoute(f func(method, path string, o operation)) {
	var paths []string
	for p := range s.Paths {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		for _, m := range []string{"get", "post", "put", "patch", "delete"} {
			if o, ok := s.Paths[p][m]; ok {
				f(strings.ToUpper(m), p, o)
			}
		}
	}
}
