package billing_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/tenants"
)

func TestHistorySaysOnWhichVersionACustomerWasAtAnyInstant(t *testing.T) {
	b := newBooks(t)
	small, large, huge := b.published(t, "Small", 1), b.published(t, "Large", 9), b.published(t, "Huge", 99)
	customer := b.customerOn(t, small.ID)
	for _, p := range []billing.Plan{large, huge} {
		_, err := b.Move(t.Context(), b.tenant, customer, p.ID)
		must(t, err)
	}
	eras, err := b.History(t.Context(), b.tenant, customer)
	must(t, err)
	if len(eras) != 3 || !eras[2].Until.IsZero() {
		t.Fatalf("%d eras, the last until %v", len(eras), eras[2].Until)
	}
	for i, p := range []billing.Plan{small, large, huge} {
		if eras[i].Version.ID != p.Version.ID || eras[i].Plan != p.Name || len(eras[i].Version.Limits) == 0 {
			t.Errorf("era %d is on %s", i, eras[i].Plan)
		}
		got, on := billing.At(eras, eras[i].From)
		if !on || got.Version.ID != p.Version.ID {
			t.Errorf("as era %d begins it is on %s", i, got.Plan)
		}
		if i > 0 && !eras[i-1].Until.Equal(eras[i].From) {
			t.Errorf("between era %d and the next it is on none", i-1)
		}
	}
	if _, on := billing.At(eras, eras[0].From.Add(-time.Microsecond)); on {
		t.Error("before its first subscription it is on a plan")
	}
	none, err := b.tenants.AddCustomer(t.Context(), b.tenant, tenants.NewCustomer{Name: "On no plan"})
	must(t, err)
	if eras, err := b.History(t.Context(), b.tenant, none.ID); err != nil || len(eras) != 0 {
		t.Errorf("on none: %v, %v", eras, err)
	}
	if _, err := b.History(t.Context(), uuid.New(), customer); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
}
