// Package static holds what browsers keep: styles, scripts, fonts, icons. All
// of it is embedded and served under one hash of its content, so that it may be
// kept for ever.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed css fonts icons vendor *.js
var files embed.FS

// Prefix is where the files are served.
const Prefix = "/static/"

// sheets are the parts of weir.css, in the order in which they count.
var sheets = []string{"tokens", "base", "layout", "parts", "forms", "dialogs", "charts", "gauge", "pages", "work", "setup", "reading", "limits", "branded", "sheet", "print"}

// store is every file by its path below the hash. It never changes.
type store struct {
	hash  string
	files map[string][]byte
}

var load = sync.OnceValue(func() store {
	s := store{files: map[string][]byte{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if path.Dir(name) != "css" {
			s.files[name] = content
		}
		sum.Write([]byte(name))
		sum.Write(content)
		return err
	})
	if err != nil {
		panic("static: " + err.Error()) // what is embedded can be read
	}
	for _, name := range sheets {
		content, err := files.ReadFile("css/" + name + ".css")
		if err != nil {
			panic("static: " + err.Error())
		}
		s.files["weir.css"] = append(s.files["weir.css"], content...)
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))[:16]
	return s
})

// URL is the address of a file, such as "weir.css".
func URL(name string) string { return Prefix + load().hash + "/" + name }

// Serve answers a request below Prefix. The present content is kept for ever;
// a page of another release, met while replicas change, gets the present file
// too, to be asked for again.
func Serve(w http.ResponseWriter, r *http.Request) bool {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
	s := load()
	content, ok := s.files[name]
	if !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", typeOf(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	if hash == s.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(content)
	return true
}

// typeOf does not ask the system's table, which differs between machines.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
