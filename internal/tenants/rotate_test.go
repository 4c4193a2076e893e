package tenants_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// keyed is a customer's key with limits and rights of its own.
func keyed(t *testing.T, f fixture) tenants.IssuedKey {
	t.Helper()
	c, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Kestrel"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := f.AddAPIKey(t.Context(), f.tenant, tenants.NewAPIKey{
		Kind: tenants.ForCustomer, Customer: c.ID, Name: "production", Models: []string{"gpt-4o"}, MaySettle: true,
		Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestARotatedKeyKeepsCounterLedgersAndRights(t *testing.T) {
	f := newFixture(t)
	k := keyed(t, f)
	old, made, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if made.Secret == k.Secret || made.ID == k.ID || old.ReplacedBy != made.ID || old.Status(time.Now()) != "active" {
		t.Fatalf("old %+v, new %+v", old, made.APIKey)
	}
	now, err := f.APIKey(t.Context(), f.tenant, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := k.Limits[0].Ledger("gpt-4o"), now.Limits[0].Ledger("gpt-4o"); a != b {
		t.Errorf("the ledger was %s and is %s", a, b)
	}
	same := func(k tenants.APIKey) tenants.APIKey {
		k.ID, k.First4, k.Last4, k.CreatedAt, k.ReplacedBy, k.Limits = uuid.Nil, "", "", time.Time{}, uuid.Nil, nil
		return k
	}
	if diff := cmp.Diff(same(k.APIKey), same(now)); diff != "" {
		t.Error(diff)
	}
	if end := time.Until(*old.ExpiresAt); end < 59*time.Minute || end > time.Hour {
		t.Errorf("the old secret works for %s", end)
	}
}

func TestAnOverlapNeverOutlivesTheKeysOwnEnd(t *testing.T) {
	f := newFixture(t)
	end := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond)
	k, err := f.AddAPIKey(t.Context(), f.tenant, tenants.NewAPIKey{Kind: tenants.Management, Name: "night", Scopes: []string{"usage:read"}, ExpiresAt: &end})
	if err != nil {
		t.Fatal(err)
	}
	old, made, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, tenants.MaxOverlap)
	if err != nil || !old.ExpiresAt.Equal(end) || !made.ExpiresAt.Equal(end) {
		t.Fatalf("old until %s, new until %s, %v; want %s", old.ExpiresAt, made.ExpiresAt, err, end)
	}
}

func TestOfTwoRotationsAtOnceOneWins(t *testing.T) {
	f := newFixture(t)
	k := keyed(t, f)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			_, _, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, 0)
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		switch err := <-errs; {
		case err == nil:
			won++
		case !fault.Is(err, fault.Conflict):
			t.Error(err)
		}
	}
	page, err := f.APIKeys(t.Context(), f.tenant, tenants.KeyFilter{Customer: k.Customer}, uuid.Nil, 10)
	if err != nil || won != 1 || len(page.Items) != 2 {
		t.Fatalf("%d rotations, %d keys, %v", won, len(page.Items), err)
	}
}

func TestRevokingEitherKeyOfARotationEndsBoth(t *testing.T) {
	f := newFixture(t)
	for _, which := range []int{0, 1} {
		c := rotatedPair(t, f)
		pair := []uuid.UUID{c.old, c.made}
		if _, err := f.RevokeAPIKey(t.Context(), f.tenant, pair[which]); err != nil {
			t.Fatal(err)
		}
		for _, key := range pair {
			if k, err := f.APIKey(t.Context(), f.tenant, key); err != nil || k.RevokedAt == nil {
				t.Errorf("after revoking number %d: %+v, %v", which, k, err)
			}
		}
	}
}

func TestARevocationBesideARotationLeavesNoSecretThatWorks(t *testing.T) {
	f := newFixture(t)
	for range 40 {
		k := keyed(t, f)
		errs := make(chan error, 2)
		go func() {
			_, _, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, time.Hour)
			errs <- err
		}()
		go func() {
			_, err := f.RevokeAPIKey(t.Context(), f.tenant, k.ID)
			errs <- err
		}()
		for range cap(errs) {
			if err := <-errs; err != nil && !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
		}
		page, err := f.APIKeys(t.Context(), f.tenant, tenants.KeyFilter{Customer: k.Customer}, uuid.Nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range page.Items {
			if left.Status(time.Now()) == "active" {
				t.Fatalf("of %d keys of the counter, %s works after the revocation", len(page.Items), id.APIKey.Format(left.ID))
			}
		}
	}
}

type rotated struct{ old, made uuid.UUID }

func rotatedPair(t *testing.T, f fixture) rotated {
	t.Helper()
	k := keyed(t, f)
	_, made, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return rotated{k.ID, made.ID}
}

func TestAKeyThatEndedOrIsAnothersIsNotRotated(t *testing.T) {
	f := newFixture(t)
	k := keyed(t, f)
	other, err := f.Create(t.Context(), tenants.NewTenant{Name: "Bolt", OwnerEmail: "bo@bolt.example"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []uuid.UUID{other.Tenant.ID, id.New()} {
		if _, _, err := f.RotateAPIKey(t.Context(), tenant, k.ID, 0); !fault.Is(err, fault.NotFound) {
			t.Errorf("another tenant's: %v", err)
		}
	}
	if _, _, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, tenants.MaxOverlap+time.Second); !fault.Is(err, fault.Invalid) {
		t.Errorf("too long an overlap: %v", err)
	}
	if _, err := f.RevokeAPIKey(t.Context(), f.tenant, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.RotateAPIKey(t.Context(), f.tenant, k.ID, 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("a revoked key: %v", err)
	}
}

func TestANewNameIsThatOfBothKeysOfARotation(t *testing.T) {
	f := newFixture(t)
	c := rotatedPair(t, f)
	if _, err := f.ChangeAPIKey(t.Context(), f.tenant, c.made, tenants.KeyChange{Name: new("Frankfurt")}); err != nil {
		t.Fatal(err)
	}
	if k, err := f.APIKey(t.Context(), f.tenant, c.old); err != nil || k.Name != "Frankfurt" {
		t.Fatalf("%+v, %v", k, err)
	}
}
