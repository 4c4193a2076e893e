package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	exact "weir/internal/money"
)

func TestTheLevelsOfACustomerAreReadAgainWithWhatThePageSaysOfThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	_, plan := s.plan(made.Tenant.ID, "Team", perDay(limits.DimensionTokens, 5_000_000))
	customer, ref := s.addCustomer(made.Tenant.ID, "Kestrel")
	path := "/customers/" + ref
	s.post(path+"/plan", session, map[string][]string{"plan": {plan}})
	page := s.get(path, session)
	page.has(t, `id="tile-levels" hx-get="`+path+`/tiles/levels" hx-trigger="moved from:body, every 5s"`, `id="tile-day"`, `id="tile-heat"`, `data-live="/live"`, "reading.js", "<b>5,000,000</b> tokens left today")
	contract, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, customer.ID)
	must(t, err)
	_, err = s.engine.Reserve(t.Context(), limits.Request{Tenant: made.Tenant.ID, Plan: contract.Sets, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 1_000_000}}})
	must(t, err)
	s.clock.advance(5 * time.Second)
	again := s.get(path+"/tiles/levels", session)
	again.has(t, `id="tile-levels"`, `id="customer-says" hx-swap-oob="true"`, "<b>4,000,000</b> tokens left today", "as of 13:00:05 CET")
	again.hasNot(t, "<html")
	_, foreign := s.addCustomer(s.tenant("Bolt", "bo@bolt.example").Tenant.ID, "Theirs")
	for _, part := range []string{"levels", "day", "heat"} {
		if a := s.get("/customers/"+foreign+"/tiles/"+part, session); a.status != http.StatusNotFound {
			t.Errorf("%s of another tenant's customer: %d", part, a.status)
		}
		if a := s.get(path+"/tiles/"+part, session); a.status != http.StatusOK || !strings.Contains(a.body, `id="tile-`+part+`"`) {
			t.Errorf("%s: %d", part, a.status)
		}
	}
}

func TestTheLevelsOfAProviderKeyAreReadAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("admin")
	s.practice(made.Tenant.ID, "Practice")
	path := "/providers/" + id.ProviderKey.Format(s.providers(made.Tenant.ID)[0].ID)
	s.get(path, session).has(t, `id="tile-levels" hx-get="`+path+`/tiles/levels"`, `data-live="/live"`, "reading.js")
	s.clock.advance(5 * time.Second)
	again := s.get(path+"/tiles/levels", session)
	again.has(t, `id="tile-levels"`, "as of 13:00:05 CET")
	again.hasNot(t, "<html")
	s.super(`update members set role = 'developer' where tenant_id = $1`, made.Tenant.ID)
	if a := s.get(path+"/tiles/levels", session); a.status != http.StatusForbidden {
		t.Errorf("a developer: %d", a.status)
	}
}

func TestWhatAPageAsksByItselfKeepsNoSessionFromEnding(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	_, session := s.as("owner")
	ask := func(itself string) int {
		header := s.with(session)
		header["HX-Request"], header["HX-Target"], header[byItself] = "true", "tile-caps", itself
		return s.do(http.MethodGet, "/tiles/caps", nil, header).status
	}
	s.clock.advance(auth.SessionIdle - time.Minute)
	if got := ask("1"); got != http.StatusOK {
		t.Fatalf("%d", got)
	}
	s.clock.advance(2 * time.Minute)
	if got := ask("1"); got != http.StatusUnauthorized {
		t.Errorf("a session that nobody used: %d", got)
	}
	session = s.signInAgain("ann@acme.example")
	s.clock.advance(auth.SessionIdle - time.Minute)
	if got := ask(""); got != http.StatusOK {
		t.Fatalf("%d", got)
	}
	s.clock.advance(2 * time.Minute)
	if got := ask(""); got != http.StatusOK {
		t.Errorf("a session that is used: %d", got)
	}
}

// Hours are those of the tenant's zone: 23:30 in Berlin is yesterday's last.
func TestTheHeatStripShowsTheShareRefusedInTheHourOfTheZone(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	customer, ref := s.addCustomer(made.Tenant.ID, "Kestrel")
	yesterday := time.Date(2026, 11, 29, 22, 30, 0, 0, time.UTC)
	for i := range 10 {
		e := event(made.Tenant.ID, yesterday.Add(time.Duration(i)*time.Second))
		e.Customer = customer.ID
		if i < 2 {
			e.Outcome, e.Requests, e.Refused, e.Attempts, e.Tokens, e.Charge = "refused_requests", 0, 1, nil, limits.Tokens{}, exact.FromInt(0)
		}
		s.store(e)
	}
	a := s.get("/customers/"+ref+"/tiles/heat", session)
	a.has(t, `<td class="h3" title="23:00, 2 of 10">`, "2 of 10 calls refused in these seven days, 20.0%. Hours of Europe/Berlin, as of 13:00:00 CET", `<td class="hx" title="14:00, not yet">`, `title="13:00, no calls"`)
	_, row, _ := strings.Cut(a.body, "Sun 29 Nov")
	row, _, _ = strings.Cut(row, "</tr>")
	if !strings.Contains(row, "2 of 10") || strings.Count(a.body, "2 of 10</span>") != 1 {
		t.Errorf("the row of yesterday: %s", row)
	}
}
