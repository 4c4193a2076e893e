package tenants_test

import (
	"testing"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

func TestAChangeOfACustomerTouchesWhatItNames(t *testing.T) {
	f := newFixture(t)
	c, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Kestrel", Email: "k@kestrel.example", ExternalID: "k-1"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	x, err := f.ChangeCustomer(t.Context(), f.tenant, c.ID, tenants.CustomerChange{Name: text("Kestrel GmbH"), Email: text("")})
	if err != nil || x.Name != "Kestrel GmbH" || x.Email != "" || x.ExternalID != "k-1" {
		t.Fatalf("%+v, %v", x, err)
	}
	if again, err := f.Customer(t.Context(), f.tenant, c.ID); err != nil || again.Name != x.Name || again.Email != "" || again.ExternalID != "k-1" {
		t.Fatalf("%+v, %v", again, err)
	}
	other, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Heron"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change tenants.CustomerChange
		want   fault.Kind
	}{
		"a taken id":  {tenants.CustomerChange{ExternalID: text("k-1")}, fault.Conflict},
		"no name":     {tenants.CustomerChange{Name: text("")}, fault.Invalid},
		"bad address": {tenants.CustomerChange{Email: text("nobody")}, fault.Invalid},
	} {
		if _, err := f.ChangeCustomer(t.Context(), f.tenant, other.ID, c.change); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.ChangeCustomer(t.Context(), id.New(), other.ID, tenants.CustomerChange{Name: text("Mine")}); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}

func TestASuspensionIsTakenBack(t *testing.T) {
	f := newFixture(t)
	c, err := f.AddCustomer(t.Context(), f.tenant, tenants.NewCustomer{Name: "Kestrel"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if x, err := f.SuspendCustomer(t.Context(), f.tenant, c.ID); err != nil || x.SuspendedAt == nil {
			t.Fatalf("%+v, %v", x, err)
		}
	}
	if x, err := f.ResumeCustomer(t.Context(), f.tenant, c.ID); err != nil || x.SuspendedAt != nil {
		t.Fatalf("%+v, %v", x, err)
	}
}
