package web

import (
	"net/http"
	"net/url"
	"testing"

	"weir/internal/id"
	"weir/internal/tenants"
)

func TestLimitsOfAProviderKeyAreChangedOnItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	k, err := s.tenants.AddProviderKey(t.Context(), made.Tenant.ID, tenants.NewProviderKey{Provider: "practice", Name: "Trial"})
	must(t, err)
	at := "/providers/" + id.ProviderKey.Format(k.ID)
	s.get(at, session).has(t, at+"/edit", "No limit is set")
	in := func(amount string) url.Values {
		return url.Values{"name": {"Trial, tier 2"}, "limits.0.dimension": {"tokens"}, "limits.0.window": {"minute"}, "limits.0.amount": {amount}, "limits.0.mode": {"enforce"}, "limits.0.outage": {"share"}}
	}
	s.post(at+"/edit", session, in("plenty")).has(t, "not a whole number", `value="plenty"`, `value="Trial, tier 2"`)
	if a := s.post(at+"/edit", session, in("800,000")); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(at, session).has(t, "Trial, tier 2", "800,000")
	s.get(at+"/edit", session).has(t, `value="800,000"`)
	zoned := in("800,000")
	zoned.Set("zone", "Mars/Olympus")
	s.post(at+"/edit", session, zoned).has(t, "not an IANA time zone", `value="Mars/Olympus"`)
	zoned.Set("zone", "Asia/Tokyo")
	if a := s.post(at+"/edit", session, zoned); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(at, session).has(t, "UTC, from ", " Asia/Tokyo")
	s.get(at+"/edit", session).has(t, `value="Asia/Tokyo"`)
}

func TestLimitsOfAnAPIKeyAreChangedOnItsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	s.customerKey(made.Tenant.ID, "Kestrel", "night")
	k := s.keyNamed(made.Tenant.ID, "night")
	at := "/keys/" + id.APIKey.Format(k.ID)
	in := url.Values{"name": {"night"}, "limits.0.dimension": {"requests"}, "limits.0.window": {"minute"}, "limits.0.amount": {"40"}, "limits.0.mode": {"enforce"}, "limits.0.outage": {"share"}}
	if a := s.post(at+"/change", session, in); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.get(at, session).has(t, "40 requests a minute", `value="40"`)
	s.post(at+"/change", session, url.Values{"name": {"night"}, "limits.0.amount": {""}})
	s.get(at, session).hasNot(t, "40 requests a minute")
}
