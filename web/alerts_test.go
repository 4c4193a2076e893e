package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
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
