package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// works is a tenant that has one of everything, and the addresses of its pages.
type works struct {
	site
	session string
	secrets []string
	pages   []string
	posts   map[string]url.Values
}

func newWorks(t *testing.T) works {
	t.Helper()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	key := s.customerKey(tenant, "Kestrel", "production")
	p, plan := s.plan(tenant, "Team", perMinute(limits.DimensionRequests, 500), perDay(limits.DimensionTokens, 5_000_000))
	_, err := s.billing.Subscribe(t.Context(), tenant, key.Customer, p.ID)
	must(t, err)
	_, err = s.billing.SaveDraft(t.Context(), tenant, p.ID, "", newVersion(900))
	must(t, err)
	k, err := s.tenants.AddProviderKey(t.Context(), tenant, tenants.NewProviderKey{
		Provider: "practice", Name: "Practice", Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 100, EachModel: true}, perDay(limits.DimensionRequests, 9)},
	})
	must(t, err)
	s.addUse(tenant, key.Customer, "practice-small", "ok", 4, 0, 100)
	_, alone := s.addCustomer(tenant, "On no plan")
	pool, err := s.tenants.AddPool(t.Context(), tenant, tenants.NewPool{Name: "account", Keys: []uuid.UUID{k.ID}})
	must(t, err)
	alias, err := s.tenants.AddAlias(t.Context(), tenant, tenants.NewAlias{Name: "fast", Candidates: []tenants.AliasCandidate{{Model: "practice-small", Pool: pool.ID}}})
	must(t, err)
	pooled, named := "/providers/pools/"+id.Pool.Format(pool.ID), "/models/aliases/"+id.Alias.Format(alias.ID)
	customer, provider, keyAt := "/customers/"+id.Customer.Format(key.Customer), "/providers/"+id.ProviderKey.Format(k.ID), "/keys/"+id.APIKey.Format(key.ID)
	word := url.Values{"word": {"production"}}
	return works{site: s, session: session, secrets: []string{key.Secret, made.ManagementKey.Secret}, pages: []string{
		"/keys", "/keys?customer=" + strings.TrimPrefix(customer, "/customers/"), "/keys/new", "/keys/new?customer=" + alone, "/keys/new/management", keyAt, keyAt + "/revoke",
		"/providers", "/providers/new", "/providers/new?provider=practice", provider, provider + "/remove",
		pooled, pooled + "/remove", "/providers/pools/new", "/models", "/models?q=none", "/models/way?model=fast", "/models/way?model=practice-small", "/models/aliases/new", "/playground", "/playground?model=fast&key=" + strings.TrimPrefix(keyAt, "/keys/"), named, named + "/remove",
		"/plans", "/plans/new", "/plans/" + plan, "/plans/" + plan + "/edit",
		"/customers", "/customers?q=none", "/customers/new", customer, customer + "/edit", customer + "/suspend", "/customers/" + alone, "/customers?done=customer-added", "/customers?done=<script>",
	}, posts: map[string]url.Values{
		"/keys": word, "/keys/management": {"name": {"x"}, "scopes": {"*"}}, keyAt + "/revoke": word, keyAt + "/change": {"name": {"x"}}, keyAt + "/rotate": {"overlap_seconds": {"0"}},
		"/providers/pools": {"name": {"x"}}, pooled: {"name": {"x"}}, pooled + "/remove": {"word": {"account"}},
		"/playground": {"model": {"fast"}}, "/playground/stream": {"model": {"fast"}}, "/models/aliases": {"name": {"x"}}, named: {"name": {"x"}}, named + "/remove": {"word": {"fast"}},
		"/providers": {"provider": {"practice"}, "name": {"x"}}, provider + "/verify": {}, provider + "/remove": {"word": {"Practice"}},
		"/plans": planForm(), "/plans/preview": planForm(), "/plans/" + plan: planForm(), "/plans/" + plan + "/publish": {},
		"/customers": {"name": {"x"}}, "/customers/" + alone + "/plan": {"plan": {plan}}, customer: {"name": {"x"}}, customer + "/change": {"token": {"x"}}, customer + "/stay": {}, customer + "/cancel": {}, customer + "/keep": {}, customer + "/end": {"word": {"x"}}, customer + "/past-due": {}, customer + "/settled": {}, customer + "/pause": {}, customer + "/unpause": {}, customer + "/overrides": {"reason": {"x"}}, customer + "/suspend": {}, customer + "/resume": {},
	}}
}

