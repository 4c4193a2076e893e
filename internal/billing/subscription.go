package billing

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// Subscription is a customer on a plan version.
type Subscription struct {
	ID          uuid.UUID
	Customer    uuid.UUID
	Plan        uuid.UUID
	PlanVersion uuid.UUID
	Status      string // active, ended
	StartedAt   time.Time
	EndedAt     *time.Time
	Current     Period
}

// Subscribe puts a customer on the published version of a plan, from now. A
// plan without one is a Conflict, and so is a customer that has a subscription.
func (s *Service) Subscribe(ctx context.Context, tenant, customer, plan uuid.UUID) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		sub, err = s.subscribe(ctx, tx, tenant, customer, plan)
		return err
	})
	return sub, conflict(err)
}

func (s *Service) subscribe(ctx context.Context, tx pgx.Tx, tenant, customer, plan uuid.UUID) (sub Subscription, err error) {
	t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
	if err != nil {
		return sub, err
	}
	c, err := tenants.ReadCustomer(ctx, tx, tenant, customer)
	if err != nil {
		return sub, err
	}
	p, err := readPlan(ctx, tx, tenant, plan)
	if err != nil {
		return sub, err
	}
	if p.Version.Status != Published {
		return sub, notPublished()
	}
	if sub, err = s.insertSubscription(ctx, tx, t, customer, p); err != nil {
		return sub, err
	}
	if err := tellSubscription(ctx, tx, tenant, message.SubscriptionCreated, sub.ID, customer, p); err != nil {
		return sub, err
	}
	return sub, tenants.Audit(ctx, tx, tenant, "subscription.created", id.Subscription.Format(sub.ID), map[string]string{"customer": c.Name, "plan": p.Name})
}

func (s *Service) insertSubscription(ctx context.Context, tx pgx.Tx, t tenants.Tenant, customer uuid.UUID, p Plan) (Subscription, error) {
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return Subscription{}, err
	}
	sub := Subscription{ID: id.New(), Customer: customer, Plan: p.ID, PlanVersion: p.Version.ID, Status: "active", StartedAt: s.stamp()}
	sub.Current = MonthlyPeriod(sub.StartedAt, zone, 0)
	_, err = tx.Exec(ctx, `
		insert into subscriptions (tenant_id, subscription_id, customer_id, plan_version_id, status, started_at, zone)
		values ($1, $2, $3, $4, $5, $6, $7)`,
		t.ID, sub.ID, sub.Customer, sub.PlanVersion, sub.Status, sub.StartedAt, t.Zone)
	if err != nil {
		return sub, err
	}
	_, err = tx.Exec(ctx, `
		insert into subscription_periods (tenant_id, subscription_id, starts_at, ends_at)
		values ($1, $2, $3, $4)`, t.ID, sub.ID, sub.Current.Start, sub.Current.End)
	return sub, err
}

const subscriptionQuery = `
	select s.subscription_id, s.customer_id, v.plan_id, s.plan_version_id, s.status, s.started_at, s.ended_at, p.starts_at, p.ends_at
	from subscriptions s
	join plan_versions v on v.tenant_id = s.tenant_id and v.plan_version_id = s.plan_version_id
	join lateral (
		select starts_at, ends_at from subscription_periods p
		where p.tenant_id = s.tenant_id and p.subscription_id = s.subscription_id
		order by starts_at desc limit 1
	) p on true
	where s.tenant_id = $1 and `

func scanSubscription(row pgx.CollectableRow) (sub Subscription, err error) {
	err = row.Scan(&sub.ID, &sub.Customer, &sub.Plan, &sub.PlanVersion, &sub.Status, &sub.StartedAt, &sub.EndedAt, &sub.Current.Start, &sub.Current.End)
	return sub, err
}

// Subscription reads one subscription.
func (s *Service) Subscription(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, subscriptionQuery+`s.subscription_id = $2`, tenant, subscription)
		if err != nil {
			return err
		}
		sub, err = pgx.CollectExactlyOneRow(rows, scanSubscription)
		if errors.Is(err, pgx.ErrNoRows) {
			return tenants.NotFound("subscription")
		}
		return err
	})
	return sub, err
}

// Subscriptions lists subscriptions, newest first, after an id; of one
// customer, or (the zero id) of all.
func (s *Service) Subscriptions(ctx context.Context, tenant, customer, after uuid.UUID, limit int) (tenants.Page[Subscription], error) {
	var list []Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, subscriptionQuery+`
			s.subscription_id < $2 and ($3 = '00000000-0000-0000-0000-000000000000'::uuid or s.customer_id = $3)
			order by s.subscription_id desc limit $4`, tenant, tenants.After(after), customer, limit+1)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanSubscription)
		return err
	})
	return tenants.PageOf(list, limit, func(sub Subscription) uuid.UUID { return sub.ID }), err
}

// stamp is now as the database keeps it.
func (s *Service) stamp() time.Time { return s.now().UTC().Truncate(time.Microsecond) }
