package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// person signs somebody up and returns their session.
func (s site) person() string {
	s.t.Helper()
	s.post("/sign-up", "", signUpForm())
	_, token := s.mailed(1)
	return s.post("/confirm", "", url.Values{"token": {token}}).session(s)
}

func TestSettingsChangeOnePersonAndTheirOrganisation(t *testing.T) {
	s := newSite(t, localSite)
	me := s.person()
	for path, f := range map[string]url.Values{"/settings/profile": {"name": {"Ann Lee"}}, "/settings/tenant": {"tenant": {"Acme & Sons"}}} {
		if a := s.post(path, me, f); a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
	}
	a := s.get("/settings", me)
	for _, want := range []string{`value="Ann Lee"`, `value="Acme &amp; Sons"`, "ann@acme.example", "Europe/Berlin", "this one"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("missing %s", want)
		}
	}
}

func TestSettingsKeepWhatWasTypedAndNameTheField(t *testing.T) {
	s := newSite(t, localSite)
	me := s.person()
	if a := s.post("/settings/tenant", me, url.Values{"tenant": {"  "}}); a.status != http.StatusBadRequest || !strings.Contains(a.body, `href="#f-tenant"`) {
		t.Errorf("an empty name: %d", a.status)
	}
	a := s.post("/settings/password", me, url.Values{"current": {"not this phrase"}, "password": {"quite another phrase"}})
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, `href="#f-current"`) || strings.Contains(a.body, "quite another phrase") {
		t.Errorf("a wrong password: %d", a.status)
	}
}

func TestOtherSessionsEndWhenAskedAndWithANewPassword(t *testing.T) {
	s := newSite(t, localSite)
	me := s.person()
	signIn := func() string {
		return s.post("/sign-in", "", url.Values{"email": {"ann@acme.example"}, "password": {"a good long phrase"}}).session(s)
	}
	other := signIn()
	if a := s.post("/settings/sessions/end", me, url.Values{}); a.status != http.StatusSeeOther {
		t.Fatalf("got %d", a.status)
	}
	if a := s.get("/settings", other); a.status != http.StatusSeeOther {
		t.Errorf("the other session: %d", a.status)
	}
	other = signIn()
	if a := s.post("/settings/password", me, url.Values{"current": {"a good long phrase"}, "password": {"quite another phrase"}}); a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if a := s.get("/settings", other); a.status != http.StatusSeeOther {
		t.Errorf("after a new password: %d", a.status)
	}
	if a := s.get("/settings", me); a.status != http.StatusOK {
		t.Errorf("my own session: %d", a.status)
	}
}

func TestOnlyAnOwnerRenamesTheOrganisation(t *testing.T) {
	s := newSite(t, localSite)
	for _, role := range []string{"admin", "developer", "billing", "viewer"} {
		_, session := s.as(role)
		if a := s.post("/settings/tenant", session, url.Values{"tenant": {"Mine"}}); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", role, a.status)
		}
	}
}
