package billing

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// Contract is what holds for one customer's calls now: the active subscription
// and what its plan version says. It is immutable once read.
type Contract struct {
	Tenant       tenants.Tenant
	Customer     tenants.Customer
	Subscription uuid.UUID // zero: no active subscription
	Plan         string    // its name
	PlanID       uuid.UUID
	Version      Version
	Suspended    bool       // its subscription
	Overrides    []Override // of the subscription, those to come among them
	Enforced
}

// Enforced is every limit of the tenant and of a customer's plan, placed.
type Enforced struct {
	Limits []limits.Limit
	Own    []limits.Limit // of them, the customer's: its plan's and its overrides
	Sets   []*limits.Set  // the same, ready for decisions; the tenant's is one for all its customers
	tests  func() []*limits.Set
}

// TestSets are Sets for test keys, with ledgers of their own. They are made when
// they are first asked for.
func (e Enforced) TestSets() []*limits.Set { return e.tests() }

// Ground is what holds for every customer of a tenant. It is immutable.
type Ground struct {
	Tenant tenants.Tenant
	set    *limits.Set
	test   func() *limits.Set
}

// NewGround makes the tenant's limits ready.
func NewGround(t tenants.Tenant) *Ground {
	return &Ground{Tenant: t, set: limits.Compile(t.Limits), test: compiledLater(t.Limits)}
}

func compiledLater(list []limits.Limit) func() *limits.Set {
	return sync.OnceValue(func() *limits.Set { return limits.Compile(limits.TestPlan(list)) })
}

// Compile makes the limits ready that hold for a party at an instant. Where its
// subscription is none, so are its terms.
func (g *Ground) Compile(p Party, terms Terms, at time.Time) Enforced {
	own := tenants.InZones(Overridden(terms.Version.Placed(p.Customer.ID, terms.Plan), p.Overrides, at), g.Tenant.Zones)
	set, test := limits.Compile(own), compiledLater(own)
	return Enforced{
		Own:    own,
		Limits: append(append(make([]limits.Limit, 0, len(g.Tenant.Limits)+len(own)), g.Tenant.Limits...), own...),
		Sets:   []*limits.Set{g.set, set},
		tests:  func() []*limits.Set { return []*limits.Set{g.test(), test()} },
	}
}

// Contract puts together what was read and made ready apart.
func (g *Ground) Contract(p Party, terms Terms, e Enforced) Contract {
	return Contract{
		Tenant: g.Tenant, Customer: p.Customer, Subscription: p.Subscription, Plan: terms.Plan, PlanID: terms.PlanID, Version: terms.Version,
		Suspended: p.Suspended, Overrides: p.Overrides, Enforced: e,
	}
}

// ContractOf reads what holds for a customer. A customer without an active
// subscription has a contract without one; RequireActive refuses it.
func (s *Service) ContractOf(ctx context.Context, tenant, customer uuid.UUID) (Contract, error) {
	var t tenants.Tenant
	var p Party
	var terms Terms
	now := s.now()
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		terms = Terms{}
		if t, err = tenants.ReadTenant(ctx, tx, tenant, now); err != nil {
			return err
		}
		if p, err = readParty(ctx, tx, tenant, customer, now); err != nil {
			return err
		}
		if p = p.At(now); p.Subscription == uuid.Nil {
			return nil
		}
		terms, err = readTerms(ctx, tx, tenant, p.Version)
		return err
	})
	if err != nil {
		return Contract{}, err
	}
	g := NewGround(t)
	return g.Contract(p, terms, g.Compile(p, terms, now)), nil
}

// RequireActive is Forbidden no_active_subscription for a customer that has no
// active subscription, or is suspended, or whose subscription is: never
// unlimited by accident.
func (c Contract) RequireActive() error {
	switch {
	case c.Tenant.SuspendedAt != nil:
		return fault.New(fault.Forbidden, "tenant_suspended", "This account is suspended.")
	case c.Customer.SuspendedAt != nil:
		return fault.New(fault.Forbidden, "customer_suspended", "This customer is suspended.")
	case c.Subscription == uuid.Nil:
		return fault.New(fault.Forbidden, "no_active_subscription", "This customer has no active subscription, so no call is allowed. Put it on a plan first.")
	case c.Suspended:
		return fault.New(fault.Forbidden, "subscription_suspended", "This customer's subscription is suspended.")
	}
	return nil
}
