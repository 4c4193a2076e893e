package web

import (
	"net/url"
	"testing"
	"time"

	"weir/internal/id"
	"weir/internal/tenants"
)

// Calls on both sides of midnight, in zones where a day doesn't begin at an hour
// of UTC or where dates are ahead: every page that states today's calls states
// the same, and so do its tables and files.
func TestEveryPageStatesTheSameTotalsWhereverTheDayBegins(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	for _, zone := range []string{"Pacific/Apia", "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"} {
		made, err := s.tenants.Create(t.Context(), tenants.NewTenant{Name: zone, OwnerEmail: "o@" + id.Tenant.Format(id.New())[4:] + ".example", Zone: zone, Currency: "EUR"})
		must(t, err)
		session := s.signIn(made.SignInToken)
		in, err := time.LoadLocation(zone)
		must(t, err)
		now := noon.In(in)
		midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, in)
		s.addCalls(made.Tenant.ID, midnight.Add(-15*time.Minute), "ok", false, 1000, 0, 5000, "0")
		s.addCalls(made.Tenant.ID, midnight.Add(-15*time.Minute), "refused_requests_minute", false, 0, 500, 0, "0")
		s.addCalls(made.Tenant.ID, midnight, "ok", false, 40, 0, 2000, "0")
		s.addCalls(made.Tenant.ID, midnight.Add(15*time.Minute), "ok", false, 2, 0, 9_007_199_254_740_993, "0")
		s.addCalls(made.Tenant.ID, midnight.Add(15*time.Minute), "refused_requests_minute", false, 0, 7, 0, "0")
		t.Run(zone, func(t *testing.T) {
			s := s
			s.t = t
			const tokens = "9,007,199,254,743,062" // every row with 20 cached and 3 of output
			s.get("/", session).has(t, "42 requests", "7 were refused", "against yesterday")
			s.get("/customers", session).has(t, "42 calls of your customers passed today", "7 were refused.")
			s.get("/limits", session).has(t, "7 of 49 calls refused since midnight")
			usage := s.get("/usage", session)
			usage.has(t, tokens+" tokens in 42 requests")
			s.get("/usage?group=customer", session).has(t, tokens)
			s.get("/usage.csv?"+url.Values{"group": {"model"}}.Encode(), session).has(t, "9007199254743062")
		})
	}
}
