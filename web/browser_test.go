package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Rows A20 and A21: a change that another site asks for, or that comes with a
// session and from nowhere, is refused and changes nothing.
func TestOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	session := s.signIn(made.SignInToken)
	link, _, err := s.tenants.SignInLink(t.Context(), "ann@acme.example", "")
	must(t, err)
	before := s.fingerprint()
	for name, header := range map[string]map[string]string{
		"cross-site":                {"Sec-Fetch-Site": "cross-site"},
		"same-site":                 {"Sec-Fetch-Site": "same-site"},
		"another origin":            {"Origin": "https://evil.example"},
		"another port":              {"Origin": "http://127.0.0.1:1"},
		"no origin at all":          {"Origin": "null"},
		"cross-site, origin forged": {"Sec-Fetch-Site": "cross-site", "Origin": s.server.URL},
	} {
		for _, path := range []string{"/sign-out", "/sign-in"} {
			header["Cookie"] = s.cookie + "=" + session
			a := s.do(http.MethodPost, path, url.Values{"token": {link}}, header)
			if a.status != http.StatusForbidden {
				t.Errorf("%s %s: %d", name, path, a.status)
			}
			a.has(t, "Nothing was changed")
			delete(header, "Cookie")
			if a := s.do(http.MethodPost, path, url.Values{"token": {link}}, header); a.status != http.StatusForbidden {
				t.Errorf("%s %s without a session: %d", name, path, a.status)
			}
		}
	}
	for _, path := range []string{"/sign-out", "/sign-in"} {
		if a := s.do(http.MethodPost, path, url.Values{"token": {link}}, s.with(session)); a.status != http.StatusForbidden {
			t.Errorf("a session from nowhere, %s: %d", path, a.status)
		}
	}
	if s.fingerprint() != before {
		t.Error("something was changed")
	}
	own := s.with(session)
	own["Origin"] = s.server.URL
	if a := s.do(http.MethodPost, "/sign-out", url.Values{}, own); a.status != http.StatusSeeOther {
		t.Errorf("the page itself: %d", a.status)
	}
}

func TestNoGETChangesAnything(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	session := s.signIn(made.SignInToken)
	before := s.fingerprint()
	for _, path := range append(everyPage(), "/sign-out") {
		s.get(path, session)
		s.do(http.MethodHead, path, nil, s.with(session))
	}
	if s.fingerprint() != before {
		t.Error("something was changed")
	}
}

func everyPage() []string {
	return []string{"/", "/sign-in", "/sign-in?ended", "/sign-in/" + strings.Repeat("A", tokenLength), "/sign-in/short", "/docs", "/docs/errors", "/nothing", "/docs/nothing", "/static/x/nothing"}
}

var (
	scriptTag = regexp.MustCompile(`<script[^>]*>([^<]*)`)
	inline    = regexp.MustCompile(`\s(style|on[a-z]+)="`)
)

func TestEveryPageIsGuardedAndBringsNothingInline(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	pages := map[string]answer{"the refusal of another site": s.do(http.MethodPost, "/sign-out", url.Values{}, map[string]string{"Sec-Fetch-Site": "cross-site"})}
	for _, path := range everyPage() {
		pages[path] = s.get(path, session)
	}
	for name, a := range pages {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Content-Type": "text/html; charset=UTF-8",
		} {
			if got := a.header.Get(header); got != want {
				t.Errorf("%s: %s: %q", name, header, got)
			}
		}
		if got := a.header.Get("Cache-Control"); got != "no-store" && !strings.HasPrefix(name, "/docs") {
			t.Errorf("%s may be kept: %q", name, got)
		}
		for _, m := range scriptTag.FindAllStringSubmatch(a.body, -1) {
			if !strings.Contains(m[0], ` src="/static/`) || m[1] != "" {
				t.Errorf("%s: inline script %q", name, m[0])
			}
		}
		if m := inline.FindString(a.body); m != "" {
			t.Errorf("%s: inline %q", name, m)
		}
		a.has(t, `<html lang="en">`, `id="main"`, "Skip to content", "<h1")
	}
}

var idAttribute = regexp.MustCompile(` id="([^"]+)"`)

func TestNoPageHasAnIDTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	for _, path := range everyPage() {
		seen := map[string]bool{}
		for _, m := range idAttribute.FindAllStringSubmatch(s.get(path, session).body, -1) {
			if seen[m[1]] {
				t.Errorf("%s has the id %s twice", path, m[1])
			}
			seen[m[1]] = true
		}
	}
}

func TestALargeFormIsNotRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	link := s.tenant("Acme", "ann@acme.example").SignInToken
	if a := s.post("/sign-in", "", url.Values{"pad": {strings.Repeat("x", maxForm)}, "token": {link}}); a.status != http.StatusUnauthorized {
		t.Errorf("%d", a.status)
	}
	s.signIn(link)
}

func TestNoBytesInAnAddressOrAFormBreakAPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	for _, text := range []string{"%00", "a%00b", "%ff", "%25", "%zz", strings.Repeat("x", 5000)} {
		for _, path := range []string{
			"/usage?model=", "/usage?from=", "/usage?customer=", "/usage.csv?model=", "/requests?q=", "/requests?model=", "/requests?customer=", "/requests?after=",
			"/customers?q=", "/customers?after=", "/keys?after=", "/plans?after=", "/providers?after=", "/?flow=", "/setup?step=", "/search?q=", "/keys/new?customer=",
		} {
			if a := s.get(path+text, session); a.status >= http.StatusInternalServerError {
				t.Errorf("%s%.10s: %d", path, text, a.status)
			}
		}
	}
	for _, field := range []string{"email", "password", "to"} {
		form := url.Values{"email": {"ann@acme.example"}, "password": {"x"}}
		form.Set(field, "a\x00\xff")
		if a := s.post("/sign-in", "", form); a.status != http.StatusUnauthorized {
			t.Errorf("sign-in with such a %s: %d", field, a.status)
		}
	}
}
