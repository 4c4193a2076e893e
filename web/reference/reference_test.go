package reference

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `{
  "info": {"title": "T", "description": "About"},
  "paths": {
    "/api/v1/things/{id}": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
      "delete": {"tags": ["things"], "summary": "Remove", "responses": {"204": {"description": "No Content"}}},
      "get": {"tags": ["things"], "summary": "Read", "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}
    },
    "/api/v1/things": {
      "post": {
        "tags": ["things"], "summary": "Add",
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}, "example": {"name":"a,","kind":"x: y"}}}},
        "responses": {}
      }
    }
  },
  "components": {"schemas": {
    "Thing": {"type": "object", "required": ["name"], "properties": {
      "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
      "name": {"type": "string", "description": "What it is called", "examples": ["x"]},
      "parts": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Part"}, "description": "Its parts"},
      "inner": {"$ref": "#/components/schemas/Thing", "description": "One inside"}
    }},
    "Part": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0, "maximum": 9}, "at": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]}}}
  }}
}`

func parsed(t *testing.T) Reference {
	t.Helper()
	ref, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestOperationsStandInTheirGroupsInOrder(t *testing.T) {
	t.Parallel()
	var got []string
	for _, g := range parsed(t).Groups {
		for _, op := range g.Operations {
			got = append(got, g.Name+" "+op.Method+" "+op.Path+" #"+op.Slug)
		}
	}
	want := []string{
		"things POST /api/v1/things #post-api-v1-things",
		"things GET /api/v1/things/{id} #get-api-v1-things-id",
		"things DELETE /api/v1/things/{id} #delete-api-v1-things-id",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMembersAreSpreadOutWithTheirWholePath(t *testing.T) {
	t.Parallel()
	body := parsed(t).Groups[0].Operations[0].Body
	want := []Member{
		{Name: "name", Type: "string", About: "What it is called", Example: "x", Required: true},
		{Name: "inner", Type: "object", About: "One inside"},
		{Name: "inner.name", Type: "string", About: "What it is called", Example: "x", Required: true},
	}
	if diff := cmp.Diff(want, body[:3]); diff != "" {
		t.Error(diff)
	}
	byName := map[string]Member{}
	for _, m := range body {
		byName[m.Name] = m
	}
	for _, want := range []Member{
		{Name: "kind", Type: "string", Enum: []string{"a", "b"}, Default: "a"},
		{Name: "parts", Type: "list of object or null", About: "Its parts"},
		{Name: "parts[].size", Type: "integer", Range: "0 to 9"},
		{Name: "parts[].at", Type: "time"},
	} {
		if diff := cmp.Diff(want, byName[want.Name]); diff != "" {
			t.Errorf("%s: %s", want.Name, diff)
		}
	}
}

func TestASchemaThatHoldsItselfEnds(t *testing.T) {
	t.Parallel()
	for _, m := range parsed(t).Groups[0].Operations[0].Body {
		if n := strings.Count(m.Name, "inner"); n > depth {
			t.Errorf("%d levels: %s", n, m.Name)
		}
	}
	loop := `{"paths": {"/a": {"get": {"parameters": [{"name": "p", "schema": {"$ref": "#/components/schemas/A"}}]}}},
		"components": {"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}}}`
	if _, err := Parse([]byte(loop)); err != nil {
		t.Error(err)
	}
}

func TestParametersOfAPathBelongToItsOperations(t *testing.T) {
	t.Parallel()
	want := []Member{{Name: "id", In: "path", Type: "string", Required: true}}
	if diff := cmp.Diff(want, parsed(t).Groups[0].Operations[1].Parameters); diff != "" {
		t.Error(diff)
	}
}

func TestAShortExampleStaysOnOneLineUnchanged(t *testing.T) {
	t.Parallel()
	if got := parsed(t).Groups[0].Operations[0].Example; got != `{"name": "a,", "kind": "x: y"}` {
		t.Errorf("got %s", got)
	}
	if got := indented([]byte(`{"name":"` + strings.Repeat("x", oneLine) + `"}`)); !strings.Contains(got, "\n  \"name\": ") {
		t.Errorf("got %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"components": {"schemas": {"A": {"items": {"$ref": "#/components/schemas/A"}}}}, "paths": {"/a": {"post": {"requestBody": {"content": {"a": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = Parse(raw) })
}
