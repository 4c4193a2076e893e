package reference

import (
	"encoding/json"
	"slices"
	"strings"
)

// document is what is read of OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1).
type document struct {
	Info struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	} `json:"info"`
	Paths      map[string]pathItem `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type pathItem struct {
	Get        *operation  `json:"get"`
	Post       *operation  `json:"post"`
	Put        *operation  `json:"put"`
	Patch      *operation  `json:"patch"`
	Delete     *operation  `json:"delete"`
	Parameters []parameter `json:"parameters"`
}

func (p pathItem) operations() map[string]operation {
	out := map[string]operation{}
	for i, op := range []*operation{p.Get, p.Post, p.Put, p.Patch, p.Delete} {
		if op != nil {
			out[methods[i]] = *op
		}
	}
	return out
}

type operation struct {
	Tags        []string    `json:"tags"`
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Parameters  []parameter `json:"parameters"`
	RequestBody *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string           `json:"description"`
		Content     map[string]media `json:"content"`
	} `json:"responses"`
}

// group is the operation's first tag, else the path's first word.
func (o operation) group(path string) string {
	if len(o.Tags) > 0 {
		return o.Tags[0]
	}
	return strings.SplitN(strings.TrimPrefix(path, "/"), "/", 2)[0]
}

type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

type media struct {
	Schema  schema          `json:"schema"`
	Example json.RawMessage `json:"example"`
}

// schema is the part of JSON Schema 2020-12 that our documents use.
type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 oneOrMany         `json:"type"`
	Format               string            `json:"format"`
	Description          string            `json:"description"`
	Minimum              *json.Number      `json:"minimum"`
	Maximum              *json.Number      `json:"maximum"`
	Enum                 []json.RawMessage `json:"enum"`
	Default              json.RawMessage   `json:"default"`
	Examples             []json.RawMessage `json:"examples"`
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	Items                *schema           `json:"items"`
	AnyOf                []schema          `json:"anyOf"`
	OneOf                []schema          `json:"oneOf"`
	AllOf                []schema          `json:"allOf"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
}

// oneOrMany reads "string" and ["string", "null"].
type oneOrMany []string

// UnmarshalJSON takes a string or a list of strings.
func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// resolve follows a reference, and takes the only alternative to null. What
// stands beside a reference counts more than what it leads to.
func (d *document) resolve(s schema) schema {
	for range 8 { // a chain of references that is longer is a circle
		alternatives := slices.DeleteFunc(slices.Concat(s.AnyOf, s.OneOf, s.AllOf), func(a schema) bool { return slices.Equal(a.Type, oneOrMany{"null"}) })
		about := s.Description
		switch {
		case s.Ref != "":
			s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(alternatives) == 1 && len(s.Properties) == 0:
			s = alternatives[0]
		default:
			return s
		}
		if about != "" {
			s.Description = about
		}
	}
	return s
}
