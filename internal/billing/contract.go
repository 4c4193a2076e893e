package billing

import (
	"context"
	"errors"

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
	Version      Version
	Limits       []limits.Limit // of the tenant and of the customer's plan, placed
	Set          *limits.Set    // the same, ready for decisions
	TestSet      *limits.Set    // the same for test keys, with ledgers of their own
}

// ContractOf reads what holds for a customer. A customer without an active
// subscription has a contract without one; RequireActive refuses it.
func (s *Service) ContractOf(ctx context.Context, tenant, customer uuid.UUID) (Contract, error) {
	var c Contract
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if c.Tenant, err = tenants.ReadTenant(ctx, tx, tenant, s.now()); err != nil {
			return err
		}
		if c.Customer, err = tenants.ReadCustomer(ctx, tx, tenant, customer); err != nil {
			return err
		}
		return s.readActive(ctx, tx, tenant, customer, &c)
	})
	c.Set, c.TestSet = limits.Compile(c.Limits), limits.Compile(limits.TestPlan(c.Limits))
	return c, err
}

func (s *Service) readActive(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID, c *Contract) error {
	var version uuid.UUID
	err := tx.QueryRow(ctx, `
		select s.subscription_id, s.plan_version_id, p.name
		from subscriptions s
		join plan_versions v on v.tenant_id = s.tenant_id and v.plan_version_id = s.plan_version_id
		join plans p on p.tenant_id = v.tenant_id and p.plan_id = v.plan_id
		where s.tenant_id = $1 and s.customer_id = $2 and s.status <> 'ended'`, tenant, customer).
		Scan(&c.Subscription, &version, &c.Plan)
	if errors.Is(err, pgx.ErrNoRows) {
		c.Limits = c.Tenant.Limits
		return nil
	}
	if err != nil {
		return err
	}
	if c.Version, err = oneVersion(ctx, tx, tenant, `plan_version_id = $2`, version); err != nil {
		return err
	}
	c.Limits = append(append([]limits.Limit{}, c.Tenant.Limits...), c.Version.Placed(customer, c.Plan)...)
	return nil
}

// RequireActive is Forbidden no_active_subscription for a customer that has no
// active subscription, or is suspended: never unlimited by accident.
func (c Contract) RequireActive() error {
	switch {
	case c.Tenant.SuspendedAt != nil:
		return fault.New(fault.Forbidden, "tenant_suspended", "This account is suspended.")
	case c.Customer.SuspendedAt != nil:
		return fault.New(fault.Forbidden, "customer_suspended", "This customer is suspended.")
	case c.Subscription == uuid.Nil:
		return fault.New(fault.Forbidden, "no_active_subscription", "This customer has no active subscription, so no call is allowed. Put it on a plan first.")
	}
	return nil
}
