package web

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/id"
	"weir/internal/limits"
	exact "weir/internal/money"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// guest is a customer's session of the portal, as a cookie.
type guest struct {
	site
	session string
}

var inLink = regexp.MustCompile(`/portal/in/([A-Za-z0-9_-]{43})`)

func tokenIn(t *testing.T, text string) string {
	t.Helper()
	m := inLink.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no link in %q", text)
	}
	return m[1]
}

// guest signs a customer in by a link that its tenant made.
func (s site) guest(tenant, customer uuid.UUID) guest {
	s.t.Helper()
	link, err := s.portal.MakeLink(s.t.Context(), tenant, customer)
	must(s.t, err)
	a := s.post("/portal/in", "", url.Values{"token": {tokenIn(s.t, link.URL)}})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/portal" {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	cookie := a.cookie(s.t, "portal_session")
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
		s.t.Errorf("cookie %v", cookie)
	}
	return guest{s, cookie.Value}
}

func (g guest) see(path string) answer {
	g.t.Helper()
	return g.do(http.MethodGet, path, nil, map[string]string{"Cookie": "portal_session=" + g.session})
}

func (g guest) send(path string, form url.Values) answer {
	g.t.Helper()
	return g.do(http.MethodPost, path, form, map[string]string{"Cookie": "portal_session=" + g.session, "Sec-Fetch-Site": "same-origin"})
}

// parties are a tenant with two customers, each with a plan, a key and a call, and
// another tenant with one.
type parties struct {
	site
	acme, other             uuid.UUID
	kestrel, heron, foreign uuid.UUID
	keys                    map[uuid.UUID]string
	calls                   map[uuid.UUID]string
}

func newParties(t *testing.T) parties {
	t.Helper()
	s := newSite(t, local)
	p := parties{site: s, keys: map[uuid.UUID]string{}, calls: map[uuid.UUID]string{}}
	p.acme, p.other = s.tenant("Acme", "ann@acme.example").Tenant.ID, s.tenant("Other", "owner@other.example").Tenant.ID
	add := func(tenant uuid.UUID, name string) uuid.UUID {
		x, _ := s.addCustomer(tenant, name)
		plan, _ := s.plan(tenant, "Plan of "+name, perDay(limits.DimensionTokens, 5_000_000))
		customer := x.ID
		_, err := s.billing.Subscribe(t.Context(), tenant, customer, plan.ID)
		must(t, err)
		k, err := s.tenants.AddAPIKey(t.Context(), tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: customer, Name: name + " key"})
		must(t, err)
		p.keys[customer] = id.APIKey.Format(k.ID)
		p.calls[customer] = s.callsOf(tenant, customer, k.Counter)
		return customer
	}
	p.kestrel, p.heron, p.foreign = add(p.acme, "Kestrel"), add(p.acme, "Heron"), add(p.other, "Osprey")
	return p
}

// callsOf stores a call of a customer that passed, whose id it returns, and one
// that a provider key's own limit refused. What no customer may read of them says
// canary.
func (s site) callsOf(tenant, customer, counter uuid.UUID) string {
	s.t.Helper()
	passed, refused := event(tenant, noon.Add(-time.Hour)), event(tenant, noon.Add(-2*time.Hour))
	cost := exact.FromInt(4_200_000_000)
	passed.ModelServed, passed.ProviderKey, passed.Cost, passed.CostCurrency = "canary-model", id.New(), &cost, "XTS"
	passed.Attempts = []usage.Attempt{
		{Provider: "canary", ProviderKey: id.New(), Model: "canary-model", Status: 500, Error: "canary_error", StartedAt: passed.StartedAt, EndedAt: passed.StartedAt},
		{Provider: "canary", ProviderKey: id.New(), Model: "canary-model", Status: 200, StartedAt: passed.StartedAt, EndedAt: passed.EndedAt, Reported: "canary-reported"},
	}
	of := limits.Limit{Scope: limits.Scope{Kind: limits.ScopeProviderKey, Name: "canary key"}, Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 31337}
	refused.Outcome, refused.Requests, refused.Refused, refused.Tokens, refused.Attempts = "refused_tokens_minute", 0, 1, limits.Tokens{}, nil
	refused.Refusal = &usage.Refusal{Code: "provider_capacity", RetryAfter: time.Second, Limits: []usage.Refusing{{Limit: of, Used: 31000, Remaining: 337, Requested: 400}}}
	for _, e := range []*usage.Event{&passed, &refused} {
		e.Customer, e.Counter, e.Key = customer, counter, counter
	}
	s.store(passed, refused)
	return id.Request.Format(passed.RequestID)
}

