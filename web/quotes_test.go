package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"weir/internal/limits"
	"weir/internal/tenants"
)

// quoteForm is what the form of a new quote sends.
func quoteForm(plan string) url.Values {
	return url.Values{
		"to.name": {"Adaeze Finch"}, "to.email": {"adaeze@marlow.example"}, "to.company": {"Marlow & Finch"}, "customer": {""}, "plan": {plan},
		"volumes.0.model": {"gpt-4o"}, "volumes.0.requests": {""}, "volumes.0.input_tokens": {"16,800,000"}, "volumes.0.cached_input_tokens": {""}, "volumes.0.output_tokens": {""},
		"note": {"As we said."}, "valid_until": {""},
	}
}

var linkIn = regexp.MustCompile(`/q/[A-Za-z0-9_-]{43}`)

// quoted is a quote that is out: the path of its page here, and its own.
func (s site) quoted(session, plan string) (path, public string) {
	s.t.Helper()
	a := s.post("/quotes", session, quoteForm(plan))
	if a.status != http.StatusSeeOther {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	path = pathOf(s.t, a.header.Get("Location"))
	if a := s.post(path+"/send", session, url.Values{}); a.status != http.StatusSeeOther {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	return path, linkIn.FindString(s.get(path, session).body)
}

func TestAQuoteFormKeepsWhatWasTypedAndNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	s.get("/quotes", session).has(t, "No quote yet.")
	s.get("/quotes/new", session).has(t, "Choose a plan", "Team: 500 requests a minute")
	a := s.post("/quotes", session, changed(quoteForm(plan), "to.email", "nobody", "volumes.0.input_tokens", "a lot", "valid_until", "soon"))
	if a.status != http.StatusBadRequest {
		t.Fatal(a.status)
	}
	a.has(t, `value="nobody"`, `value="a lot"`, "This is not a whole number", "This is not a day such as", `value="Marlow &amp; Finch"`)
	a = s.post("/quotes", session, changed(quoteForm(plan), "to.email", "nobody", "to.name", ""))
	if a.status != http.StatusBadRequest {
		t.Fatal(a.status)
	}
	a.has(t, `value="nobody"`, "This is not an e-mail address", "A name is needed.", "As we said.")
	s.get("/quotes", session).has(t, "No quote yet.")
}

func TestTermsOfAQuoteAloneBeginAsThePlansAndAreShownAsSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	a := s.post("/quotes", session, changed(quoteForm(plan), "do", "own"))
	a.has(t, `name="own" value="true"`, `name="limits.0.amount"`, `value="500"`)
	form := changed(quoteForm(plan), "own", "true", "limits.0.dimension", "requests", "limits.0.window", "minute", "limits.0.amount", "800", "limits.0.burst", "", "limits.0.models", "", "base_fee.amount", "59.00")
	a = s.post("/quotes", session, form)
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	path := pathOf(t, a.header.Get("Location"))
	s.get(path, session).has(t, "<b>800</b> requests a minute", "59.00 EUR", "terms of its own", "Send it")
	s.get(path+"/edit", session).has(t, `value="800"`, "as this quote has it")
	if plans := s.get("/plans", session).body; strings.Count(plans, "/plans/pln_") != 1 {
		t.Error("what one quote offers is in the list of plans")
	}
}

func TestTheQuotesPageIsSeenAcceptedAndDeclinedWithoutSigningIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	path, public := s.quoted(session, plan)
	s.get(public, session).has(t, "Marlow &amp; Finch") // one who is signed in is not counted
	s.get(path, session).has(t, "not opened yet")
	page := s.get(public, "")
	page.has(t, "<b>500</b> requests a minute", "As we said.", "Accept this quote", "to the end of the day")
	if got := page.header.Get("X-Robots-Tag"); got != "noindex, nofollow" {
		t.Errorf("robots are told %q", got)
	}
	s.get(path, session).has(t, "opened once")

	yes := url.Values{"version": {"1"}, "name": {"Adaeze Finch"}, "email": {"adaeze@marlow.example"}, "agreed": {"true"}}
	a := s.post(public+"/accept", "", changed(url.Values{"version": {"1"}, "name": {"Ada"}, "email": {"adaeze@marlow.example"}}))
	if a.status != http.StatusBadRequest {
		t.Fatal(a.status)
	}
	a.has(t, "Tick this to accept.", `value="Ada"`)
	a = s.post(public+"/accept", "", changed(url.Values{"version": {"1"}, "name": {"Ada"}, "email": {"x"}, "agreed": {"true"}}))
	a.has(t, "This is not an e-mail address", `value="Ada"`)
	first := s.post(public+"/accept", "", yes)
	first.has(t, "Your first API key", "weir_live_", "I have stored it")
	again := s.post(public+"/accept", "", yes)
	again.has(t, "It was accepted already.")
	if strings.Contains(again.body, tenants.LivePrefix) {
		t.Error("the secret is shown twice")
	}
	s.get(public, "").has(t, "This quote was accepted.")
	s.get(path, session).has(t, "accepted", "The customer")

	_, public = s.quoted(session, plan)
	if a := s.post(public+"/decline", "", url.Values{"version": {"1"}, "reason": {"too little"}}); a.status != http.StatusSeeOther {
		t.Fatal(a.status)
	}
	s.get(public, "").has(t, "This quote was declined.")
	s.get("/quotes", session).has(t, "Accepted", "Closed", "too little")
}

func TestAQuoteOverTheCeilingAsksForAReasonOnItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	_, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{Provider: "practice", Name: "Practice", Limits: []limits.Limit{perMinute(limits.DimensionRequests, 100)}})
	must(t, err)
	ceiling := int64(450)
	_, err = s.tenants.Change(t.Context(), made.Tenant.ID, tenants.TenantChange{CeilingPercent: &ceiling})
	must(t, err)
	a := s.post("/quotes", session, quoteForm(plan))
	path := pathOf(t, a.header.Get("Location"))
	s.get(path, session).has(t, "Capacity check", "your ceiling: 4.5×", "carry 100 requests a minute; sold 0, this adds 500", "over 4.5×", `name="reason"`)
	if a := s.post(path+"/send", session, url.Values{"reason": {""}}); a.status != http.StatusUnprocessableEntity {
		t.Fatalf("without a reason: %d", a.status)
	}
	if a := s.post(path+"/send", session, url.Values{"reason": {"we add a second account"}}); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(path, session).has(t, "we add a second account", "5× of what the keys carried")
	s.get("/plans/"+strings.TrimPrefix(plan, "/plans/")+"/edit", session).has(t, "Capacity check")
}

func TestAQuoteOfACustomerOlderThanTheListStaysThatCustomers(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	_, customer := s.addCustomer(made.Tenant.ID, "The first of many")
	for range mostChoices {
		s.addCustomer(made.Tenant.ID, "Another")
	}
	a := s.post("/quotes", session, changed(quoteForm(plan), "customer", customer))
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(pathOf(t, a.header.Get("Location"))+"/edit", session).has(t, `value="`+customer+`" selected`, "The first of many")
}

func TestAPlanWithOneVersionIsComparedWithNone(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perMinute(limits.DimensionRequests, 500))
	if a := s.get("/plans/"+plan+"/compare", session); a.status != http.StatusSeeOther || pathOf(t, a.header.Get("Location")) != "/plans/"+plan {
		t.Fatalf("%d %s", a.status, a.header.Get("Location"))
	}
}
