package web

import (
	"net/http"
	"testing"
	"time"

	exact "weir/internal/money"
	"weir/internal/usage"
)

func TestUsageIsToldApartByWhatCallsStateAboutThemselves(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	var events []usage.Event
	for i, user := range []string{"ann", "ann", "bob", ""} {
		e := event(made.Tenant.ID, noon.Add(-time.Duration(i)*time.Minute))
		e.EndUser, e.Tags = user, map[string]string{"team": []string{"red", "blue"}[i%2]}
		events = append(events, e)
	}
	s.store(events...)
	session := s.signIn(made.SignInToken)
	s.get("/usage?by=end_user", session).has(t, "End user", ">ann<", ">bob<", "none stated", "by tag team", "40 tokens in 4 requests", "complete to")
	s.get("/usage?by=tag:team", session).has(t, "Tag team", ">red<", ">blue<", "tag=team%3Dred")
	s.get("/usage?by=tag:none", session).has(t, "none stated", "40 tokens in 4 requests")
	s.get("/usage?end_user=ann", session).has(t, "20 tokens in 2 requests")
	s.get("/usage?tag=team%3Dblue", session).has(t, "20 tokens in 2 requests")
	s.get("/usage?tag=blue", session).has(t, "This is no tag", "40 tokens in 4 requests")
	s.get("/usage.csv?by=end_user", session).has(t, ",end_user,", ",ann,", ",bob,")
	s.get("/requests?tag=team%3Dblue&q=ann", session).has(t, "1 call in 24 hours match")
	s.get("/requests?tag=blue", session).has(t, "This is no tag")
}

func TestMarginSetsChargeBesideCostAndSaysWhatHasNoPrice(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made := s.tenant("Acme", "ann@acme.example")
	cost := exact.FromInt(3_000_000_000_000)
	priced, unpriced, foreign := event(made.Tenant.ID, noon.Add(-time.Minute)), event(made.Tenant.ID, noon.Add(-time.Minute)), event(made.Tenant.ID, noon.Add(-time.Minute))
	priced.Charge, priced.Cost, priced.CostCurrency = exact.FromInt(4_000_000_000_000), &cost, "EUR"
	foreign.Cost, foreign.CostCurrency, foreign.ModelAsked = &cost, "USD", "claude"
	unpriced.ModelAsked = "o4-mini"
	s.store(priced)
	session := s.signIn(made.SignInToken)
	a := s.get("/usage?show=margin", session)
	a.has(t, "Provider cost", "3.00 EUR", "1.00 EUR", "25.0%")
	a.hasNot(t, "without a price", "different currencies")
	s.store(unpriced)
	s.get("/usage?show=margin", session).has(t, "1 call without a price", "at most ")
	s.store(foreign)
	s.get("/usage?show=margin", session).has(t, "3.00 EUR", "3.00 USD", "−3.00 USD", "never added up")
	s.get("/usage.csv?show=margin", session).has(t, "margin_EUR", "margin_USD", "requests_without_price")
	s.super(`update members set role = 'developer'`)
	b := s.get("/usage?show=margin", session)
	if b.status != http.StatusOK {
		t.Fatal(b.status)
	}
	b.hasNot(t, "Margin", "Provider cost", "3.00 EUR", "3.00 USD")
}
