package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/web/static"
)

// taking asks as a browser that takes an encoding.
func (s site) taking(encoding, method, path, session string, form url.Values) answer {
	s.t.Helper()
	header := s.with(session)
	header["Accept-Encoding"], header["Sec-Fetch-Site"] = encoding, "same-origin"
	return s.do(method, path, form, header)
}

func TestPagesAndStylesArePackedForWhoTakesItAndSayTheSame(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	for _, path := range []string{"/docs/errors", "/sign-in", static.URL("weir.css"), static.URL("vendor/htmx.min.js")} {
		plain := s.taking("identity", http.MethodGet, path, session, nil)
		a := s.taking("gzip", http.MethodGet, path, session, nil)
		if a.header.Get("Content-Encoding") != "gzip" || !strings.Contains(a.header.Get("Vary"), "Accept-Encoding") {
			t.Fatalf("%s: %v", path, a.header)
		}
		r, err := gzip.NewReader(strings.NewReader(a.body))
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		if string(body) != plain.body || a.header.Get("Cache-Control") != plain.header.Get("Cache-Control") || a.header.Get("Content-Type") != plain.header.Get("Content-Type") {
			t.Errorf("%s is another one: %v and %v", path, a.header, plain.header)
		}
		if plain.header.Get("Content-Encoding") != "" || s.taking("gzip;q=0", http.MethodGet, path, session, nil).header.Get("Content-Encoding") != "" {
			t.Errorf("%s is packed for who does not take it", path)
		}
	}
	for path, status := range map[string]int{static.URL("fonts/geist-latin-wght-normal.woff2"): 200, static.URL("nothing"): 404} {
		if a := s.taking("gzip", http.MethodGet, path, session, nil); a.status != status || status == 200 && a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
}

// A secret beside what was typed is not packed: its length would tell of it.
func TestNoAnswerThatHoldsASecretIsPacked(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, customer := s.addCustomer(made.Tenant.ID, "Kestrel")
	form := url.Values{"once": {s.once("/keys/new", session)}, "customer": {customer}, "name": {"production"}, "test": {"false"}}
	a := s.taking("gzip", http.MethodPost, "/keys", session, form)
	if a.status != http.StatusOK || a.header.Get("Content-Encoding") != "" {
		t.Errorf("a new key: %d %v", a.status, a.header)
	}
	a.has(t, "weir_live_")
	for _, path := range []string{"/sign-in/", "/confirm/", "/reset/"} {
		token := strings.Repeat("A", tokenLength)
		a := s.taking("gzip", http.MethodGet, path+token, "", nil)
		if a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", path, a.header)
		}
		a.has(t, token)
	}
}
