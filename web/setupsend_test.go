package web

import (
	"net/http"
	"net/url"
	"testing"

	"weir/internal/id"
)

func TestAPageSendsCallsOnlyForWhoMayMakeKeysAndThroughAGateway(t *testing.T) {
	t.Parallel()
	once := url.Values{"once": {id.APIKey.Format(id.At(noon))}}
	for role, want := range map[string]int{"owner": http.StatusNotFound, "billing": http.StatusForbidden, "viewer": http.StatusForbidden} {
		s := newSite(t, local) // without a gateway
		_, session := s.as(role)
		before := s.fingerprint()
		for _, path := range []string{"/setup/call", "/setup/trip"} {
			if a := s.post(path, session, once); a.status != want || s.fingerprint() != before {
				t.Errorf("%s as %s: %d, or something was changed", path, role, a.status)
			}
		}
		s.get("/setup?step=call", session).hasNot(t, "Send it for me")
	}
}
