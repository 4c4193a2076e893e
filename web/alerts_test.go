package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/notify"
)

func TestAnAlertIsMadeShownAndRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	bad := url.Values{"when": {"amount"}, "dimension": {"tokens"}, "window": {"day"}, "threshold": {"lots"}, "channels": {"email"}}
	if a := s.post("/alerts", session, bad); a.status != http.StatusBadRequest || !strings.Contains(a.body, `value="lots"`) || !strings.Contains(a.body, "A whole number more than 0") {
		t.Errorf("a wrong threshold: %d", a.status)
	}
	bad.Set("threshold", "5")
	bad.Del("channels")
	if a := s.post("/alerts", session, bad); a.status != http.StatusBadRequest || !strings.Contains(a.body, "Name at least one channel") {
		t.Errorf("no channel: %d", a.status)
	}
	a := s.post("/alerts", session, url.Values{"when": {"amount"}, "dimension": {"spend"}, "window": {"month"}, "threshold": {"1,500"}, "channels": {"email", "webhook"}, "emails": {"ines@acme.example, maren@acme.example"}})
	if a.status != http.StatusSeeOther {
		t.Fatalf("made: %d %s", a.status, a.body)
	}
	page, err := s.notify.Alerts(t.Context(), tenant, uuid.Nil, 10)
	must(t, err)
	x := page.Items[0]
	if x.Amount != 1_500_000_000 || x.Dimension != limits.DimensionSpend || x.Window != limits.WindowMonth || len(x.Emails) != 2 || !x.Mail || !x.Webhook {
		t.Errorf("%+v", x)
	}
	body := s.get("/alerts", session).body
	for _, want := range []string{"Spend a month of the organisation", "1,500.00 EUR", "ines@acme.example, maren@acme.example, webhook", "never fired"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	at := "/alerts/" + id.Alert.Format(x.ID) + "/remove"
	if a := s.get(at, session); a.status != http.StatusOK || !strings.Contains(a.body, "Nobody is told by it") {
		t.Errorf("question: %d", a.status)
	}
	if a := s.post(at, session, nil); a.status != http.StatusSeeOther {
		t.Errorf("removed: %d", a.status)
	}
	if b := s.get("/alerts", session).body; !strings.Contains(b, "Nobody is told yet") {
		t.Error("it is still there")
	}
}

func TestAnAlertIsChangedInPlaceAndKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	a, err := s.notify.AddAlert(t.Context(), tenant, notify.Alert{Kind: notify.AlertUsage, Scope: limits.ScopeTenant, Dimension: limits.DimensionSpend, Window: limits.WindowDay, Amount: 12_345_678, Mail: true})
	must(t, err)
	at := "/alerts/" + id.Alert.Format(a.ID)
	s.get("/alerts", session).has(t, `href="`+at+`"`)
	s.get(at, session).has(t, `value="12.345678"`, "Passes, EUR a day", "Spend a day of the organisation")
	typed := url.Values{"name": {"Budget <b>"}, "threshold": {"12.50000001"}, "channels": {"email", "webhook"}, "emails": {"ines@acme.example, nobody"}, "paused": {"true"}}
	wrong := s.post(at, session, typed)
	wrong.has(t, `value="Budget &lt;b&gt;"`, `value="12.50000001"`, `value="ines@acme.example, nobody"`, "An amount of money more than 0", `name="paused" value="true" checked`)
	typed.Set("threshold", "12.5")
	if wrong = s.post(at, session, typed); wrong.status != http.StatusBadRequest {
		t.Errorf("a wrong address: %d", wrong.status)
	}
	wrong.has(t, "This is not an e-mail address", `href="#f-emails"`)
	if x, err := s.notify.Alert(t.Context(), tenant, a.ID); err != nil || x.Amount != a.Amount || x.PausedAt != nil {
		t.Errorf("it changed: %+v, %v", x, err)
	}
	typed.Set("emails", "ines@acme.example")
	if a := s.post(at, session, typed); a.status != http.StatusSeeOther {
		t.Fatalf("changed: %d %s", a.status, a.body)
	}
	x, err := s.notify.Alert(t.Context(), tenant, a.ID)
	if err != nil || x.Name != "Budget <b>" || x.Amount != 12_500_000 || !x.Webhook || x.PausedAt == nil || len(x.Emails) != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	s.get("/alerts", session).has(t, "Budget &lt;b&gt;", "Spend a day of the organisation", "rests")
}

func TestAlertsOfTheBooksAreMadeOnThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	for when, minutes := range map[string]int{"behind": 30, "differ": 0} {
		f := url.Values{"when": {when}, "dimension": {"tokens"}, "window": {"day"}, "channels": {"email"}}
		if minutes > 0 {
			f.Set("threshold", "30")
		}
		if a := s.post("/alerts", session, f); a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", when, a.status, a.body)
		}
		page, err := s.notify.Alerts(t.Context(), made.Tenant.ID, uuid.Nil, 10)
		must(t, err)
		if page.Items[0].Minutes != minutes {
			t.Errorf("%s: %+v", when, page.Items[0])
		}
	}
	s.get("/alerts", session).has(t, "The books fall behind", "30 minutes", "the books are complete", "The books of a day differ")
}