// refusal is the id of a customer's refused call.
func (p parties) refusal(customer uuid.UUID) string {
	p.t.Helper()
	var request uuid.UUID
	p.scan(`select request_id from usage_events where outcome like 'refused%' and customer_id = '`+customer.String()+`'`, &request)
	return id.Request.Format(request)
}

func TestAPortalSessionSeesNothingOfAnotherCustomerAndOfAnotherTenant(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g := p.guest(p.acme, p.kestrel)
	seen := 0
	for _, r := range p.routes {
		if !ofPortal(r.Path) || r.Method == http.MethodHead {
			continue
		}
		for _, of := range []uuid.UUID{p.heron, p.foreign} {
			path := strings.NewReplacer("/requests/:id", "/requests/"+p.calls[of], "/keys/:id", "/keys/"+p.keys[of], ":token", strings.Repeat("a", 43)).Replace(r.Path)
			if r.Method == http.MethodPost && !strings.Contains(r.Path, ":id") {
				continue
			}
			var a answer
			if r.Method == http.MethodPost {
				a = g.send(path, url.Values{"overlap_seconds": {"0"}, "word": {"Heron key"}})
			} else {
				a = g.see(path)
			}
			seen++
			a.hasNot(t, "Heron", "Osprey", "Other", "ann@acme.example")
			if strings.Contains(r.Path, ":id") && a.status != http.StatusNotFound {
				t.Errorf("%s %s: %d", r.Method, path, a.status)
			}
			if !strings.Contains(r.Path, ":") && a.status != http.StatusOK {
				t.Errorf("%s %s: %d", r.Method, path, a.status)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d looks", seen)
	}
	g.see("/portal/requests/"+p.calls[p.kestrel]).has(t, "Passed", "gpt-4o")
	g.see("/portal/keys").has(t, "Kestrel key")
	for _, k := range p.keys {
		key, err := id.APIKey.Parse(k)
		must(t, err)
		for _, tenant := range []uuid.UUID{p.acme, p.other} {
			if x, err := p.tenants.APIKey(t.Context(), tenant, key); err == nil && (x.RevokedAt != nil || x.ReplacedBy != uuid.Nil) {
				t.Errorf("%s was touched", x.Name)
			}
		}
	}
}

func TestThePortalNamesNoProviderNoCostAndNoPerson(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g := p.guest(p.acme, p.kestrel)
	for _, path := range []string{"/portal", "/portal/tiles/levels", "/portal/usage", "/portal/usage.csv", "/portal/requests", "/portal/requests/" + p.calls[p.kestrel], "/portal/requests/" + p.refusal(p.kestrel), "/portal/keys", "/portal/agreement"} {
		a := g.see(path)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
		if _, page, found := strings.Cut(a.body, "Skip to content"); found {
			a.body = page // behind the pictures
		}
		a.hasNot(t, "canary", "rovider key", "argin", "0.0042", "XTS", "31,337", "31337", "ann@acme.example", "owner")
		if csp := a.header.Get("Content-Security-Policy"); csp != policy || strings.Contains(a.body, "style=") || strings.Contains(a.body, "<script>") {
			t.Errorf("%s: policy %q, or something inline", path, csp)
		}
	}
}

func TestAMembersSessionOpensNoPortalAndACustomersNoDashboard(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g := p.guest(p.acme, p.kestrel)
	link, _, err := p.tenants.SignInLink(t.Context(), "ann@acme.example", "")
	must(t, err)
	member := p.signIn(link)
	for _, r := range p.routes {
		if r.Method != http.MethodGet || r.Path == "/live" || strings.ContainsAny(r.Path, ":*") { // /live goes on for ever
			continue
		}
		own, foreign := p.get(r.Path, member), g.see(r.Path)
		if ofPortal(r.Path) && r.Path != "/portal/sign-in" {
			if own.status != http.StatusSeeOther || own.header.Get("Location") != "/portal/sign-in" {
				t.Errorf("%s for a member: %d", r.Path, own.status)
			}
			swapped := p.do(http.MethodGet, r.Path, nil, map[string]string{"Cookie": "portal_session=" + member})
			if swapped.status != http.StatusSeeOther {
				t.Errorf("%s with a member's token in the portal's cookie: %d", r.Path, swapped.status)
			}
		}
		if own.status == http.StatusOK && strings.Contains(own.body, "Sign out") && !ofPortal(r.Path) {
			swapped := p.get(r.Path, g.session)
			if foreign.status == http.StatusOK && strings.Contains(foreign.body, "Sign out") || swapped.status == http.StatusOK && strings.Contains(swapped.body, "Sign out") {
				t.Errorf("%s opens for a customer", r.Path)
			}
		}
	}
}

func TestALinkIsUsedUpByItsButtonOnceAndByNoLook(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	link, err := p.portal.MakeLink(t.Context(), p.acme, p.kestrel)
	must(t, err)
	token := tokenIn(t, link.URL)
	for range 3 {
		if a := p.get("/portal/in/"+token, ""); a.status != http.StatusOK || len(a.header.Values("Set-Cookie")) > 0 {
			t.Fatalf("a look: %d", a.status)
		}
	}
	var group sync.WaitGroup
	entered := make(chan struct{}, 6)
	for range cap(entered) {
		group.Go(func() {
			if a := p.post("/portal/in", "", url.Values{"token": {token}}); a.status == http.StatusSeeOther {
				entered <- struct{}{}
			} else if a.status != http.StatusUnauthorized {
				t.Errorf("got %d", a.status)
			}
		})
	}
	group.Wait()
	if len(entered) != 1 {
		t.Errorf("%d sessions", len(entered))
	}
	if a := p.do(http.MethodPost, "/portal/sign-out", url.Values{}, map[string]string{"Cookie": "portal_session=x", "Sec-Fetch-Site": "cross-site"}); a.status != http.StatusForbidden {
		t.Errorf("from another site: %d", a.status)
	}
}

func TestTheDoorAnswersAStrangerAsItAnswersACustomerAndWearsNoBrand(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	email := "kim@kestrel.example"
	_, err := p.tenants.ChangeCustomer(t.Context(), p.acme, p.kestrel, tenants.CustomerChange{Email: &email})
	must(t, err)
	p.get("/portal/sign-in", "").hasNot(t, "Acme", "· Weir")
	known := p.post("/portal/sign-in", "", url.Values{"email": {email}})
	stranger := p.post("/portal/sign-in", "", url.Values{"email": {"xim@kestrel.example"}})
	if known.status != stranger.status || known.body != strings.ReplaceAll(stranger.body, "xim@", "kim@") {
		t.Errorf("%d and %d, or other words", known.status, stranger.status)
	}
	for deadline := time.Now().Add(10 * time.Second); len(p.outbox.Messages()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no mail")
		}
	}
	if m := p.outbox.Messages(); len(m) != 1 || m[0].To != email || m[0].FromName != "Acme" {
		t.Fatalf("got %+v", m)
	}
	for range 10 {
		stranger = p.post("/portal/sign-in", "", url.Values{"email": {"xim@kestrel.example"}})
	}
	if stranger.status != http.StatusTooManyRequests {
		t.Errorf("after ten: %d", stranger.status)
	}
}

func TestACustomerRotatesAndRevokesItsOwnKeyAndTheSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g := p.guest(p.acme, p.kestrel)
	at := "/portal/keys/" + p.keys[p.kestrel]
	a := g.send(at+"/rotate", url.Values{"overlap_seconds": {"3600"}})
	shown := secret.FindString(a.body)
	if a.status != http.StatusOK || shown == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q", a.status, shown)
	}
	again := g.send(at+"/rotate", url.Values{"overlap_seconds": {"3600"}})
	again.hasNot(t, shown)
	if again.status != http.StatusConflict {
		t.Errorf("sent again: %d", again.status)
	}
	key, err := id.APIKey.Parse(p.keys[p.kestrel])
	must(t, err)
	old, err := p.tenants.APIKey(t.Context(), p.acme, key)
	must(t, err)
	if old.Status(p.clock.now()) != "active" || old.Status(p.clock.now().Add(time.Hour)) != "expired" {
		t.Errorf("the old one ends at %v", old.ExpiresAt)
	}
	if a := g.send(at+"/revoke", url.Values{"word": {"no"}}); a.status != http.StatusBadRequest {
		t.Errorf("another word: %d", a.status)
	}
	if a := g.send(at+"/revoke", url.Values{"word": {"Kestrel key"}}); a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	for _, k := range []uuid.UUID{old.ID, old.ReplacedBy} {
		if x, err := p.tenants.APIKey(t.Context(), p.acme, k); err != nil || x.Status(p.clock.now()) != "revoked" {
			t.Errorf("%s is %s, %v", x.ID, x.Status(p.clock.now()), err)
		}
	}
	var by string
	p.scan(`select actor_kind || ' ' || credential from audit_entries where action = 'api_key.revoked'`, &by)
	if by != "customer portal session" {
		t.Errorf("audited as %q", by)
	}
}

