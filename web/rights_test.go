package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/tenants"
)

// who of the roles may send each form of the pages behind sign-in. A form that
// is not here fails the test, so that a new one is placed on purpose.
var forms = map[string]string{
	"/settings/profile": "all", "/settings/password": "all", "/settings/sessions/end": "all", "/sign-out": "all", "/exports": "all",
	"/settings/tenant": "owner", "/settings/zone": "owner", "/settings/brand": "owner", "/settings/brand/logo": "owner", "/settings/brand/logo/remove": "owner",
	"/setup/provider": "owner admin", "/setup/plan": "owner admin billing", "/setup/key": "owner admin", "/setup/skip": "owner admin billing",
	"/setup/call": "owner admin developer", "/setup/trip": "owner admin developer", "/setup/refusal": "owner admin developer", "/setup/alert": "owner admin billing",
	"/quotes": "owner admin billing", "/quotes/preview": "owner admin billing", "/quotes/:id": "owner admin billing", "/quotes/:id/send": "owner admin billing", "/quotes/:id/resend": "owner admin billing", "/quotes/:id/withdraw": "owner admin billing", "/quotes/:id/discard": "owner admin billing",
	"/plans": "owner admin billing", "/plans/preview": "owner admin billing", "/plans/:id": "owner admin billing", "/plans/:id/publish": "owner admin billing", "/plans/:id/retire": "owner admin billing", "/plans/:id/move": "owner admin billing",
	"/customers": "owner admin developer", "/customers/:id": "owner admin developer", "/customers/:id/suspend": "owner admin developer", "/customers/:id/erase": "owner admin", "/customers/:id/resume": "owner admin developer",
	"/customers/:id/change": "owner admin billing", "/customers/:id/stay": "owner admin billing", "/customers/:id/cancel": "owner admin billing", "/customers/:id/keep": "owner admin billing", "/customers/:id/end": "owner admin billing", "/customers/:id/past-due": "owner admin billing", "/customers/:id/settled": "owner admin billing", "/customers/:id/pause": "owner admin billing", "/customers/:id/unpause": "owner admin billing", "/customers/:id/overrides": "owner admin billing", "/customers/:id/overrides/:override/end": "owner admin billing", "/customers/:id/plan": "owner admin billing",
	"/customers/:id/portal-link": "owner admin developer", "/customers/:id/portal-link/show": "owner admin developer", "/customers/:id/portal-end": "owner admin developer",
	"/providers": "owner admin", "/providers/:id/edit": "owner admin", "/providers/:id/clear": "owner admin", "/providers/:id/forget": "owner admin", "/providers/:id/verify": "owner admin", "/providers/:id/remove": "owner admin", "/providers/:id/rotate": "owner admin", "/providers/:id/switch": "owner admin",
	"/models/aliases": "owner admin", "/models/aliases/:id": "owner admin", "/models/aliases/:id/remove": "owner admin",
	"/providers/pools": "owner admin", "/providers/pools/:id": "owner admin", "/providers/pools/:id/remove": "owner admin",
	"/alerts": "owner admin billing", "/alerts/:id": "owner admin billing", "/alerts/:id/remove": "owner admin billing",
	"/webhooks": "owner admin", "/webhooks/:id": "owner admin", "/webhooks/:id/test": "owner admin", "/webhooks/:id/switch": "owner admin", "/webhooks/:id/replay": "owner admin", "/webhooks/:id/rotate": "owner admin", "/webhooks/:id/remove": "owner admin", "/webhooks/messages/:id/resend": "owner admin",
	"/reconcile/rebuild": "owner admin", "/pipeline/retire": "owner admin", "/pipeline/replay": "owner admin", "/pipeline/letters/:letter": "owner admin",
	"/playground": "owner admin developer", "/playground/stream": "owner admin developer",
	"/keys": "owner admin developer", "/keys/:id/change": "owner admin developer", "/keys/:id/rotate": "owner admin developer", "/keys/:id/revoke": "owner admin developer", "/keys/management": "owner admin",
}

var outside = []string{"/sign-in", "/sign-up", "/confirm", "/forgot", "/reset", "/first", "/q/:token/accept", "/q/:token/decline"}

func TestEveryFormIsTakenFromItsRolesAloneAndLeavesNothingOtherwise(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	_, plan := s.plan(tenant, "Team", perDay(limits.DimensionTokens, 5_000_000))
	_, customer := s.addCustomer(tenant, "Kestrel")
	s.practice(tenant, "Practice")
	s.customerKey(tenant, "Heron", "production")
	alias, err := s.tenants.AddAlias(t.Context(), tenant, tenants.NewAlias{Name: "fast", Candidates: []tenants.AliasCandidate{{Model: "m"}}})
	must(t, err)
	pool, err := s.tenants.AddPool(t.Context(), tenant, tenants.NewPool{Name: "account", Provider: "practice"})
	must(t, err)
	hook, err := s.notify.AddEndpoint(t.Context(), tenant, notify.NewEndpoint{URL: "http://127.0.0.1:9/"})
	must(t, err)
	told, err := s.notify.Test(t.Context(), tenant, hook.ID)
	must(t, err)
	alert, err := s.notify.AddAlert(t.Context(), tenant, notify.Alert{Kind: notify.AlertCooling, Mail: true})
	must(t, err)
	quote := pathOf(t, s.post("/quotes", session, quoteForm(plan)).header.Get("Location"))
	refs := map[string]string{"/quotes": strings.TrimPrefix(quote, "/quotes/"), "/alerts": id.Alert.Format(alert.ID), "/webhooks": id.Endpoint.Format(hook.ID), "/webhooks/messages": id.Message.Format(told.ID), "/plans": plan, "/customers": customer, "/providers": id.ProviderKey.Format(s.providers(tenant)[0].ID), "/models/aliases": id.Alias.Format(alias.ID), "/providers/pools": id.Pool.Format(pool.ID), "/keys": id.APIKey.Format(s.keyNamed(tenant, "production").ID)}
	notes := func() (n int) {
		s.scan(`select count(*) from audit_entries`, &n)
		return n
	}
	for _, r := range s.routes {
		if r.Method != http.MethodPost || slices.Contains(outside, r.Path) || ofPortal(r.Path) {
			continue
		}
		roles, placed := forms[r.Path]
		if !placed {
			t.Errorf("%s is not in forms", r.Path)
		}
		head, tail, _ := strings.Cut(r.Path, "/:id")
		path := r.Path
		if tail != "" || strings.HasSuffix(r.Path, ":id") {
			path = head + "/" + refs[head] + tail
		}
		for role := range rights {
			link, _, err := s.tenants.SignInLink(t.Context(), "ann@acme.example", "")
			must(t, err)
			session := s.signIn(link)
			s.super(`update members set role = $1 where tenant_id = $2`, role, tenant)
			if roles == "all" || slices.Contains(strings.Fields(roles), role) {
				continue
			}
			before := notes()
			a := s.post(path, session, url.Values{"name": {"Mine now"}, "word": {"Practice"}, "do": {"practice"}, "zone": {"Asia/Tokyo"}})
			if a.status != http.StatusForbidden || !strings.Contains(a.body, "Your role here is "+role) {
				t.Errorf("%s as %s: %d", path, role, a.status)
			}
			if notes() != before {
				t.Errorf("%s as %s left something", path, role)
			}
		}
	}
}
