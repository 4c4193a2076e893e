package billing_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

func (b books) onboard(t *testing.T, plan uuid.UUID, key string, asked time.Time) (tenants.IssuedKey, error) {
	t.Helper()
	return b.Onboard(t.Context(), b.tenants, b.tenant, billing.Onboarding{
		Customer: tenants.NewCustomer{Name: "Kestrel"}, Plan: plan, Key: tenants.NewAPIKey{Name: key}, Asked: asked,
	})
}

func (b books) customers(t *testing.T) int {
	t.Helper()
	page, err := b.tenants.Customers(t.Context(), b.tenant, uuid.Nil, 100)
	must(t, err)
	return len(page.Items)
}

func TestAnOnboardingThatFailsAnywhereLeavesNothing(t *testing.T) {
	b := newBooks(t)
	p := b.published(t, "Starter", 5)
	draft, err := b.AddPlan(t.Context(), b.tenant, "Draft", requests(2))
	must(t, err)
	for name, c := range map[string]struct {
		plan uuid.UUID
		key  string
	}{"the plan is a draft": {draft.ID, "First"}, "there is no such plan": {id.New(), "First"}, "the key is wrong": {p.ID, ""}} {
		if _, err := b.onboard(t, c.plan, c.key, time.Now()); err == nil {
			t.Errorf("%s: it was made", name)
		}
		if n := b.customers(t); n != 0 {
			t.Fatalf("%s: %d customers are left", name, n)
		}
	}
	k, err := b.onboard(t, p.ID, "First", time.Now())
	must(t, err)
	if c, err := b.ContractOf(t.Context(), b.tenant, k.Customer); err != nil || c.RequireActive() != nil || c.Version.ID != p.Version.ID {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestOfFormsOpenAtOnceOneIsTaken(t *testing.T) {
	b := newBooks(t)
	p := b.published(t, "Starter", 5)
	opened := time.Now()
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := b.onboard(t, p.ID, "First", opened)
			errs <- err
		}()
	}
	won := 0
	for range 8 {
		switch err := <-errs; {
		case err == nil:
			won++
		case fault.Of(err).Code != "already_made":
			t.Error(err)
		}
	}
	if n := b.customers(t); won != 1 || n != 1 {
		t.Fatalf("%d were taken, %d customers", won, n)
	}
	if _, err := b.onboard(t, p.ID, "Second", time.Now()); err != nil { // a form that was opened after
		t.Error(err)
	}
}