func TestASuspendedCustomerReadsAndChangesNothing(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	g := p.guest(p.acme, p.kestrel)
	_, err := p.tenants.SuspendCustomer(t.Context(), p.acme, p.kestrel)
	must(t, err)
	g.see("/portal").has(t, "Your account is suspended")
	g.see("/portal/keys").hasNot(t, ">Rotate<", ">Revoke<")
	for path, form := range map[string]url.Values{"rotate": {"overlap_seconds": {"0"}}, "revoke": {"word": {"Kestrel key"}}} {
		a := g.send("/portal/keys/"+p.keys[p.kestrel]+"/"+path, form)
		if a.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.status)
		}
		a.hasNot(t, "· Weir")
	}
	if a := g.send("/portal/sign-out", url.Values{}); a.status != http.StatusSeeOther {
		t.Errorf("signing out: %d", a.status)
	}
	if a := g.see("/portal"); a.status != http.StatusSeeOther || a.header.Get("Location") != "/portal/sign-in?ended" {
		t.Errorf("after it: %d %s", a.status, a.header.Get("Location"))
	}
}

func TestThePortalWearsTheTenantsBrandAndNamesWeirOnlyInItsLine(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	link, _, err := p.tenants.SignInLink(t.Context(), "ann@acme.example", "")
	must(t, err)
	p.post("/settings/brand", p.signIn(link), url.Values{"display_name": {"Halde <Labs>"}, "hue": {"plum"}, "legal_line": {"Halde Labs GmbH, Berlin"}})
	g := p.guest(p.acme, p.kestrel)
	for _, path := range []string{"/portal", "/portal/usage", "/portal/requests", "/portal/keys", "/portal/agreement", "/portal/requests/req_none"} {
		a := g.see(path)
		a.has(t, "Halde &lt;Labs&gt;", "tinted hue-plum")
		if text := regexp.MustCompile(`weir\.css|weir_live_|weir_test_`).ReplaceAllString(a.body, ""); strings.Contains(text, "Weir") || strings.Contains(text, "weir") {
			t.Errorf("%s names Weir", path)
		}
	}
	var paths []string
	for _, r := range p.routes {
		if r.Method == echo.GET && ofPortal(r.Path) {
			paths = append(paths, r.Path)
		}
	}
	if !slices.Contains(paths, "/portal") {
		t.Errorf("paths %v", paths)
	}
}
