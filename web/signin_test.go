package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/tenants"
)

func TestALinkWorksOnceAndOfManyAtOnceOneWins(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	link := s.tenant("Acme", "ann@acme.example").SignInToken
	statuses := make([]int, 8)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() { statuses[i] = s.post("/sign-in", "", url.Values{"token": {link}}).status })
	}
	wg.Wait()
	won := 0
	for _, status := range statuses {
		switch status {
		case http.StatusSeeOther:
			won++
		case http.StatusUnauthorized:
		default:
			t.Errorf("status %d", status)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d signed in", won, len(statuses))
	}
}

func TestLookingAtALinkUsesNothingUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	link := s.tenant("Acme", "ann@acme.example").SignInToken
	before := s.fingerprint()
	for range 3 {
		a := s.get("/sign-in/"+link, "")
		if a.status != http.StatusOK || len(a.header.Values("Set-Cookie")) > 0 {
			t.Fatalf("%d %v", a.status, a.header)
		}
		a.has(t, `name="token" value="`+link+`"`, `action="/sign-in"`)
		if a := s.do(http.MethodHead, "/sign-in/"+link, nil, nil); a.status != http.StatusOK {
			t.Fatalf("HEAD: %d", a.status)
		}
	}
	if s.fingerprint() != before {
		t.Error("looking at a link changed something")
	}
	if token := s.signIn(link); s.get("/", token).status != http.StatusOK {
		t.Error("the link does not work any more")
	}
}

func TestADeadLinkSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	used, late := s.tenant("Acme", "ann@acme.example").SignInToken, s.tenant("Bolt", "bo@bolt.example").SignInToken
	s.signIn(used)
	s.clock.advance(tenants.SignInLifetime)
	for name, token := range map[string]string{
		"used": used, "expired": late, "unknown": strings.Repeat("A", tokenLength), "cut": used[:20], "missing": "", "hostile": `"><script>alert(1)</script>`,
	} {
		a := s.post("/sign-in", "", url.Values{"token": {token}})
		if a.status != http.StatusUnauthorized || len(a.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
		a.has(t, "This link no longer works", "bin/api admin sign-in-link --email")
		a.hasNot(t, "<script>alert")
	}
	if a := s.get("/sign-in/"+used[:20], ""); a.status != http.StatusUnauthorized {
		t.Errorf("the page of a cut link: %d", a.status)
	}
}

func TestALinkInTheQueryIsNotTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	link := s.tenant("Acme", "ann@acme.example").SignInToken
	if a := s.post("/sign-in?token="+link, "", url.Values{}); a.status != http.StatusUnauthorized {
		t.Errorf("%d", a.status)
	}
}

func TestTheCookieIsHostBoundOverTLSAndPlainOnThisMachine(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]struct {
		name   string
		secure bool
	}{
		"https://weir.example":      {"__Host-weir_session", true},
		"https://localhost:8443/":   {"__Host-weir_session", true},
		"http://weir.example":       {"__Host-weir_session", true},
		"http://localhost.evil.com": {"__Host-weir_session", true},
		"http://localhost:8080":     {"weir_session", false},
		"http://127.0.0.1:8080":     {"weir_session", false},
		"http://[::1]:8080":         {"weir_session", false},
	} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, public)
			a := s.post("/sign-in", "", url.Values{"token": {s.tenant("Acme", "ann@acme.example").SignInToken}})
			c := a.cookie(t, want.name)
			if c.Secure != want.secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
				t.Errorf("%s", c)
			}
			if time.Duration(c.MaxAge)*time.Second != auth.SessionAbsolute || len(c.Value) != tokenLength {
				t.Errorf("%s", c)
			}
		})
	}
}

func TestSignOutEndsTheSessionAndClearsTheBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	session := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	a := s.post("/sign-out", session, url.Values{})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/" || a.header.Get("Clear-Site-Data") != clearSite {
		t.Errorf("%d %v", a.status, a.header)
	}
	if c := a.cookie(t, s.cookie); c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("%s", c)
	}
	if a := s.get("/", session); a.status != http.StatusSeeOther {
		t.Errorf("the old cookie still works: %d", a.status)
	}
	if a := s.post("/sign-out", session, url.Values{}); a.status != http.StatusSeeOther {
		t.Errorf("a second time: %d", a.status)
	}
}

func TestSigningInAnewEndsTheSessionBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	first := s.signIn(s.tenant("Acme", "ann@acme.example").SignInToken)
	link, _, err := s.tenants.SignInLink(t.Context(), "ann@acme.example", "")
	must(t, err)
	second := s.post("/sign-in", first, url.Values{"token": {link}}).cookie(t, s.cookie).Value
	if a := s.get("/", first); a.status != http.StatusSeeOther {
		t.Errorf("the session before: %d", a.status)
	}
	if a := s.get("/", second); a.status != http.StatusOK {
		t.Errorf("the new session: %d", a.status)
	}
}

func TestASessionThatIsOverLeadsToSignIn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s site, made tenants.Created){
		"idle": func(s site, _ tenants.Created) { s.clock.advance(auth.SessionIdle + time.Minute) },
		"too old": func(s site, _ tenants.Created) {
			s.super(`update sessions set seen_at = $1, expires_at = $1`, noon)
		},
		"ended": func(s site, _ tenants.Created) { s.super(`update sessions set ended_at = now()`) },
		"of a removed member": func(s site, made tenants.Created) {
			s.super(`update members set removed_at = now() where tenant_id = $1`, made.Tenant.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			made := s.tenant("Acme", "ann@acme.example")
			session := s.signIn(made.SignInToken)
			if a := s.get("/", session); a.status != http.StatusOK {
				t.Fatalf("before: %d", a.status)
			}
			end(s, made)
			a := s.get("/", session)
			if a.status != http.StatusSeeOther || a.header.Get("Location") != "/sign-in?ended" {
				t.Fatalf("%d %s", a.status, a.header.Get("Location"))
			}
			if c := a.cookie(t, s.cookie); c.MaxAge >= 0 {
				t.Errorf("%s", c)
			}
			s.get("/sign-in?ended", "").has(t, "Your session has ended")
		})
	}
}

func TestNobodyWithoutASessionSeesHome(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	key := s.tenant("Acme", "ann@acme.example").ManagementKey.Secret
	for name, header := range map[string]map[string]string{
		"nothing": nil, "an API key": {"Authorization": "Bearer " + key}, "an API key as cookie": s.with(key),
		"an unknown session": s.with(strings.Repeat("A", tokenLength)), "junk": s.with("a b\"; x=" + strings.Repeat("y", 4000)),
	} {
		a := s.do(http.MethodGet, "/", nil, header)
		if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/sign-in") {
			t.Errorf("%s: %d %s", name, a.status, a.header.Get("Location"))
		}
		a.hasNot(t, "Acme")
	}
	s.get("/sign-in", "").has(t, "bin/api admin sign-in-link --email", "Sign in with a link")
}

func TestAnOddUserAgentSignsInLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	form := url.Values{"token": {s.tenant("Acme", "ann@acme.example").SignInToken}}
	if a := s.do(http.MethodPost, "/sign-in", form, map[string]string{"User-Agent": "\xff\xfe" + strings.Repeat("é", 2000)}); a.status != http.StatusSeeOther {
		t.Errorf("%d", a.status)
	}
}
