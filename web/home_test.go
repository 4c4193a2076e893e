package web

import (
	"html"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/tenants"
)

// addCalls puts calls into the books, in the quarter of an hour that begins at
// an instant.
func (s site) addCalls(tenant uuid.UUID, at time.Time, outcome string, test bool, requests, refused, input int64, charge string) {
	s.t.Helper()
	s.super(`
		insert into usage_quarter (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test,
			currency, cost_currency, requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
			units, charge_pico, cost_pico)
		values ($1, $2, $3, $3, $3, 'm', 'm', $4, $5, 'EUR', '', $6, $7, $8, 20, 0, 3, 0, 0, $9, 0)`,
		tenant, at, id.New(), outcome, test, requests, refused, input, charge)
}

func (s site) customerKey(tenant uuid.UUID, customer, key string) tenants.IssuedKey {
	s.t.Helper()
	c, err := s.tenants.AddCustomer(s.t.Context(), tenant, tenants.NewCustomer{Name: customer})
	must(s.t, err)
	k, err := s.tenants.AddAPIKey(s.t.Context(), tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: c.ID, Name: key})
	must(s.t, err)
	return k
}

func (s site) practice(tenant uuid.UUID, name string) {
	s.t.Helper()
	_, err := s.tenants.AddProviderKey(s.t.Context(), tenant, tenants.NewProviderKey{Provider: "practice", Name: name})
	must(s.t, err)
}

func TestHomeCountsTheDayOfTheTenantsZone(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	midnight := time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC) // in Berlin
	s.addCalls(made.Tenant.ID, midnight.Add(-15*time.Minute), "ok", false, 500_000, 0, 0, "0")
	s.addCalls(made.Tenant.ID, midnight, "ok", false, 1_200, 0, 1_000_000, "12345678900000")
	s.addCalls(made.Tenant.ID, noon.Add(-time.Hour), "provider_error", false, 34, 0, 0, "0")
	s.addCalls(made.Tenant.ID, noon.Add(-time.Hour), "refused_tokens_minute", false, 0, 7, 0, "0")
	s.addCalls(made.Tenant.ID, noon.Add(-time.Hour), "ok", true, 5, 0, 0, "0")
	session := s.signIn(made.SignInToken)
	a := s.get("/", session)
	a.has(t,
		"Acme", "Europe/Berlin", "Monday 30 November 2026, 13:00 CET", "from 00:00 CET, as of 13:00:00 CET",
		"<b>1,239 requests</b>", "7 were refused", "5 of them by test keys or the practice provider, never billed",
		"input 1,000,000", "cached input 80", "output 12", "12.34", `title="12.3456789 EUR"`, "00:00 to 01:00 CET: 1,200 requests", "34 requests",
	)
	a.hasNot(t, "cache write", "reasoning")
	s.get("/tiles/today", session).hasNot(t, "500,000", "501,")
}

func TestHomeOfOneTenantShowsNothingOfAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	acme, bolt := s.tenant("Acme", "ann@acme.example"), s.tenant("Bolt-Works", "bo@bolt.example")
	key := s.customerKey(bolt.Tenant.ID, "Bolt-Customer", "Bolt-Key")
	s.practice(bolt.Tenant.ID, "Bolt-Practice")
	s.addCalls(bolt.Tenant.ID, noon.Add(-time.Hour), "ok", false, 987_654, 0, 0, "0")
	a := s.get("/", s.signIn(acme.SignInToken))
	a.has(t, "Acme", "Nothing has been asked for yet today.")
	a.hasNot(t, "Bolt", "bolt", key.Last4, bolt.ManagementKey.Last4, "987,654")
	b := s.get("/", s.signIn(bolt.SignInToken))
	b.has(t, "Bolt-Works", "987,654")
	b.hasNot(t, "Acme", acme.ManagementKey.Last4)
}

