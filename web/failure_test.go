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
