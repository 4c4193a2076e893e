package web

import (
	"net/http"
	"testing"
	"time"

	"weir/internal/limits"
	exact "weir/internal/money"
)

func TestAnotherPlanIsTriedAgainstWhatACustomerDid(t *testing.T) {
	t.Parallel()
	s := newSite(t, local)
	made, session := s.as("owner")
	customer, ref := s.addCustomer(made.Tenant.ID, "Kestrel")
	_, small := s.plan(made.Tenant.ID, "Small", limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 3})
	for i := range 5 {
		e := event(made.Tenant.ID, noon.Add(-time.Duration(i)*time.Minute))
		e.Customer, e.Charge = customer.ID, exact.FromInt(1_000_000_000_000)
		s.store(e)
	}
	s.get("/usage/what-if", session).has(t, "Another plan against what happened.", "Kestrel", "Small")
	s.get("/usage?range=7d&customer="+ref, session).has(t, `action="/usage/what-if"`, `<input type="hidden" name="range" value="7d">`, `<option value="`+ref+`" selected>Kestrel</option>`, `<option value="`+small+`">Small</option>`)
	a := s.get("/usage/what-if?customer="+ref+"&plan="+small, session)
	a.has(t, "With Small, 2 of 5 calls of Kestrel would have been refused.", "Would refuse", "5.00 EUR")
	for _, path := range []string{"?customer=" + ref + "&plan=pln_01kb0000000000000000000000", "?customer=cus_01kb0000000000000000000000&plan=" + small} {
		if b := s.get("/usage/what-if"+path, session); b.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, b.status)
		}
	}
	s.super(`update members set role = 'developer'`)
	s.get("/usage/what-if?customer="+ref+"&plan="+small, session).hasNot(t, "5.00 EUR", "Charged")
	s.super(`update members set role = 'viewer'`)
	if b := s.get("/usage/what-if", session); b.status != http.StatusForbidden {
		t.Errorf("a viewer: %d", b.status)
	}
}
