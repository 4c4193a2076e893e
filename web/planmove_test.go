package web

import (
	"net/http"
	"net/url"
	"testing"

	"weir/internal/billing"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
)

func TestEverybodyOnAnOlderVersionIsMovedAfterAPreview(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("billing")
	at, small, _ := s.subscribed(made.Tenant.ID)
	plan, err := id.Plan.Parse(small)
	must(t, err)
	_, err = s.billing.AddVersion(t.Context(), made.Tenant.ID, plan, billing.NewVersion{Limits: []limits.Limit{perDay(limits.DimensionRequests, 3)}, TrialDays: 14})
	must(t, err)
	_, err = s.billing.Publish(t.Context(), made.Tenant.ID, plan)
	must(t, err)
	s.get("/plans/"+small, session).has(t, "Who is on it", "Kestrel", "Compare versions", "Move 1 customer to version 2", "14 trial days")
	s.get("/plans/"+small+"/compare", session).has(t, "Version 1 and version 2", "Requests a day", "changed", "Trial days")
	for _, same := range []string{"?to=1", "?from=2&to=2"} { // no version is compared with itself
		if a := s.get("/plans/"+small+"/compare"+same, session); a.status != http.StatusSeeOther || a.header.Get("Location") != "/plans/"+small+"/compare" {
			t.Errorf("%s: %d to %s", same, a.status, a.header.Get("Location"))
		}
	}
	page := s.get("/plans/"+small+"/move?at=now", session)
	page.has(t, "1 customer moves", "Kestrel", "version 1", "−10.00 EUR")
	token := tokenField.FindStringSubmatch(page.body)[1]
	for range 2 {
		if a := s.post("/plans/"+small+"/move", session, url.Values{"token": {token}, "at": {"now"}}); a.status != http.StatusSeeOther {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	s.get(at, session).has(t, "Small, version 2")
	s.get("/plans/"+small+"/move?at=now", session).has(t, "Nobody is on an older version.")
	s.get("/plans/"+small+"/retire", session).has(t, "Retire Small?", "customer stays on it")
	s.post("/plans/"+small+"/retire", session, nil)
	s.get("/plans/"+small, session).has(t, "retired")
	s.get("/plans/"+small+"/move", session).has(t, "no published version")
}

// What the editor does not understand it must not lose.
func TestTheEditorKeepsTiersPackagesTrialAndMinimum(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	typed := url.Values{
		"name": {"Tiered"}, "limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"5"},
		"prices.0.class": {"input"}, "prices.0.price": {""}, "prices.0.models": {""}, "prices.0.scheme": {"graduated"}, "prices.0.included": {"1,000,000"}, "prices.0.tiers": {"10,000,000: 1.00; then: 0.50"},
		"prices.1.class": {"output"}, "prices.1.price": {"1.00"}, "prices.1.models": {""}, "prices.1.scheme": {"package"}, "prices.1.package_size": {"1,000,000"},
		"minimum.amount": {"20.00"}, "trial_days": {"14"}, "base_fee.amount": {"49.00"},
	}
	wrong := url.Values{}
	for k, v := range typed {
		wrong[k] = v
	}
	wrong.Set("prices.0.tiers", "up to a lot")
	s.post("/plans", session, wrong).has(t, "Write tiers as", `value="up to a lot"`, `value="14"`)
	a := s.post("/plans", session, typed)
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	path := pathOf(t, a.header.Get("Location"))
	s.get(path+"/edit", session).has(t, `value="10,000,000: 1.00; then: 0.50"`, `value="1,000,000"`, `value="14"`, `value="20.00"`, `value="49.00"`)
	plans, err := s.billing.FindPlans(t.Context(), made.Tenant.ID, "Tiered", made.Tenant.ID, 1)
	must(t, err)
	p, err := s.billing.Plan(t.Context(), made.Tenant.ID, plans[0].ID)
	must(t, err)
	for _, x := range p.Version.Prices {
		sum, _ := x.Rate(12_500_000)
		if want := map[usage.Class]string{usage.Input: "10.25", usage.Output: "13.00"}[x.Class]; sum.Decimal() != want {
			t.Errorf("%s: %s", x.Class, sum.Decimal())
		}
	}
}
