package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/tenants"
)

// as signs in somebody in a role of a tenant of its own.
func (s site) as(role string) (tenants.Created, string) {
	s.t.Helper()
	made := s.tenant("Acme", "ann@acme.example")
	s.super(`update members set role = $1 where tenant_id = $2`, role, made.Tenant.ID)
	return made, s.signIn(made.SignInToken)
}

// addCustomer makes one and returns its public id.
func (s site) addCustomer(tenant uuid.UUID, name string) (tenants.Customer, string) {
	s.t.Helper()
	c, err := s.tenants.AddCustomer(s.t.Context(), tenant, tenants.NewCustomer{Name: name})
	must(s.t, err)
	return c, id.Customer.Format(c.ID)
}

var hidden = regexp.MustCompile(`name="once" value="([^"]+)"`)

// once is the hidden id of the form of a new key.
func (s site) once(path, session string) string {
	s.t.Helper()
	m := hidden.FindStringSubmatch(s.get(path, session).body)
	if m == nil {
		s.t.Fatalf("%s has no form", path)
	}
	return m[1]
}

var secret = regexp.MustCompile(`weir_(live|test)_[0-9A-Za-z]{36}`)

func (s site) keysOf(tenant uuid.UUID) []tenants.APIKey {
	s.t.Helper()
	page, err := s.tenants.APIKeys(s.t.Context(), tenant, tenants.KeyFilter{}, uuid.Nil, 100)
	must(s.t, err)
	return page.Items
}

// keyNamed is the key of a name: the order of ids made within one millisecond,
// or by two clocks, says nothing.
func (s site) keyNamed(tenant uuid.UUID, name string) tenants.APIKey {
	s.t.Helper()
	for _, k := range s.keysOf(tenant) {
		if k.Name == name {
			return k
		}
	}
	s.t.Fatalf("no key is named %s", name)
	return tenants.APIKey{}
}

func TestASecretIsShownOnceAndNeverAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, customer := s.addCustomer(made.Tenant.ID, "Kestrel")
	form := url.Values{"once": {s.once("/keys/new", session)}, "customer": {customer}, "name": {"production"}, "test": {"false"}}
	a := s.post("/keys", session, form)
	shown := secret.FindString(a.body)
	if a.status != http.StatusOK || shown == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q %s", a.status, shown, a.header.Get("Cache-Control"))
	}
	for _, lang := range []string{"curl http", "openai.NewClient", "from openai import OpenAI", "new OpenAI("} {
		a.has(t, lang)
	}
	if n := strings.Count(a.body, shown); n != 5 {
		t.Errorf("the secret stands %d times: once to copy, once in each language", n)
	}
	again := s.post("/keys", session, form)
	again.has(t, "This key was made already")
	again.hasNot(t, shown)
	if again.status != http.StatusConflict || len(s.keysOf(made.Tenant.ID)) != 2 {
		t.Errorf("a reload: %d, %d keys", again.status, len(s.keysOf(made.Tenant.ID)))
	}
	for _, path := range []string{"/keys", "/keys/new", "/", "/customers/" + customer} {
		s.get(path, session).hasNot(t, shown)
	}
	s.get("/keys", session).has(t, "production", "Kestrel", shown[len(shown)-4:])
}

func TestAKeyFormKeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("developer")
	_, customer := s.addCustomer(made.Tenant.ID, "Kestrel")
	once := s.once("/keys/new?customer="+customer, session)
	for field, c := range map[string]struct{ value, says string }{
		"name":              {"", "A name is needed."},
		"customer":          {"cus_nothing", "needs its customer"},
		"models":            {strings.Repeat("x", 300), "not a model name"},
		"ip_allow":          {"203.0.113.7/24", "not an address or a range"},
		"expires_at":        {"2026-11-29", "must lie in the future"},
		"limits.1.amount":   {"many", "not a whole number"},
		"limits.2.window":   {"none", "no limit on tokens with the window none"},
		"limits.2.models":   {"x", ""},
		"once":              {id.APIKey.Format(id.At(noon.Add(-25 * time.Hour))), "open for more than a day"},
		"limits.0.amount":   {"-5", "from 0 to"},
		"expires_at (word)": {"soon", "not a day"},
	} {
		form := url.Values{
			"once": {once}, "customer": {customer}, "name": {"kept <name>"}, "test": {"true"},
			"limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {""},
			"limits.1.dimension": {"tokens"}, "limits.1.window": {"minute"}, "limits.1.amount": {""},
			"limits.2.dimension": {"tokens"}, "limits.2.window": {"day"}, "limits.2.amount": {"7,000"},
		}
		name, _, _ := strings.Cut(field, " ")
		form.Set(name, c.value)
		if c.says == "" {
			continue
		}
		a := s.post("/keys", session, form)
		if a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", field, a.status)
		}
		a.has(t, c.says, "not right yet", `value="7,000"`)
		if name != "name" {
			a.has(t, "kept &lt;name&gt;")
		}
		if name != "once" && name != "limits.2.window" {
			a.has(t, `aria-invalid="true"`, `href="#f-`+strings.ReplaceAll(name, ".", "-")+`"`)
		}
	}
	if n := len(s.keysOf(made.Tenant.ID)); n != 1 {
		t.Errorf("%d keys", n)
	}
}

func TestANarrowKeyIsMadeAsTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, customer := s.addCustomer(made.Tenant.ID, "Kestrel")
	a := s.post("/keys", session, url.Values{
		"once": {s.once("/keys/new", session)}, "customer": {customer}, "name": {"night"}, "test": {"true"}, "may_settle": {"true"},
		"models": {"gpt-4o*, o3"}, "ip_allow": {"203.0.113.7\n2001:db8::/32"}, "expires_at": {"2026-12-31"},
		"limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {""},
		"limits.1.dimension": {"tokens"}, "limits.1.window": {"minute"}, "limits.1.amount": {"40,000"},
	})
	a.has(t, "weir_test_", "is on no plan yet")
	k := s.keyNamed(made.Tenant.ID, "night")
	if !k.Test || !k.MaySettle || len(k.Models) != 2 || len(k.IPAllow) != 2 || len(k.Limits) != 1 || k.Limits[0].Amount != 40_000 ||
		!k.ExpiresAt.Equal(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", k)
	}
	s.get("/keys", session).has(t, "40,000 tokens a minute", "gpt-4o*, o3 only", "2 address ranges")
}

func TestAManagementKeyHasTheTickedScopes(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("admin")
	once := s.once("/keys/new/management", session)
	a := s.post("/keys/management", session, url.Values{"once": {once}, "name": {"export"}})
	a.has(t, "needs at least one scope", `value="export"`, `href="#f-scopes"`)
	a = s.post("/keys/management", session, url.Values{"once": {once}, "name": {"export"}, "scopes": {"usage:read", "plans:read"}})
	a.has(t, "weir_live_", "/api/v1/me")
	if k := s.keyNamed(made.Tenant.ID, "export"); k.Kind != tenants.Management || len(k.Scopes) != 2 {
		t.Errorf("%+v", k)
	}
}

func TestRevokingAsksForTheNameAndSaysWhatHappens(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	key := s.customerKey(made.Tenant.ID, "Kestrel", "production")
	path := "/keys/" + id.APIKey.Format(key.ID) + "/revoke"
	a := s.get(path, session)
	a.has(t, "Revoke production?", "calls were made with it today", "<main", `data-word="production"`)
	header := s.with(session)
	header["HX-Request"] = "true"
	part := s.do(http.MethodGet, path, nil, header)
	part.has(t, "<dialog", "Keep it working")
	part.hasNot(t, "<main", "<html")
	wrong := s.post(path, session, url.Values{"word": {"Production"}})
	wrong.has(t, "not the name", `value="Production"`)
	if k, _ := s.tenants.APIKey(t.Context(), made.Tenant.ID, key.ID); wrong.status != http.StatusBadRequest || k.RevokedAt != nil {
		t.Errorf("%d %v", wrong.status, k.RevokedAt)
	}
	right := s.post(path, session, url.Values{"word": {"production"}})
	if right.status != http.StatusSeeOther {
		t.Fatal(right.status)
	}
	s.get(right.header.Get("Location"), session).has(t, "The key is revoked.", "revoked 13:00 CET")
	var actor, credential string
	s.scan(`select actor_kind, credential from audit_entries where action = 'api_key.revoked'`, &actor, &credential)
	if actor != "user" || credential != "session" {
		t.Errorf("audited as %s by %s", actor, credential)
	}
}

func TestKeysOfEachKindAreForTheirRolesOnly(t *testing.T) {
	t.Parallel()
	for role, may := range map[string]struct{ customers, management bool }{
		"owner": {true, true}, "admin": {true, true}, "developer": {true, false}, "billing": {}, "viewer": {},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			made, session := s.as(role)
			key := s.customerKey(made.Tenant.ID, "Kestrel", "production")
			before := s.fingerprint()
			for path, allowed := range map[string]bool{
				"/keys": may.customers, "/keys/new": may.customers, "/keys/" + id.APIKey.Format(key.ID) + "/revoke": may.customers, "/keys/new/management": may.management,
			} {
				if a := s.get(path, session); (a.status == http.StatusOK) != allowed || !allowed && a.status != http.StatusForbidden {
					t.Errorf("GET %s: %d", path, a.status)
				}
			}
			if !may.customers && s.post("/keys", session, url.Values{}).status != http.StatusForbidden {
				t.Error("a customer's key can be made")
			}
			if !may.management {
				if a := s.post("/keys/management", session, url.Values{"name": {"x"}, "scopes": {"*"}}); a.status != http.StatusForbidden {
					t.Errorf("a management key can be made: %d", a.status)
				}
				a := s.post("/keys/"+id.APIKey.Format(made.ManagementKey.ID)+"/revoke", session, url.Values{"word": {"First management key"}})
				if a.status != http.StatusForbidden && a.status != http.StatusNotFound {
					t.Errorf("a management key can be revoked: %d", a.status)
				}
				if s.get("/", session); s.fingerprint() != before {
					t.Error("something was changed")
				}
			}
		})
	}
}

func TestAnotherTenantsKeyIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	own, session := s.as("owner")
	s.addCustomer(own.Tenant.ID, "Kestrel")
	other := s.tenant("Bolt", "bo@bolt.example")
	key := s.customerKey(other.Tenant.ID, "Bolt-Customer", "production")
	_, customer := s.addCustomer(other.Tenant.ID, "Other")
	path := "/keys/" + id.APIKey.Format(key.ID) + "/revoke"
	unknown := s.get("/keys/"+id.APIKey.Format(id.New())+"/revoke", session)
	for _, a := range []answer{s.get(path, session), s.post(path, session, url.Values{"word": {"production"}}), s.get("/keys?customer="+customer, session), unknown} {
		if a.status != http.StatusNotFound {
			t.Errorf("%d", a.status)
		}
		a.hasNot(t, "Bolt", "production")
	}
	a := s.post("/keys", session, url.Values{"once": {s.once("/keys/new/management", session)}, "customer": {customer}, "name": {"mine"}, "test": {"false"}})
	a.has(t, "There is no such customer.")
	a.hasNot(t, "weir_live_")
	if k, _ := s.tenants.APIKey(t.Context(), other.Tenant.ID, key.ID); k.RevokedAt != nil {
		t.Error("revoked from elsewhere")
	}
}
