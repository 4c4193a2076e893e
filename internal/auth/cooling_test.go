package auth_test

import (
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/outbound"
	"weir/internal/tenants"
)

// TestACooldownIsSeenByEveryReplicaWithinASecond: two replicas, each with what
// it remembers; one reports, clears, learns and forgets.
func TestACooldownIsSeenByEveryReplicaWithinASecond(t *testing.T) {
	f := newFixture(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	guard := outbound.New(outbound.Policy{})
	t.Cleanup(guard.Close)
	s := tenants.New(f.db.App, ring, guard, catalogue.NewClient(guard), f.clock.now)
	k, err := s.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "practice", Name: "Practice"})
	if err != nil {
		t.Fatal(err)
	}
	replica := func() *auth.Directory {
		return auth.NewDirectory(f.db.App, s, billing.New(f.db.App, f.clock.now), tokenKeys(t, f.clock.now, "https://w.example", "a"), f.clock.now)
	}
	replicas := []*auth.Directory{replica(), replica()}
	everywhere := func(what string, holds func(tenants.Route) bool) {
		t.Helper()
		f.clock.advance(time.Second)
		for i, d := range replicas {
			if i == 0 { // this one follows changes, the other reads again
				f.catchUp(d)
			}
			routes, err := d.Routes(t.Context(), f.tenant)
			if err != nil || len(routes) != 1 || !holds(routes[0]) {
				t.Errorf("replica %d a second later: %s, %v", i+1, what, err)
			}
		}
	}
	model := k.Models[0]
	cools := func(r tenants.Route) bool { _, ok := r.Key.Cools(model, f.clock.now()); return ok }
	knows := func(r tenants.Route) bool { return r.LimitsFor(model) != r.Limits }
	not := func(f func(tenants.Route) bool) func(tenants.Route) bool {
		return func(r tenants.Route) bool { return !f(r) }
	}
	everywhere("something cools", not(cools))

	now := f.clock.now()
	if _, err := s.ReportFailure(t.Context(), f.tenant, k.ID, model, limits.Failure{Sent: now, At: now, Status: 429, Wait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	everywhere("it does not cool", cools)
	if _, err := s.ClearCooldowns(t.Context(), f.tenant, tenants.Cleared{Key: k.ID, Model: &model}); err != nil {
		t.Fatal(err)
	}
	everywhere("it cools on", not(cools))

	said := []limits.Statement{{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 5, Left: -1, From: limits.FromBody}}
	if err := s.Learn(t.Context(), f.tenant, k.ID, limits.Learn(nil, model, said, now.UTC())); err != nil {
		t.Fatal(err)
	}
	everywhere("it has not learned", knows)
	if _, err := s.ForgetLearned(t.Context(), f.tenant, k.ID, tenants.Forgotten{}); err != nil {
		t.Fatal(err)
	}
	everywhere("it has not forgotten", not(knows))
	replicas[0].RoutesChanged(f.tenant)
}
