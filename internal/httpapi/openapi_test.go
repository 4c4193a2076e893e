package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"github.com/pb33f/libopenapi"
)

func TestTheDocumentDescribesExactlyTheRoutes(t *testing.T) {
	s, err := New(Deps{})
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	s.Mount(e)
	var routes, described []string
	for _, r := range e.Routes() {
		if strings.HasPrefix(r.Path, "/api/v1/") || strings.HasPrefix(r.Path, "/v1/") {
			routes = append(routes, r.Method+" "+pathParam.ReplaceAllString(strings.ReplaceAll(r.Path, `\`, ""), "/{$1}"))
		}
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(s.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(routes)
	slices.Sort(described)
	if diff := cmp.Diff(routes, described); diff != "" {
		t.Fatal(diff)
	}
}

func TestTheDocumentIsValidOpenAPI(t *testing.T) {
	s, err := New(Deps{})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(s.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	if model.Model.Version != "3.1.0" || model.Model.Paths.PathItems.Len() == 0 {
		t.Fatalf("version %s, %d paths", model.Model.Version, model.Model.Paths.PathItems.Len())
	}
}

func TestEveryRouteSaysWhoMayCallIt(t *testing.T) {
	for _, p := range endpoints() {
		if p.scope == "" && p.path != "/api/v1/me" {
			t.Errorf("%s %s has no scope", p.method, p.path)
		}
	}
}

func TestARequiredMemberIsNeverDescribedAsNullable(t *testing.T) {
	s, err := New(Deps{})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Required   []string                   `json:"required"`
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(s.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	for name, schema := range doc.Components.Schemas {
		if !strings.HasSuffix(name, "Body") {
			continue
		}
		for _, member := range schema.Required {
			var p struct {
				Type any `json:"type"`
			}
			if err := json.Unmarshal(schema.Properties[member], &p); err != nil {
				t.Fatal(err)
			}
			if list, ok := p.Type.([]any); ok && slices.Contains(list, any("null")) {
				t.Errorf("%s.%s is required, and may be null", name, member)
			}
		}
	}
}
