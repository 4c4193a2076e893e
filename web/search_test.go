package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// found asks as the palette does.
func (s site) found(session, text string) answer {
	s.t.Helper()
	header := s.with(session)
	header["HX-Request"] = "true"
	return s.do(http.MethodGet, "/search?q="+text, nil, header)
}

func TestTheSearchFindsWhatIsTheTenantsByNameEndAndID(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	other := s.tenant("Bolt", "bo@bolt.example")
	_, plan := s.plan(made.Tenant.ID, "Team_1", perMinute(limits.DimensionRequests, 5))
	customer, ref := s.addCustomer(made.Tenant.ID, "Kestrel Support")
	_, foreign := s.addCustomer(other.Tenant.ID, "Kestrel of Bolt")
	key, err := s.tenants.AddAPIKey(t.Context(), made.Tenant.ID, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: customer.ID, Name: "night batch"})
	must(t, err)
	call, away := event(made.Tenant.ID, noon.Add(-time.Minute)), event(other.Tenant.ID, noon.Add(-time.Minute))
	s.store(call)
	s.store(away)
	request := id.Request.Format(call.RequestID)
	for text, want := range map[string]string{
		"kestrel":                `href="/customers/` + ref + `"`,
		ref:                      `href="/customers/` + ref + `"`,
		"team":                   `href="/plans/` + plan + `"`,
		"team_":                  `href="/plans/` + plan + `"`,
		plan:                     `href="/plans/` + plan + `"`,
		"night":                  `href="/keys/` + id.APIKey.Format(key.ID) + `"`,
		key.Last4:                "night batch",
		id.APIKey.Format(key.ID): "night batch",
		request:                  `href="/requests/` + request + `"`,
		"new+plan":               `href="/plans/new"`,
		"sign":                   `action="/sign-out"`,
		"dark":                   "data-theme-switch",
		"usa":                    `href="/usage"`,
		"":                       `href="/customers/new"`,
	} {
		a := s.found(session, text)
		a.has(t, want)
		a.hasNot(t, "<html", "Bolt", foreign)
		if t.Failed() {
			t.Fatalf("searching for %q", text)
		}
	}
	for _, text := range []string{foreign, id.Request.Format(away.RequestID), "%25", "%00", "%ff", strings.Repeat("x", 5000), "teamx1", "<script>"} {
		a := s.found(session, text)
		if a.status != http.StatusOK {
			t.Errorf("%q: %d", text, a.status)
		}
		if text != "%00" && text != "%ff" {
			a.has(t, "Nothing here is called")
		}
		a.hasNot(t, "<script>")
	}
	s.get("/search?q=kestrel", session).has(t, "<html", "<h1>Search</h1>", `href="/customers/`+ref+`"`)
}

func TestTheSearchShowsARoleOnlyWhatItMaySee(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("viewer")
	customer, _ := s.addCustomer(made.Tenant.ID, "Zebra")
	_, err := s.tenants.AddAPIKey(t.Context(), made.Tenant.ID, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: customer.ID, Name: "Zebra key"})
	must(t, err)
	s.found(session, "zebra").has(t, "Nothing here is called")
	s.found(session, "").hasNot(t, "/customers", "/providers", "/keys", "/plans/new")
	s.super(`update members set role = 'billing' where tenant_id = $1`, made.Tenant.ID)
	billing := s.found(session, "zebra")
	billing.has(t, "/customers/")
	billing.hasNot(t, "Zebra key")
	s.super(`update members set role = 'developer' where tenant_id = $1`, made.Tenant.ID)
	s.found(session, "zebra").has(t, "Zebra key")
	s.found(session, "first").hasNot(t, "management")
}

// A phone has four pages at hand in every role, and the rest behind "More".
func TestEveryRoleHasFourTabsAndSeesWhereItIs(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	for role := range rights {
		s.super(`update members set role = $1 where tenant_id = $2`, role, made.Tenant.ID)
		_, bar, _ := strings.Cut(s.get("/usage", session).body, `class="tab-bar"`)
		bar, _, _ = strings.Cut(bar, "</nav>")
		if n := strings.Count(bar, "<a "); n != 4 || strings.Count(bar, `aria-current="page"`) != 1 || strings.Contains(bar, `class="here"`) {
			t.Errorf("%s: %d tabs: %s", role, n, bar)
		}
	}
	s.get("/settings", session).has(t, `class="here"`)
}
