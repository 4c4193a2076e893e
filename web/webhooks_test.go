package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/notify"
)

var signingSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]{40,}`)

func TestAWebhookEndpointIsMadeTestedRotatedSwitchedAndRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	tenant := made.Tenant.ID
	a := s.post("/webhooks", session, url.Values{"url": {"https://127.0.0.1.nip.example:444/x"}, "types": {"customer.*"}})
	if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "its port must be 443") || !strings.Contains(a.body, "127.0.0.1.nip.example:444") {
		t.Errorf("a wrong address: %d", a.status)
	}
	a = s.post("/webhooks", session, url.Values{"url": {"http://127.0.0.1:9/in"}, "types": {"customer.created", "alert.fired"}})
	first := signingSecret.FindString(a.body)
	if a.status != http.StatusOK || first == "" {
		t.Fatalf("no secret: %d", a.status)
	}
	page, err := s.notify.Endpoints(t.Context(), tenant, uuid.Nil, 10)
	must(t, err)
	e := page.Items[0]
	at := "/webhooks/" + id.Endpoint.Format(e.ID)
	if b := s.get(at, session).body + s.get("/webhooks", session).body; strings.Contains(b, first) || !strings.Contains(b, "customer.created") {
		t.Error("a page shows the secret again, or not what the endpoint wants")
	}
	a = s.post(at+"/test", session, nil)
	if a.status != http.StatusSeeOther {
		t.Fatalf("test: %d", a.status)
	}
	if b := s.get(a.header.Get("Location"), session).body; !strings.Contains(b, "webhook.test") || !strings.Contains(b, "on its way") {
		t.Error("the message does not say where it stands")
	}
	if b := s.get("/webhooks?state=waiting", session).body; !strings.Contains(b, "webhook.test") {
		t.Error("the list does not show it")
	}
	if b := s.get("/webhooks?state=taken", session).body; strings.Contains(b, `<th scope="row" class="any"><a class="plain m" href="/webhooks/messages/`) {
		t.Error("the filter lets through what is not taken")
	}
	a = s.post(at+"/rotate", session, url.Values{"overlap_seconds": {"3600"}})
	if next := signingSecret.FindString(a.body); next == "" || next == first || !strings.Contains(a.body, "signs too until") {
		t.Errorf("rotation: %d", a.status)
	}
	if a = s.post(at+"/switch", session, nil); a.status != http.StatusSeeOther {
		t.Errorf("switch: %d", a.status)
	}
	if e, err := s.notify.Endpoint(t.Context(), tenant, e.ID); err != nil || e.DisabledWhy != notify.OffByPerson {
		t.Errorf("%+v, %v", e, err)
	}
	if a = s.post(at+"/replay", session, url.Values{"hours": {"24"}}); a.status != http.StatusConflict {
		t.Errorf("a replay to an endpoint that is off: %d", a.status)
	}
	if a = s.post(at+"/remove", session, nil); a.status != http.StatusSeeOther {
		t.Errorf("remove: %d", a.status)
	}
	if a = s.get(at, session); a.status != http.StatusNotFound {
		t.Errorf("a removed one: %d", a.status)
	}
}
