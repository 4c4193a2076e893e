package web

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func (s site) endSessions() {
	s.t.Helper()
	s.super(`update sessions set ended_at = now()`)
}

func TestAFormThatComesAfterItsSessionIsKeptAndCanBeSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	s.endSessions()
	before := s.fingerprint()
	typed := url.Values{"name": {`Kestrel "&" <Co>`}, "email": {"ops@kestrel.example"}, "external_id": {"crm-17"}, "secret": {"sk-very-secret"}}
	a := s.post("/customers", session, typed)
	if a.status != http.StatusUnauthorized || s.fingerprint() != before {
		t.Fatalf("%d, something changed: %t", a.status, s.fingerprint() != before)
	}
	a.has(t, "Nothing was changed", `action="/customers"`, "A secret or password that you typed is not kept here")
	a.hasNot(t, "sk-very-secret", "<Co>")
	again := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
		again.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	session = s.signInAgain("ann@acme.example")
	sent := s.post("/customers", session, again)
	if sent.status != http.StatusSeeOther {
		t.Fatalf("%d %s", sent.status, sent.body)
	}
	s.get(pathOf(t, sent.header.Get("Location")), session).has(t, "Kestrel &#34;&amp;&#34; &lt;Co&gt;", "ops@kestrel.example", "crm-17")
}

// signInAgain opens another session of a member.
func (s site) signInAgain(email string) string {
	s.t.Helper()
	link, _, err := s.tenants.SignInLink(s.t.Context(), email, "")
	must(s.t, err)
	return s.signIn(link)
}

// A part of a page never holds the page of sign-in; a form that is being filled
// in stays where it is.
func TestAPartOfAPageAfterItsSessionLeadsToSignInAndBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	s.endSessions()
	header := func(target string) map[string]string {
		h := s.with(session)
		h["HX-Request"], h["HX-Target"], h["HX-Current-URL"], h["Sec-Fetch-Site"] = "true", target, local+"/usage?range=7d", "same-origin"
		return h
	}
	a := s.do(http.MethodGet, "/tiles/today", nil, header("tile-today"))
	if a.status != http.StatusUnauthorized || a.body != "" || a.header.Get("HX-Redirect") != "/sign-in?ended&to=%2Fusage%3Frange%3D7d" {
		t.Errorf("a tile: %d %v %s", a.status, a.header, a.body)
	}
	for target, method := range map[string]string{"said": http.MethodPost, paletteTarget: http.MethodGet} {
		path := map[string]string{"said": "/plans/preview", paletteTarget: "/search"}[target]
		a := s.do(method, path, url.Values{"name": {"x"}}, header(target))
		if a.status != http.StatusUnauthorized || a.body != "" || a.header.Get("HX-Redirect") != "" {
			t.Errorf("%s: %d %v %s", target, a.status, a.header, a.body)
		}
	}
}

func TestSignInLeadsBackToThePageAndNowhereElse(t *testing.T) {
	t.Parallel()
	s := newSite(t, localSite)
	s.post("/sign-up", "", signUpForm())
	_, token := s.mailed(1)
	session := s.post("/confirm", "", url.Values{"token": {token}}).session(s)
	s.endSessions()
	to := s.get("/usage?range=7d", session).header.Get("Location")
	if to != "/sign-in?ended&to=%2Fusage%3Frange%3D7d" {
		t.Errorf("%s", to)
	}
	s.get(to, "").has(t, `name="to" value="/usage?range=7d"`, "Your session has ended")
	for typed, want := range map[string]string{
		"/usage?range=7d": "/usage?range=7d", "": "/", "//evil.example": "/", `/\evil.example`: "/", "https://evil.example/": "/", "javascript:alert(1)": "/",
		"usage": "/", "/sign-out": "/", "/" + strings.Repeat("x", maxReturn): "/", "/\r\nSet-Cookie: x=y": "/", "\t//evil.example": "/",
	} {
		a := s.post("/sign-in", "", url.Values{"email": {"ann@acme.example"}, "password": {"a good long phrase"}, "to": {typed}})
		if a.status != http.StatusSeeOther || a.header.Get("Location") != want {
			t.Errorf("%q: %d %q", typed, a.status, a.header.Get("Location"))
		}
		s.get("/sign-in?to="+url.QueryEscape(typed), "").hasNot(t, `value="//`, "evil.example")
	}
}
