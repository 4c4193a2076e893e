package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/internal/id"
)

func TestARotatedKeysSecretIsShownOnceAndSaysWhatBecomesOfTheOldOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	k := s.customerKey(made.Tenant.ID, "Kestrel", "production")
	at := "/keys/" + id.APIKey.Format(k.ID)
	s.get(at, session).has(t, "production", "Kestrel", "A day", "Not at all", k.Last4)
	form := url.Values{"overlap_seconds": {"3600"}}
	a := s.post(at+"/rotate", session, form)
	shown := secret.FindString(a.body)
	if a.status != http.StatusOK || shown == "" || shown == k.Secret || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q", a.status, shown)
	}
	a.has(t, "works until 14:00 CET", "Revoking either ends both", k.Last4)
	again := s.post(at+"/rotate", session, form)
	again.has(t, "This key was made already")
	again.hasNot(t, shown)
	if keys := s.keysOf(made.Tenant.ID); again.status != http.StatusConflict || len(keys) != 3 {
		t.Errorf("a reload: %d, %d keys", again.status, len(keys))
	}
	s.get("/keys", session).has(t, "replaced, works until 14:00 CET")
	old := s.get(at, session)
	old.has(t, "The key that took over")
	old.hasNot(t, shown, `action="`+at+`/rotate"`)
	s.get(at+"/revoke", session).has(t, "other secret of this key")
}

func TestRotatingWithoutAnOverlapSaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	k := s.customerKey(made.Tenant.ID, "Kestrel", "production")
	at := "/keys/" + id.APIKey.Format(k.ID)
	for _, bad := range []string{"", "soon", "-1", "99999999"} {
		if a := s.post(at+"/rotate", session, url.Values{"overlap_seconds": {bad}}); a.status != http.StatusBadRequest || !strings.Contains(a.body, `href="#f-overlap_seconds"`) {
			t.Errorf("%q: %d", bad, a.status)
		}
	}
	s.post(at+"/rotate", session, url.Values{"overlap_seconds": {"0"}}).has(t, "stops working now")
}

func TestAKeyIsRenamedOnItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	k := s.customerKey(made.Tenant.ID, "Kestrel", "production")
	at := "/keys/" + id.APIKey.Format(k.ID)
	if a := s.post(at+"/change", session, url.Values{"name": {" Frankfurt "}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d", a.status)
	}
	s.get(at, session).has(t, "<h1 class=\"any\">Frankfurt</h1>")
	if a := s.post(at+"/change", session, url.Values{"name": {""}}); a.status != http.StatusBadRequest || !strings.Contains(a.body, `href="#f-name"`) {
		t.Errorf("no name: %d", a.status)
	}
}

func TestAKeysPageIsForWhoMaySeeItsKind(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	at := "/keys/" + id.APIKey.Format(made.ManagementKey.ID)
	unknown := s.get("/keys/"+id.APIKey.Format(id.New()), session)
	for _, a := range []answer{s.get(at, session), s.post(at+"/rotate", session, url.Values{"overlap_seconds": {"0"}}), s.post(at+"/change", session, url.Values{"name": {"x"}})} {
		if a.status != http.StatusNotFound || unknown.status != http.StatusNotFound {
			t.Errorf("a management key answers a developer %d, an unknown one %d", a.status, unknown.status)
		}
	}
}

func TestAManagementKeyReachesNoFurtherThanWhoMakesIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("admin")
	s.get("/keys/new/management", session).hasNot(t, `value="tenant:write"`, `value="*"`)
	for scope, want := range map[string]int{"*": http.StatusBadRequest, "tenant:write": http.StatusBadRequest, "usage:read": http.StatusOK} {
		form := url.Values{"once": {s.once("/keys/new/management", session)}, "name": {"program"}, "scopes": {scope}}
		if a := s.post("/keys/management", session, form); a.status != want {
			t.Errorf("%s: %d", scope, a.status)
		}
	}
	strong := "/keys/" + id.APIKey.Format(made.ManagementKey.ID)
	s.get(strong, session).has(t, "an owner has to rotate it")
	if a := s.post(strong+"/rotate", session, url.Values{"overlap_seconds": {"0"}}); a.status != http.StatusForbidden {
		t.Errorf("rotating a stronger one: %d", a.status)
	}
	if keys := s.keysOf(made.Tenant.ID); len(keys) != 2 {
		t.Errorf("%d keys", len(keys))
	}
}
