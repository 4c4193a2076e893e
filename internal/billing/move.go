package billing

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// Move puts a customer that has a subscription on the published version of a
// plan, at once: another plan's, or a later one of its own. Subscription and
// period go on; ledgers hang on the customer, so what is used stays used. A
// customer without a subscription, a plan without a published version, and the
// version that it is on already are Conflicts.
func (s *Service) Move(ctx context.Context, tenant, customer, plan uuid.UUID) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		c, err := tenants.ReadCustomer(ctx, tx, tenant, customer)
		if err != nil {
			return err
		}
		p, err := readPlan(ctx, tx, tenant, plan)
		if err != nil {
			return err
		}
		if p.Version.Status != Published {
			return notPublished()
		}
		if sub, err = lockSubscription(ctx, tx, tenant, customer); err != nil {
			return err
		}
		if sub.PlanVersion == p.Version.ID {
			return fault.New(fault.Conflict, "already_on_plan", "The customer is on this version of the plan already.").
				With(fault.Field{Pointer: "/plan", Code: "already_on_plan", Message: "It is on this plan already."})
		}
		if err := s.move(ctx, tx, tenant, &sub, p); err != nil {
			return err
		}
		if err := tellSubscription(ctx, tx, tenant, message.SubscriptionChanged, sub.ID, customer, p); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "subscription.changed", id.Subscription.Format(sub.ID), map[string]string{"customer": c.Name, "plan": p.Name, "plan_version": id.PlanVersion.Format(p.Version.ID)})
	})
	return sub, conflict(err)
}

func (s *Service) move(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub *Subscription, p Plan) error {
	_, err := tx.Exec(ctx, `
		insert into subscription_changes (tenant_id, subscription_id, changed_at, from_version_id, to_version_id)
		values ($1, $2, $3, $4, $5)`, tenant, sub.ID, s.stamp(), sub.PlanVersion, p.Version.ID)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update subscriptions set plan_version_id = $3
		where tenant_id = $1 and subscription_id = $2`, tenant, sub.ID, p.Version.ID)
	sub.Plan, sub.PlanVersion = p.ID, p.Version.ID
	return err
}

// lockSubscription reads a customer's subscription, and keeps it from others
// until the transaction ends.
func lockSubscription(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) (Subscription, error) {
	var sub Subscription
	if _, err := tx.Exec(ctx, `
		select from subscriptions
		where tenant_id = $1 and customer_id = $2 and status <> 'ended' for update`, tenant, customer); err != nil {
		return sub, err
	}
	rows, err := tx.Query(ctx, subscriptionQuery+`s.customer_id = $2 and s.status <> 'ended'`, tenant, customer)
	if err != nil {
		return sub, err
	}
	sub, err = pgx.CollectExactlyOneRow(rows, scanSubscription)
	if errors.Is(err, pgx.ErrNoRows) {
		return sub, fault.New(fault.Conflict, "no_active_subscription", "This customer is on no plan yet, so there is none to move it from.")
	}
	return sub, err
}
