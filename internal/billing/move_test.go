package billing_test

import (
	"testing"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

func (b books) published(t *testing.T, name string, n int64) billing.Plan {
	t.Helper()
	p, err := b.AddPlan(t.Context(), b.tenant, name, requests(n))
	must(t, err)
	p, err = b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	return p
}

func TestAMovedCustomerKeepsSubscriptionPeriodAndLedgers(t *testing.T) {
	b := newBooks(t)
	small, large := b.published(t, "Small", 1), b.published(t, "Large", 9)
	customer := b.customerOn(t, small.ID)
	before, err := b.ContractOf(t.Context(), b.tenant, customer)
	must(t, err)
	was, err := b.Subscription(t.Context(), b.tenant, before.Subscription)
	must(t, err)
	moved, err := b.Move(t.Context(), b.tenant, customer, large.ID)
	must(t, err)
	after, err := b.ContractOf(t.Context(), b.tenant, customer)
	must(t, err)
	if moved.ID != was.ID || moved.Current != was.Current || after.Subscription != was.ID || after.Version.ID != large.Version.ID || after.Limits[0].Amount != 9 {
		t.Errorf("was %+v, is %+v on %+v", was, moved, after.Version)
	}
	if a, b := before.Limits[0].Ledger("m"), after.Limits[0].Ledger("m"); a != b {
		t.Errorf("the ledger was %s and is %s", a, b)
	}
	if _, err := b.Move(t.Context(), b.tenant, customer, large.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("to where it is: %v", err)
	}
}

func TestAMoveNeedsASubscriptionAndAPublishedPlanOfTheTenant(t *testing.T) {
	b := newBooks(t)
	p := b.published(t, "Small", 1)
	draft, err := b.AddPlan(t.Context(), b.tenant, "Draft", requests(2))
	must(t, err)
	on := b.customerOn(t, p.ID)
	none, err := b.tenants.AddCustomer(t.Context(), b.tenant, tenants.NewCustomer{Name: "On no plan"})
	must(t, err)
	for name, c := range map[string]struct {
		tenant, customer, plan uuid.UUID
		want                   fault.Kind
	}{
		"no subscription":  {b.tenant, none.ID, p.ID, fault.Conflict},
		"a draft":          {b.tenant, on, draft.ID, fault.Conflict},
		"no plan":          {b.tenant, on, id.New(), fault.NotFound},
		"another tenant's": {id.New(), on, p.ID, fault.NotFound},
	} {
		if _, err := b.Move(t.Context(), c.tenant, c.customer, c.plan); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMovesAtOnceLeaveOneSubscriptionOnOnePlan(t *testing.T) {
	b := newBooks(t)
	first := b.published(t, "First", 1)
	customer := b.customerOn(t, first.ID)
	plans := []billing.Plan{b.published(t, "A", 2), b.published(t, "B", 3)}
	errs := make(chan error)
	for i := range 8 {
		go func() {
			_, err := b.Move(t.Context(), b.tenant, customer, plans[i%2].ID)
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil && !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	subs, err := b.Subscriptions(t.Context(), b.tenant, billing.SubscriptionFilter{Customer: customer}, uuid.Nil, 10)
	if err != nil || len(subs.Items) != 1 || subs.Items[0].Plan == first.ID {
		t.Errorf("%+v, %v", subs.Items, err)
	}
}
