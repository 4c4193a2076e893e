package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestAnUnknownAddressIsAPageAndThoseOfTheAPIsAreNot(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	for _, path := range []string{"/nothing", "/docs/", "/api-docs", "/v1x", "/<script>alert(1)</script>"} {
		a := s.get(path, "")
		if a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
		a.has(t, "There is no page here.", a.header.Get("X-Request-Id"))
		a.hasNot(t, "<script>alert")
	}
	for _, path := range []string{"/api", "/api/v1/nothing", "/v1", "/v1/nothing"} {
		if a := s.get(path, ""); a.status != http.StatusNotFound || strings.Contains(a.body, "<html") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := s.do(http.MethodDelete, "/docs", nil, map[string]string{"Sec-Fetch-Site": "same-origin"}); a.status != http.StatusMethodNotAllowed || !strings.Contains(a.body, "does not do that") {
		t.Errorf("DELETE /docs: %d", a.status)
	}
}

// What is around a page stays around its error, with what the person's role may
// reach, and the id to ask about.
func TestAnErrorStandsInTheFrameOfWhoIsSignedIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("viewer")
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"/nothing":                       {404, "There is no page here."},
		"/plans/pln_nothing":             {404, "There is no page here."},
		"/customers":                     {403, "Your role here is viewer"},
		"/usage?customer=cus_nothing":    {403, "Your role here is viewer"},
		"/requests/req_0000000000000000": {404, "There is no such request."},
	} {
		a := s.get(path, session)
		if a.status != want.status {
			t.Errorf("%s: %d", path, a.status)
		}
		a.has(t, want.says, a.header.Get("X-Request-Id"), `class="rail"`, "Sign out", `href="/usage"`, `data-copy="failed-request"`)
		a.hasNot(t, `href="/customers"`)
		s.get(path, "").hasNot(t, `class="rail"`)
	}
	s.super(`alter table plans rename to plans_gone`)
	a := s.get("/plans?after=x", session)
	if a.status != http.StatusInternalServerError {
		t.Fatalf("%d", a.status)
	}
	a.has(t, "it is our fault", `class="rail"`, `href="/plans?after=x"`, "Try again", "made whole or not at all", a.header.Get("X-Request-Id"))
}

// A tile that fails as a whole stays a tile, so that it comes back by itself.
func TestATileThatFailsStaysATile(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	s.db.App.Close()
	header := s.with(session)
	header["HX-Request"], header["HX-Target"] = "true", "tile-caps"
	a := s.do(http.MethodGet, "/tiles/caps?x=1", nil, header)
	if a.status < http.StatusInternalServerError {
		t.Fatalf("%d", a.status)
	}
	a.has(t, `<div class="tile" id="tile-caps" hx-get="/tiles/caps?x=1"`, "Try again", a.header.Get("X-Request-Id"))
	a.hasNot(t, "<html")
	header["HX-Target"] = "asked"
	s.do(http.MethodGet, "/keys/x/revoke", nil, header).hasNot(t, "<html", "hx-get")
}

func TestWithoutADatabasePagesSayThatAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	s.db.App.Close()
	a := s.get("/", session)
	if a.status < http.StatusInternalServerError || len(a.header.Values("Set-Cookie")) > 0 {
		t.Errorf("%d %v", a.status, a.header)
	}
	a.has(t, a.header.Get("X-Request-Id"))
	a.hasNot(t, "pool", "postgres", "sql", "select")
	for _, path := range []string{"/docs", "/docs/errors", "/sign-in"} {
		if a := s.get(path, session); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

func TestPagesAreNotMadeFromASettingThatCannotWork(t *testing.T) {
	t.Parallel()
	for _, d := range []Deps{
		{PublicURL: "", OpenAPI: openAPI(t)},
		{PublicURL: "weir.example", OpenAPI: openAPI(t)},
		{PublicURL: "ftp://weir.example", OpenAPI: openAPI(t)},
		{PublicURL: local},
		{PublicURL: local, OpenAPI: []byte("{")},
	} {
		if _, err := New(d); err == nil {
			t.Errorf("%q with %d bytes of OpenAPI", d.PublicURL, len(d.OpenAPI))
		}
	}
}
