package tenants_test

import (
	"testing"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

func TestAKeyThatIsAskedForTwiceIsMadeOnce(t *testing.T) {
	f := newFixture(t)
	n := tenants.NewAPIKey{ID: id.New(), Kind: tenants.Management, Name: "export", Scopes: []string{"usage:read"}}
	k, err := f.AddAPIKey(t.Context(), f.tenant, n)
	if err != nil || k.ID != n.ID || k.Counter != n.ID {
		t.Fatal(k, err)
	}
	again, err := f.AddAPIKey(t.Context(), f.tenant, n)
	if fault.Of(err).Code != "already_made" {
		t.Errorf("%v, secret %q", err, again.Secret)
	}
	page, err := f.APIKeys(t.Context(), f.tenant, tenants.KeyFilter{}, uuid.Nil, 10)
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%d keys, %v", len(page.Items), err)
	}
}

func TestCustomersAreFoundByWhatAPersonKnowsOfThem(t *testing.T) {
	f := newFixture(t)
	made := map[string]uuid.UUID{}
	for _, n := range []tenants.NewCustomer{{Name: "Kestrel Support", Email: "ops@kestrel.example"}, {Name: "100% Wool", ExternalID: "crm_17"}, {Name: "1000 Sheep"}} {
		c, err := f.AddCustomer(t.Context(), f.tenant, n)
		if err != nil {
			t.Fatal(err)
		}
		made[c.Name] = c.ID
	}
	for text, want := range map[string][]string{
		"kestrel": {"Kestrel Support"}, "KESTREL.EXAMPLE": {"Kestrel Support"}, "crm_17": {"100% Wool"}, "100%": {"100% Wool"},
		"crm?17": nil, "_": {"100% Wool"}, "\\": nil, "": {"1000 Sheep", "100% Wool", "Kestrel Support"},
	} {
		page, err := f.FindCustomers(t.Context(), f.tenant, text, uuid.Nil, uuid.Nil, 10)
		if err != nil || len(page.Items) != len(want) {
			t.Errorf("%q: %v %v", text, page.Items, err)
			continue
		}
		for i, c := range page.Items {
			if c.Name != want[i] {
				t.Errorf("%q: %s", text, c.Name)
			}
		}
	}
	page, err := f.FindCustomers(t.Context(), f.tenant, "no such text", made["100% Wool"], uuid.Nil, 10)
	if err != nil || len(page.Items) != 1 || page.Items[0].Name != "100% Wool" {
		t.Errorf("by id: %v %v", page.Items, err)
	}
}

func TestARemovalCountsWhatOnlyThatKeyServes(t *testing.T) {
	f := newFixture(t)
	add := func(name string, models ...string) tenants.ProviderKey {
		k, err := f.AddProviderKey(t.Context(), f.tenant, tenants.NewProviderKey{Provider: "custom", Name: name, BaseURL: provider(t, 200, `{"data":[]}`), Models: models})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := add("first", "a", "b", "c")
	add("second", "b")
	c, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Kestrel"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "old"} {
		k, err := f.AddAPIKey(t.Context(), f.tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: c.ID, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if name == "old" {
			if _, err := f.RevokeAPIKey(t.Context(), f.tenant, k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := f.RemovalOf(t.Context(), f.tenant, first.ID)
	if err != nil || len(r.Models) != 2 || r.Models[0] != "a" || r.Models[1] != "c" || r.Others != 1 || r.Keys != 2 || r.Customers != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := f.RemovalOf(t.Context(), id.New(), first.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
}
