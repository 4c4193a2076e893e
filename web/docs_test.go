package web

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/web/reference"
)

func TestTheReferenceShowsEveryPathOfTheDocument(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Summary string `json:"summary"`
		} `json:"paths"`
	}
	must(t, json.Unmarshal(openAPI(t), &doc))
	page := newSite(t, "https://weir.example").get("/docs", "")
	text := strings.NewReplacer("&#39;", "'", "&#34;", `"`, "&amp;", "&").Replace(page.body)
	if len(doc.Paths) < 20 {
		t.Fatalf("only %d paths", len(doc.Paths))
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			anchor := strings.Trim(strings.Map(func(r rune) rune {
				if strings.ContainsRune("/{}_:", r) {
					return '-'
				}
				return r
			}, strings.ToLower(method)+path), "-")
			for strings.Contains(anchor, "--") {
				anchor = strings.ReplaceAll(anchor, "--", "-")
			}
			for _, want := range []string{`id="` + anchor + `"`, `href="#` + anchor + `"`, ">" + path + "<", op.Summary, "https://weir.example" + path} {
				if !strings.Contains(text, want) {
					t.Errorf("%s %s: the page does not hold %q", method, path, want)
				}
			}
		}
	}
	page.has(t, "One of", "required", "Scope: <code>plans:write</code>", "limits[].dimension")
}

func TestRequestsOfTheReferenceAreOneWordEachToAShell(t *testing.T) {
	t.Parallel()
	op := reference.Operation{Method: "POST", Path: "/api/v1/customers/{id}", Example: `{"name": "Ada's $HOME"}`}
	want := "curl 'https://weir.example/api/v1/customers/{id}' \\\n  -H \"Authorization: Bearer $WEIR_KEY\" \\\n" +
		"  -H \"Content-Type: application/json\" \\\n  -d '{\"name\": \"Ada'\\''s $HOME\"}'"
	if got := curl("https://weir.example", op); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := curl("https://weir.example", reference.Operation{Method: "DELETE", Path: "/a"}); !strings.HasPrefix(got, "curl -X DELETE https://weir.example/a ") {
		t.Errorf("got %s", got)
	}
}

func TestEveryErrorCodeOfTheSourceIsExplained(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, g := range codeGroups {
		for _, c := range g.Codes {
			if known[c.Name] {
				t.Errorf("%s stands twice", c.Name)
			}
			known[c.Name] = true
		}
	}
	found := codesOf(t, "../internal", ".")
	if len(found) < 60 {
		t.Fatalf("only %d codes were found in the source", len(found))
	}
	for c, where := range found {
		if !known[c] {
			t.Errorf("%s of %s has no row in codes.go", c, where)
		}
	}
	page := newSite(t, local).get("/docs/errors", "")
	for c := range known {
		page.has(t, `id="`+c+`"`, `href="#`+c+`"`)
	}
}

// codesOf finds the literal codes of faults and fields: arguments of fault.New,
// values of a member Code, and what the collectors of wrong members are given.
func codesOf(t *testing.T, roots ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, root := range roots {
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_templ.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if c := codeIn(n); c != "" {
					found[c] = path
				}
				return true
			})
			return nil
		}))
	}
	return found
}

func codeIn(n ast.Node) string {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
			return literal(n.Value)
		}
	case *ast.CallExpr:
		if slices.Contains([]string{"fault.New", "fault.Newf", "c.add", "at", "one"}, called(n.Fun)) && len(n.Args) > 2 {
			return literal(n.Args[1])
		}
	}
	return ""
}

func called(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

func literal(e ast.Expr) string {
	if b, ok := e.(*ast.BasicLit); ok && b.Kind == token.STRING {
		s, _ := strconv.Unquote(b.Value)
		return s
	}
	return ""
}
