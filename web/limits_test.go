package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

func TestEveryLimitStandsOnOnePageWithWhatIsLeftOfIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	shadow := perMinute(limits.DimensionTokens, 900)
	shadow.Mode, shadow.Models = limits.ModeShadow, []string{"gpt-4o*"}
	p, _ := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 2), perDay(limits.DimensionTokens, 5_000_000), shadow)
	c, err := s.tenants.AddCustomer(t.Context(), made.Tenant.ID, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	_, err = s.billing.Subscribe(t.Context(), made.Tenant.ID, c.ID, p.ID)
	must(t, err)
	_, err = s.tenants.AddAPIKey(t.Context(), made.Tenant.ID, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: c.ID, Name: "night", Limits: []limits.Limit{perMinute(limits.DimensionRequests, 1)}})
	must(t, err)
	_, err = s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{Provider: "practice", Name: "Trial", Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: 70_000, EachModel: true}}})
	must(t, err)
	contract, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, c.ID)
	must(t, err)
	for range 2 {
		_, err = s.engine.Reserve(t.Context(), limits.Request{Tenant: made.Tenant.ID, Plan: contract.Sets, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 100}}})
		must(t, err)
	}

	page := s.get("/limits", session)
	page.has(t, "1 is at its end.", "Kestrel", "plan Team, version 1", "Tokens a day", "calendar, Europe/Berlin", "4,999,800", "untouched")
	page.hasNot(t, "key night", "70,000") // untouched
	all := s.get("/limits?idle=show", session)
	all.has(t, "key night", "shadow", "never refuses", "Trial", "what the provider allows", "70,000", "practice-small", "6 of 6 limits shown")
	s.get("/limits?idle=show&mode=shadow", session).has(t, "1 of 6 limits shown")
	s.get("/limits?counts=tokens", session).hasNot(t, "Requests a minute")
	closest := s.get("/limits?order=closest", session)
	if first, second := strings.Index(closest.body, "Requests a minute"), strings.Index(closest.body, "Tokens a day"); first < 0 || first > second {
		t.Errorf("the closest is not first: %d, %d", first, second)
	}
	s.get("/tiles/limits?order=closest", session).has(t, "Requests a minute", `id="tile-limits"`)
}

func TestTheLimitsPageShowsTheLevelsOfAnEndUserWhoIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	each := perMinute(limits.DimensionRequests, 7)
	each.Scope.Kind = limits.ScopeEndUser
	p, _ := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 100), each)
	c, public := s.addCustomer(made.Tenant.ID, "Kestrel")
	_, err := s.billing.Subscribe(t.Context(), made.Tenant.ID, c.ID, p.ID)
	must(t, err)
	contract, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, c.ID)
	must(t, err)
	_, err = s.engine.Reserve(t.Context(), limits.Request{Tenant: made.Tenant.ID, Plan: contract.Sets, EndUser: "ann", Estimate: limits.Cost{Requests: 3}})
	must(t, err)

	s.get("/limits", session).has(t, "2 of 2 limits shown", "each end user", "a level for each", `name="end_user"`)
	s.get("/limits?end_user=ann", session).has(t, "end user ann", "3 held of 7")
	s.get("/limits?end_user=bob&idle=show", session).has(t, "end user bob", "0 used of 7")
	s.get("/customers/"+public, session).has(t, "Each end user by itself: 7 requests a minute.")
	if provider := s.get("/providers/new", session); strings.Contains(provider.body, "each end user") {
		t.Error("a provider limits each end user")
	}
}

func TestTheLimitsPageShowsEachRoleOnlyWhatItMaySee(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("viewer")
	p, _ := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 2))
	c, err := s.tenants.AddCustomer(t.Context(), made.Tenant.ID, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	_, err = s.billing.Subscribe(t.Context(), made.Tenant.ID, c.ID, p.ID)
	must(t, err)
	s.get("/limits?idle=show", session).hasNot(t, "Kestrel", "Refused, by hour")
}

func TestWhyACallWasRefusedIsOneFieldAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	unknown := id.Request.Format(uuid.Must(uuid.NewV7()))
	s.get("/limits?why="+url.QueryEscape(unknown), session).has(t, "There is no request "+unknown)
	s.get("/limits?why="+url.QueryEscape(`"><script>`), session).hasNot(t, `"><script>`)
	if a := s.get("/limits", ""); a.status != http.StatusSeeOther {
		t.Errorf("without a session: %d", a.status)
	}
}
