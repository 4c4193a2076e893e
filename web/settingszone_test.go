package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/limits"
)

// settings is the page's text, on one line.
func (s site) settings(session string) string {
	s.t.Helper()
	return strings.Join(strings.Fields(s.get("/settings", session).body), " ")
}

func TestADayAfterAChangeOfZoneIsComparedWithTheDayBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	began := time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC) // in Berlin
	s.addCalls(made.Tenant.ID, began.Add(30*time.Minute), "ok", false, 4, 0, 100, "0")
	s.post("/settings/zone", session, url.Values{"zone": {"America/New_York"}}).goesOn(t, "/settings?done=zone-asked")
	s.clock.advance(6 * time.Hour)
	s.get("/", session)            // the session goes on
	s.clock.advance(6 * time.Hour) // an hour into the first day there, at 19:00
	s.addCalls(made.Tenant.ID, began.AddDate(0, 0, 1).Add(15*time.Minute), "ok", false, 2, 0, 100, "0")
	home := s.get("/", session)
	home.has(t, "4 yesterday")
	home.hasNot(t, "none yesterday")
	strip := s.get("/limits", session) // its hours are those of the clock there
	strip.has(t, `title="18:00, 0 of 2"`, `title="19:00, no calls"`, `title="20:00, not yet"`, `title="00:00, no calls"`)
}

func TestAnOwnerChangesTheTimeZoneAndReadsWhenItCounts(t *testing.T) {
	s := newSite(t, localSite)
	me := s.person()
	if page := s.settings(me); !strings.Contains(page, "from Tuesday 1 December 00:00 Europe/Berlin") {
		t.Fatalf("it does not say when a change would count: %s", page)
	}
	if a := s.post("/settings/zone", me, url.Values{"zone": {"Asia/Tokyo"}}); a.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	page := s.settings(me)
	for _, want := range []string{
		"From Tuesday 1 December 00:00 Europe/Berlin they begin at 00:00 <strong>Asia/Tokyo</strong>", "Take it back: stay in Europe/Berlin",
		"until Wednesday 2 December 00:00 Asia/Tokyo",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("missing %q", want)
		}
	}
	s.post("/settings/zone", me, url.Values{"zone": {"Europe/Berlin"}})
	if page := s.settings(me); strings.Contains(page, "Tokyo") || !strings.Contains(page, "<strong>Europe/Berlin</strong>") {
		t.Error("the change was not taken back")
	}
	s.post("/settings/zone", me, url.Values{"zone": {"Asia/Tokyo"}})
	s.clock.advance(11 * time.Hour)
	if page := s.settings(me); !strings.Contains(page, "Days begin at 00:00 <strong>Asia/Tokyo</strong>") || strings.Contains(page, "Take it back") {
		t.Error("after the end of the day the new zone does not count")
	}
}

func TestAWrongZoneIsNamedAtItsField(t *testing.T) {
	s := newSite(t, localSite)
	me := s.person()
	for _, zone := range []string{"", "Mars/Base", "Local"} {
		a := s.post("/settings/zone", me, url.Values{"zone": {zone}})
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, `href="#f-zone"`) {
			t.Errorf("%q: %d", zone, a.status)
		}
	}
}

func TestOnlyAnOwnerChangesTheTimeZone(t *testing.T) {
	s := newSite(t, localSite)
	for _, role := range []string{"admin", "developer", "billing", "viewer"} {
		_, session := s.as(role)
		if a := s.post("/settings/zone", session, url.Values{"zone": {"Asia/Tokyo"}}); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", role, a.status)
		}
		if page := s.settings(session); strings.Contains(page, `action="/settings/zone"`) {
			t.Errorf("%s is offered the change", role)
		}
	}
}

// The gauge of a cap goes on through a change, and is reset where the old zone's
// day ends.
func TestACapKeepsWhatIsUsedUntilTheOldZonesDayEnds(t *testing.T) {
	s := newSite(t, localSite)
	made, session := s.as("owner")
	customer, _ := s.addCustomer(made.Tenant.ID, "Ada's Apps")
	plan, _ := s.plan(made.Tenant.ID, "Starter", limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 10})
	_, err := s.billing.Subscribe(t.Context(), made.Tenant.ID, customer.ID, plan.ID)
	must(t, err)
	left := func() (int64, time.Time) {
		contract, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, customer.ID)
		must(t, err)
		states, err := s.engine.Live(t.Context(), made.Tenant.ID, contract.Limits, "", "")
		must(t, err)
		return states[0].Remaining, states[0].ResetAt
	}
	call := func() {
		contract, err := s.billing.ContractOf(t.Context(), made.Tenant.ID, customer.ID)
		must(t, err)
		_, err = s.engine.Reserve(t.Context(), limits.Request{Tenant: made.Tenant.ID, Plan: contract.Sets, Estimate: limits.Cost{Requests: 1}, Forget: true})
		must(t, err)
	}
	call()
	s.post("/settings/zone", session, url.Values{"zone": {"Asia/Tokyo"}})
	call()
	end := noon.Add(11 * time.Hour)
	if n, at := left(); n != 8 || !at.Equal(end) {
		t.Fatalf("%d left until %s, want 8 until %s", n, at, end)
	}
	s.clock.advance(11 * time.Hour)
	call()
	if n, at := left(); n != 9 || !at.Equal(end.Add(16*time.Hour)) {
		t.Fatalf("%d left until %s, want 9 until midnight in Tokyo", n, at)
	}
}
