package tenants_test

import (
	"testing"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

func perMinute(n int64) *[]limits.Limit {
	return &[]limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: n}}
}

func TestNewLimitsOfAKeyAreThoseOfBothKeysOfARotationOnTheSameLedger(t *testing.T) {
	f := newFixture(t)
	c := rotatedPair(t, f)
	for _, amount := range []int64{7, 9} {
		k, err := f.ChangeAPIKey(t.Context(), f.tenant, c.made, tenants.KeyChange{Limits: perMinute(amount)})
		if err != nil || len(k.Limits) != 1 || k.Limits[0].Amount != amount || k.Limits[0].Policy != limits.PolicyBucket {
			t.Fatalf("%+v, %v", k, err)
		}
		old, err := f.APIKey(t.Context(), f.tenant, c.old)
		if err != nil || len(old.Limits) != 1 || old.Limits[0].Ledger("") != k.Limits[0].Ledger("") || old.Limits[0].Amount != amount {
			t.Fatalf("the other of the pair: %+v, %v", old, err)
		}
	}
	k, err := f.ChangeAPIKey(t.Context(), f.tenant, c.made, tenants.KeyChange{Limits: &[]limits.Limit{}})
	if err != nil || len(k.Limits) != 0 {
		t.Errorf("none: %+v, %v", k, err)
	}
}

func TestAProviderKeysLimitsChangeAndWhatIsWrongChangesNothing(t *testing.T) {
	f := newFixture(t)
	k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "practice", Name: "Main", Limits: *perMinute(5)})
	if err != nil {
		t.Fatal(err)
	}
	wrong := &[]limits.Limit{{Dimension: limits.DimensionConcurrency, Window: limits.WindowDay, Amount: 1}}
	if _, err := f.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Name: new("Other"), Limits: wrong}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a limit that does not exist: %v", err)
	}
	if _, err := f.ChangeProviderKey(t.Context(), id.New(), k.ID, tenants.KeyChange{Name: new("Theirs")}); !fault.Is(err, fault.NotFound) {
		t.Errorf("from another tenant: %v", err)
	}
	now, err := f.ProviderKey(t.Context(), f.tenant, k.ID)
	if err != nil || now.Name != "Main" || now.Limits[0].Amount != 5 {
		t.Fatalf("%+v, %v", now, err)
	}
	changed, err := f.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Name: new("Tier 2"), Limits: perMinute(50)})
	if err != nil || changed.Name != "Tier 2" || changed.Limits[0].Amount != 50 || changed.Limits[0].Ledger("") != k.Limits[0].Ledger("") {
		t.Errorf("%+v, %v", changed, err)
	}
	if changed, err = f.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Name: new("Tier 3")}); err != nil || len(changed.Limits) != 1 {
		t.Errorf("a new name took the limits: %+v, %v", changed, err)
	}
}

func TestAProviderKeyIsGivenNoLimitThatItCannotHold(t *testing.T) {
	f := newFixture(t)
	k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "practice", Name: "Main"})
	if err != nil {
		t.Fatal(err)
	}
	for member, l := range map[string]limits.Limit{
		"/limits/0/dimension": {Dimension: limits.DimensionSpend, Window: limits.WindowDay, Amount: 1},
		"/limits/0/scope":     {Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 1, Scope: limits.Scope{Kind: limits.ScopeEndUser}},
	} {
		_, err := f.ChangeProviderKey(t.Context(), f.tenant, k.ID, tenants.KeyChange{Limits: &[]limits.Limit{l}})
		if e := fault.Of(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Pointer != member {
			t.Errorf("%s: %v", member, err)
		}
	}
}
