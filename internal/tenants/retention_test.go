package tenants_test

import (
	"testing"

	"weir/internal/fault"
	"weir/internal/tenants"
)

// TestATenantKeepsItsCallsForAsLongAsItSays, within what makes sense.
func TestATenantKeepsItsCallsForAsLongAsItSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for days, ok := range map[int]bool{30: true, 400: true, 29: false, 401: false, -1: false, 0: true} {
		x, err := f.Change(t.Context(), f.tenant, tenants.TenantChange{UsageDays: &days})
		if ok != (err == nil) || !ok && !fault.Is(err, fault.Invalid) || ok && x.UsageDays != days {
			t.Errorf("%d days: %d, %v", days, x.UsageDays, err)
		}
	}
}