func TestPagesAtWorkAreWholeAndBringNothingInline(t *testing.T) {
	t.Parallel()
	s := newWorks(t)
	before := s.fingerprint()
	for _, path := range s.pages {
		a := s.get(path, s.session)
		if a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		a.has(t, "<h1", `id="main"`, `aria-current="page"`)
		a.hasNot(t, s.secrets...)
		if m := inline.FindString(a.body); m != "" {
			t.Errorf("%s: inline %q", path, m)
		}
		for _, m := range scriptTag.FindAllStringSubmatch(a.body, -1) {
			if !strings.Contains(m[0], ` src="/static/`) || m[1] != "" {
				t.Errorf("%s: inline script %q", path, m[0])
			}
		}
		seen := map[string]bool{}
		for _, m := range idAttribute.FindAllStringSubmatch(a.body, -1) {
			if seen[m[1]] {
				t.Errorf("%s has the id %s twice", path, m[1])
			}
			seen[m[1]] = true
		}
		s.do(http.MethodHead, path, nil, s.with(s.session))
	}
	if s.fingerprint() != before {
		t.Error("reading changed something")
	}
}

func TestOtherSitesAndNobodyChangeNothingAtWork(t *testing.T) {
	t.Parallel()
	s := newWorks(t)
	before := s.fingerprint()
	for path, form := range s.posts {
		header := s.with(s.session)
		if a := s.do(http.MethodPost, path, form, header); a.status != http.StatusForbidden {
			t.Errorf("%s from nowhere: %d", path, a.status)
		}
		header["Sec-Fetch-Site"] = "cross-site"
		if a := s.do(http.MethodPost, path, form, header); a.status != http.StatusForbidden {
			t.Errorf("%s from another site: %d", path, a.status)
		}
		if a := s.post(path, "", form); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "Nothing was changed") {
			t.Errorf("%s without a session: %d", path, a.status)
		}
	}
	for _, path := range s.pages {
		if a := s.get(path, ""); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/sign-in") {
			t.Errorf("%s without a session: %d", path, a.status)
		}
	}
	if s.fingerprint() != before {
		t.Error("something was changed")
	}
}

func TestTheRailLeadsOnlyWhereARoleMayGo(t *testing.T) {
	t.Parallel()
	for role, hidden := range map[string][]string{
		"owner": {}, "developer": {"/providers", "/webhooks", "/alerts", "/quotes"}, "billing": {"/providers", "/keys", "/models", "/playground", "/webhooks"},
		"viewer": {"/providers", "/quotes", "/keys", "/customers", "/models", "/playground", "/webhooks", "/alerts"},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, local)
			_, session := s.as(role)
			rail := s.get("/plans", session)
			for _, g := range navigation {
				for _, e := range g.Entries {
					shown := strings.Contains(rail.body, `<a href="`+e.Path+`"`)
					if shown == contains(hidden, e.Path) {
						t.Errorf("%s: shown %v", e.Path, shown)
					}
					if a := s.get(e.Path, session); shown && a.status != http.StatusOK {
						t.Errorf("%s leads to %d", e.Path, a.status)
					}
				}
			}
		})
	}
}

func newVersion(requests int64) billing.NewVersion {
	return billing.NewVersion{Limits: []limits.Limit{perMinute(limits.DimensionRequests, requests)}}
}
