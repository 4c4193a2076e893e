package billing

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
	"weir/internal/tenants"
)

// Standing is the plan that a customer is on now.
type Standing struct {
	Subscription uuid.UUID
	Plan         uuid.UUID
	PlanName     string
	Version      uuid.UUID
	Number       int            // of the version
	Limits       []limits.Limit // of the version and the overrides that hold, placed at the customer
}

// Standings are the plans of customers by their ids. A customer without an
// active subscription is left out.
func (s *Service) Standings(ctx context.Context, tenant uuid.UUID, customers []uuid.UUID) (map[uuid.UUID]Standing, error) {
	out := map[uuid.UUID]Standing{}
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		clear(out) // a transaction may run again
		rows, err := tx.Query(ctx, `
			select s.customer_id, s.subscription_id, p.plan_id, p.name, v.plan_version_id, v.number
			from subscriptions s
			join plan_versions v on v.tenant_id = s.tenant_id and v.plan_version_id = s.plan_version_id
			join plans p on p.tenant_id = v.tenant_id and p.plan_id = v.plan_id
			where s.tenant_id = $1 and s.customer_id = any($2) and s.status <> 'ended'`, tenant, customers)
		if err != nil {
			return err
		}
		var customer uuid.UUID
		var at Standing
		var versions, subscriptions []uuid.UUID
		_, err = pgx.ForEachRow(rows, []any{&customer, &at.Subscription, &at.Plan, &at.PlanName, &at.Version, &at.Number}, func() error {
			out[customer] = at
			versions, subscriptions = append(versions, at.Version), append(subscriptions, at.Subscription)
			return nil
		})
		if err != nil {
			return err
		}
		byVersion, err := tenants.LimitsOf(ctx, tx, tenant, tenants.OwnedByPlanVersion, versions)
		if err != nil {
			return err
		}
		now := s.now()
		over, err := overridesOf(ctx, tx, tenant, now, subscriptions...)
		for customer, at := range out {
			at.Limits = Overridden(Version{Limits: byVersion[at.Version]}.Placed(customer, at.PlanName), over[at.Subscription], now)
			out[customer] = at
		}
		return err
	})
	return out, err
}

// Subscribed counts the customers on each plan version; a version without one
// is left out.
func (s *Service) Subscribed(ctx context.Context, tenant uuid.UUID) (map[uuid.UUID]int64, error) {
	out := map[uuid.UUID]int64{}
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select plan_version_id, count(*) from subscriptions
			where tenant_id = $1 and status <> 'ended'
			group by plan_version_id`, tenant)
		if err != nil {
			return err
		}
		var version uuid.UUID
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&version, &n}, func() error {
			out[version] = n
			return nil
		})
		return err
	})
	return out, err
}
