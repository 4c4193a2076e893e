package static

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func ask(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	if !Serve(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil)) {
		w.Code = 404
	}
	return w
}

func TestFilesAreKeptForEverUnderTheirHashOnly(t *testing.T) {
	t.Parallel()
	for name, media := range map[string]string{
		"weir.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "theme.js": "text/javascript; charset=utf-8",
		"icons/mark.svg": "image/svg+xml", "fonts/geist-latin-wght-normal.woff2": "font/woff2", "fonts/LICENSE-geist.txt": "text/plain; charset=utf-8",
	} {
		w := ask(t, URL(name))
		if w.Code != 200 || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || w.Header().Get("Content-Type") != media || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		if w := ask(t, Prefix+"0123456789abcdef/"+name); w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s of another release: %d %v", name, w.Code, w.Header())
		}
	}
	for _, path := range []string{Prefix, Prefix + "x", Prefix + "x/", URL("nothing"), URL("../static.go"), URL("css/base.css"), URL("static.go"), URL("fonts")} {
		if w := ask(t, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestStylesNameOnlyWhatIsThereAndNothingElsewhere(t *testing.T) {
	t.Parallel()
	css := ask(t, URL("weir.css")).Body.String()
	found := regexp.MustCompile(`url\(([^)]*)\)`).FindAllStringSubmatch(css, -1)
	if len(found) < 3 {
		t.Fatalf("%d addresses", len(found))
	}
	for _, m := range found {
		if w := ask(t, URL(m[1])); w.Code != 200 {
			t.Errorf("%s: %d", m[1], w.Code)
		}
	}
	for _, m := range regexp.MustCompile(`var\((--[a-z0-9-]+)\)`).FindAllStringSubmatch(css, -1) {
		if !strings.Contains(css, m[1]+":") {
			t.Errorf("%s is used and never set", m[1])
		}
	}
}

func TestEveryFontComesWithItsLicence(t *testing.T) {
	t.Parallel()
	for name := range load().files {
		family, ok := strings.CutSuffix(strings.TrimPrefix(name, "fonts/"), "-latin-wght-normal.woff2")
		if ok && ask(t, URL("fonts/LICENSE-"+family+".txt")).Code != 200 {
			t.Errorf("%s has no licence beside it", name)
		}
	}
}
