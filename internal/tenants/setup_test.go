package tenants_test

import (
	"sync"
	"testing"

	"weir/internal/fault"
	"weir/internal/tenants"
)

func TestAStepThatIsSkippedStaysSkippedForItsTenantOnly(t *testing.T) {
	f := newFixture(t)
	other, err := f.Create(t.Context(), tenants.NewTenant{Name: "Bolt", OwnerEmail: "bo@bolt.example", Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 { // two tabs and more
		all.Go(func() {
			if err := f.SkipSetup(t.Context(), f.tenant, "plan"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := f.SkipSetup(t.Context(), f.tenant, "lunch"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a step that is none: %v", err)
	}
	got, err := f.SetupState(t.Context(), f.tenant)
	if err != nil || len(got) != 1 || !got["plan"] {
		t.Errorf("%v %v", got, err)
	}
	if got, err := f.SetupState(t.Context(), other.Tenant.ID); err != nil || len(got) != 0 {
		t.Errorf("another tenant: %v %v", got, err)
	}
}
