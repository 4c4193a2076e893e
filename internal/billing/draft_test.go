package billing_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/outbound"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
	"weir/internal/usage"
)

type books struct {
	*billing.Service
	tenants *tenants.Service
	tenant  uuid.UUID
}

func newBooks(t *testing.T) books {
	t.Helper()
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	guard := outbound.New(outbound.Policy{})
	t.Cleanup(guard.Close)
	s := tenants.New(db.App, ring, guard, catalogue.NewClient(guard), time.Now)
	made, err := s.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "Europe/Berlin", Currency: "EUR"})
	must(t, err)
	return books{billing.New(db.App, time.Now), s, made.Tenant.ID}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func requests(n int64) billing.NewVersion {
	return billing.NewVersion{Limits: []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: n}}}
}

func (b books) customerOn(t *testing.T, plan uuid.UUID) uuid.UUID {
	t.Helper()
	c, err := b.tenants.AddCustomer(t.Context(), b.tenant, tenants.NewCustomer{Name: "Kestrel"})
	must(t, err)
	_, err = b.Subscribe(t.Context(), b.tenant, c.ID, plan)
	must(t, err)
	return c.ID
}

func TestADraftIsWrittenOverAndAPublishedVersionIsNot(t *testing.T) {
	b := newBooks(t)
	p, err := b.AddPlan(t.Context(), b.tenant, "Team", requests(1))
	must(t, err)
	first := p.Version.ID
	n := requests(2)
	n.Prices, n.BaseFee = []billing.Price{{Models: "*", Class: usage.Input, MicrosPerMillion: 5}}, &money.Amount{Amount: "49.00", Currency: "EUR"}
	v, err := b.SaveDraft(t.Context(), b.tenant, p.ID, "", n)
	must(t, err)
	if v.ID != first || v.Number != 1 || v.BaseFee != 4900 || len(v.Prices) != 1 || v.Limits[0].Amount != 2 {
		t.Errorf("the draft: %+v", v)
	}
	_, err = b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	for _, amount := range []int64{3, 4} {
		v, err = b.SaveDraft(t.Context(), b.tenant, p.ID, "", requests(amount))
		must(t, err)
		if v.ID == first || v.Number != 2 || v.Status != billing.Draft || len(v.Prices) != 0 {
			t.Errorf("the next draft: %+v", v)
		}
	}
	versions, err := b.Versions(t.Context(), b.tenant, p.ID)
	must(t, err)
	if len(versions) != 2 || versions[0].Limits[0].Amount != 4 || versions[1].Limits[0].Amount != 2 || versions[1].Status != billing.Published || len(versions[1].Prices) != 1 {
		t.Errorf("%+v", versions)
	}
	if _, err := b.SaveDraft(t.Context(), id.New(), p.ID, "", requests(9)); !fault.Is(err, fault.NotFound) {
		t.Errorf("from another tenant: %v", err)
	}
	if _, err := b.Versions(t.Context(), b.tenant, id.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("of no plan: %v", err)
	}
	if _, err := b.SaveDraft(t.Context(), b.tenant, p.ID, "", requests(-1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong one: %v", err)
	}
}

func TestWhetherAnswersAreCappedIsPartOfAVersion(t *testing.T) {
	b := newBooks(t)
	p, err := b.AddPlan(t.Context(), b.tenant, "Team", billing.NewVersion{CapOutput: true})
	must(t, err)
	v, err := b.SaveDraft(t.Context(), b.tenant, p.ID, p.Version.Tag(), billing.NewVersion{})
	must(t, err)
	if !p.Version.CapOutput || v.CapOutput || v.Tag() == p.Version.Tag() {
		t.Errorf("made %+v, saved %+v", p.Version, v)
	}
	_, err = b.SaveDraft(t.Context(), b.tenant, p.ID, v.Tag(), billing.NewVersion{CapOutput: true})
	must(t, err)
	_, err = b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	c, err := b.ContractOf(t.Context(), b.tenant, b.customerOn(t, p.ID))
	if err != nil || !c.Version.CapOutput {
		t.Errorf("the contract: %+v, %v", c.Version, err)
	}
}

func TestADraftThatSomebodyElseChangedIsNotWrittenOver(t *testing.T) {
	b := newBooks(t)
	p, err := b.AddPlan(t.Context(), b.tenant, "Team", requests(1))
	must(t, err)
	seen := p.Version.Tag()
	theirs, err := b.SaveDraft(t.Context(), b.tenant, p.ID, seen, requests(1)) // the same words are a change too
	must(t, err)
	if _, err = b.SaveDraft(t.Context(), b.tenant, p.ID, seen, requests(3)); !fault.Is(err, fault.Conflict) {
		t.Errorf("over theirs: %v", err)
	}
	_, err = b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	if _, err = b.SaveDraft(t.Context(), b.tenant, p.ID, theirs.Tag(), requests(3)); !fault.Is(err, fault.Conflict) {
		t.Errorf("over one that is published since: %v", err)
	}
	now, err := b.Versions(t.Context(), b.tenant, p.ID)
	must(t, err)
	if len(now) != 1 || now[0].Limits[0].Amount != 1 {
		t.Errorf("it was written over: %+v", now)
	}
	_, err = b.SaveDraft(t.Context(), b.tenant, p.ID, now[0].Tag(), requests(3))
	must(t, err)
}

func TestOfTwoDraftsAtOnceOneVersionIsMade(t *testing.T) {
	b := newBooks(t)
	p, err := b.AddPlan(t.Context(), b.tenant, "Team", requests(1))
	must(t, err)
	_, err = b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := b.SaveDraft(t.Context(), b.tenant, p.ID, "", requests(2))
			errs <- err
		}()
	}
	for range 8 {
		must(t, <-errs)
	}
	versions, err := b.Versions(t.Context(), b.tenant, p.ID)
	if err != nil || len(versions) != 2 {
		t.Errorf("%d versions, %v", len(versions), err)
	}
}

func TestCustomersStandOnTheVersionThatTheyWerePutOn(t *testing.T) {
	b := newBooks(t)
	p, err := b.AddPlan(t.Context(), b.tenant, "Team", requests(1))
	must(t, err)
	p, err = b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	old := b.customerOn(t, p.ID)
	_, err = b.SaveDraft(t.Context(), b.tenant, p.ID, "", requests(2))
	must(t, err)
	later, err := b.Publish(t.Context(), b.tenant, p.ID)
	must(t, err)
	young, other := b.customerOn(t, p.ID), b.customerOn(t, p.ID)
	none, err := b.tenants.AddCustomer(t.Context(), b.tenant, tenants.NewCustomer{Name: "On no plan"})
	must(t, err)
	at, err := b.Standings(t.Context(), b.tenant, []uuid.UUID{old, young, none.ID, id.New()})
	must(t, err)
	if len(at) != 2 || at[old].Number != 1 || at[old].Limits[0].Amount != 1 || at[young].Number != 2 || at[young].PlanName != "Team" ||
		at[young].Limits[0].Scope != (limits.Scope{Kind: limits.ScopeCustomer, ID: young, Name: "Team"}) {
		t.Errorf("%+v", at)
	}
	on, err := b.Subscribed(t.Context(), b.tenant)
	if err != nil || len(on) != 2 || on[p.Version.ID] != 1 || on[later.Version.ID] != 2 {
		t.Errorf("%v %v", on, err)
	}
	if elsewhere, err := b.Standings(t.Context(), id.New(), []uuid.UUID{old, young, other}); err != nil || len(elsewhere) != 0 {
		t.Errorf("from another tenant: %v %v", elsewhere, err)
	}
}
