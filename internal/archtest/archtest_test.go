package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "weir"
	root   = "../.."
)

type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

// list asks go for the packages of the module, as they are built.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(out); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

// place is the path inside the module, and whether it is in the module at all.
func place(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, module+"/")
}

func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func belowAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return below(path, f) })
}

// row is the longest folder of the table that holds path.
func row(path string) (string, bool) {
	for p := path; p != "."; p = filepath.Dir(p) {
		if _, ok := mayImport[p]; ok {
			return p, true
		}
	}
	return "", false
}

func allowed(row, target string) bool {
	list := mayImport[row]
	return slices.Contains(leaves, target) || below(target, row) || slices.Contains(list, anything) || slices.Contains(list, target)
}

func TestPackagesImportOnlyWhatThePlanAllows(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		from, inside := place(p.ImportPath)
		if !inside {
			continue
		}
		r, ok := row(from)
		if !ok {
			t.Errorf("%s has no place in the plan: give it a row", from)
			continue
		}
		for _, imported := range p.Imports {
			if to, ours := place(imported); ours && !allowed(r, to) {
				t.Errorf("%s must not import %s", from, to)
			}
		}
	}
}

func TestLibrariesStayBehindTheirWalls(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		from, _ := place(p.ImportPath)
		for library, folders := range walls {
			for _, imported := range p.Imports {
				if below(imported, library) && !belowAny(from, folders) {
					t.Errorf("%s must not import %s", from, imported)
				}
			}
		}
	}
}

func TestProductionBinariesLinkNoServerAndNoTestSupport(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		from, _ := place(p.ImportPath)
		if !slices.Contains(production, from) {
			continue
		}
		for _, dep := range p.Deps {
			if belowAny(dep, notLinked) && !slices.Contains(linkedAnyway, dep) {
				t.Errorf("%s links %s", from, dep)
			}
		}
	}
}

// Reading every file here, and not in go list alone, also makes the result of
// this package's tests depend on them: a cached pass is never a stale one.
func TestCallsStayBehindTheirWalls(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, f *ast.File, at func(token.Pos) token.Position) {
		for _, wall := range callWalls {
			name, imported := localName(f, wall.pkg)
			if !imported || belowAny(path, wall.in) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && isPackage(sel.X, name) && slices.Contains(wall.names, sel.Sel.Name) {
					t.Errorf("%s:%d uses %s.%s: %s", path, at(n.Pos()).Line, wall.pkg, sel.Sel.Name, wall.why)
				}
				return true
			})
		}
	})
}

// Secret.Reveal is told by its name: no other method may be called so.
func TestSecretsAreRevealedInOnePlace(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, f *ast.File, at func(token.Pos) token.Position) {
		if belowAny(path, revealing) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Reveal" {
				t.Errorf("%s:%d reveals a secret", path, at(n.Pos()).Line)
			}
			return true
		})
	})
}

func eachFile(t *testing.T, visit func(path string, f *ast.File, at func(token.Pos) token.Position)) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(path)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		visit(inside, f, files.Position)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// skip leaves out other modules, binaries and hidden folders.
func skip(path string) error {
	if path == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	if err == nil || path == filepath.Join(root, "bin") || strings.HasPrefix(filepath.Base(path), ".") {
		return filepath.SkipDir
	}
	return nil
}

func localName(f *ast.File, importPath string) (string, bool) {
	for _, i := range f.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err != nil || path != importPath {
			continue
		}
		if i.Name != nil {
			return i.Name.Name, true
		}
		return filepath.Base(importPath), true
	}
	return "", false
}

func isPackage(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}
