package billing

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
	"weir/internal/tenants"
)

// Contracts are what holds for customers with an active subscription, the
// newest first, at most so many.
func (s *Service) Contracts(ctx context.Context, tenant uuid.UUID, most int) ([]Contract, error) {
	var list []Contract
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			select s.subscription_id, s.plan_version_id, p.name, p.plan_id, c.customer_id, c.name
			from subscriptions s
			join plan_versions v on v.tenant_id = s.tenant_id and v.plan_version_id = s.plan_version_id
			join plans p on p.tenant_id = v.tenant_id and p.plan_id = v.plan_id
			join customers c on c.tenant_id = s.tenant_id and c.customer_id = s.customer_id
			where s.tenant_id = $1 and s.status <> 'ended' and c.removed_at is null
			order by s.subscription_id desc
			limit $2`, tenant, most)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Contract, error) {
			c := Contract{Tenant: t}
			return c, row.Scan(&c.Subscription, &c.Version.ID, &c.Plan, &c.PlanID, &c.Customer.ID, &c.Customer.Name)
		}); err != nil {
			return err
		}
		return s.completeContracts(ctx, tx, tenant, list)
	})
	return list, err
}

// completeContracts reads every version once.
func (s *Service) completeContracts(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []Contract) (err error) {
	versions := map[uuid.UUID]Version{}
	var subscriptions []uuid.UUID
	for _, c := range list {
		subscriptions = append(subscriptions, c.Subscription)
	}
	now := s.now()
	over, err := overridesOf(ctx, tx, tenant, now, subscriptions...)
	if err != nil {
		return err
	}
	for i := range list {
		c := &list[i]
		v, known := versions[c.Version.ID]
		if !known {
			if v, err = oneVersion(ctx, tx, tenant, `plan_version_id = $2`, c.Version.ID); err != nil {
				return err
			}
			versions[v.ID] = v
		}
		c.Version = v
		c.Overrides = over[c.Subscription]
		c.Own = Overridden(v.Placed(c.Customer.ID, c.Plan), c.Overrides, now)
		c.Limits = append(append([]limits.Limit{}, c.Tenant.Limits...), c.Own...)
	}
	return nil
}