func TestNamesAreTextWhateverTheyHold(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	hostile := `<script>alert("x")</script>'" onmouseover="alert(1)" <img src=x onerror=alert(1)> {{7*7}} </title>`
	made := s.tenant(hostile, "ann@acme.example")
	s.customerKey(made.Tenant.ID, hostile, hostile)
	s.practice(made.Tenant.ID, hostile)
	s.super(`update users set name = $1`, hostile)
	a := s.get("/", s.signIn(made.SignInToken))
	if a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	a.hasNot(t, "<script>alert", "<img", `" onmouseover="`)
	a.has(t, html.EscapeString(hostile))
}

func TestSecretsAreOnNoPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	key := s.customerKey(made.Tenant.ID, "Customer", "Key")
	session := s.signIn(made.SignInToken)
	for _, path := range everyPage() {
		s.get(path, session).hasNot(t, key.Secret, made.ManagementKey.Secret, session)
	}
}

func TestEachRoleSeesWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	const money, steps, broken = "Billed", "To a first call", "Provider key could not be checked"
	for role, sees := range map[string][]string{
		"owner": {money, steps, broken}, "admin": {money, steps, broken},
		"developer": {}, "billing": {money}, "viewer": {}, "a role of a later release": {},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			made := s.tenant("Acme", "ann@acme.example")
			_, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{Provider: "custom", Name: "Off", BaseURL: "https://llm.invalid/v1"})
			must(t, err)
			s.super(`alter table members drop constraint members_role_check`)
			s.super(`update members set role = $1`, role)
			a := s.get("/", s.signIn(made.SignInToken))
			a.has(t, "Requests", role)
			for _, what := range []string{money, steps, broken} {
				if contains(sees, what) {
					a.has(t, what)
				} else {
					a.hasNot(t, what)
				}
			}
		})
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestHomeLeadsToAFirstCallUntilThereCanBeOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, "https://weir.example/")
	made := s.tenant("Acme", "ann@acme.example")
	session := s.signIn(made.SignInToken)
	a := s.get("/", session)
	a.has(t, "To a first call", "WEIR=https://weir.example\n", "/v1/chat/completions", "practice")
	s.practice(made.Tenant.ID, "Practice")
	s.get("/", session).has(t, "To a first call", `<span class="st ok">done</span>`)
	s.customerKey(made.Tenant.ID, "Customer", "Key")
	s.get("/", session).hasNot(t, "To a first call")
}

func TestATileThatFailsLeavesTheRest(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	session := s.signIn(made.SignInToken)
	s.super(`revoke select on usage_quarter from weir_app`)
	a := s.get("/", session)
	if a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	a.has(t, "usage could not be read", a.header.Get("X-Request-Id"), "Today’s caps", `hx-get="/tiles/today"`)
	if tile := s.get("/tiles/today", session); tile.status != http.StatusOK {
		t.Errorf("the tile alone: %d", tile.status)
	}
	s.super(`grant select on usage_quarter to weir_app`)
	tile := s.get("/tiles/today", session)
	tile.has(t, `id="tile-today"`, "Requests")
	tile.hasNot(t, "could not be read", "<html")
	a.hasNot(t, "permission denied", "requests</b>")
}

// A figure without its unit, or a time without its zone, is none.
func TestEveryChartSaysItsUnitItsZoneAndAsOfWhen(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.store(event(made.Tenant.ID, noon.Add(-90*time.Second)))
	for path, unit := range map[string]string{
		"/": "requests an hour", "/?unit=tokens&flow=60m": "tokens a minute", "/?flow=30d": "requests a day", "/requests": "calls in 15 minutes",
		"/usage": "tokens an hour", "/usage?show=refused&range=30d": "calls refused a day", "/usage?show=billed": "EUR billed an hour",
	} {
		a := s.get(path, session)
		a.has(t, `<p class="unit">`+unit+", times in CET</p>", "as of 13:00:00")
		if t.Failed() {
			t.Fatal(path)
		}
	}
}
