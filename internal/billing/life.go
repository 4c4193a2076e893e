package billing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// Cancel lets a subscription run until its period ends. Again it changes
// nothing. An ended one is a Conflict (subscription_ended), here and below.
func (s *Service) Cancel(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	return s.alter(ctx, tenant, subscription, func(sub *Subscription, now time.Time) message.Type {
		if sub.Status == Cancelled {
			return ""
		}
		sub.Status, sub.CancelledAt = Cancelled, &now
		return message.SubscriptionCancelled
	})
}

// Keep takes a cancellation back while the period runs.
func (s *Service) Keep(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	return s.alter(ctx, tenant, subscription, func(sub *Subscription, _ time.Time) message.Type {
		if sub.Status != Cancelled {
			return ""
		}
		sub.CancelledAt = nil
		sub.Status = sub.standing()
		return message.SubscriptionKept
	})
}

// standing is the status of a subscription that nobody cancelled.
func (sub Subscription) standing() Status {
	switch {
	case sub.PastDueAt != nil:
		return PastDue
	case sub.Current.Trial:
		return Trialing
	}
	return Active
}

// End ends a subscription now; its customer's calls are refused within a second.
// On one that has ended it changes nothing.
func (s *Service) End(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	return s.alterAny(ctx, tenant, subscription, func(sub *Subscription, now time.Time) (message.Type, error) {
		if sub.Status == Ended {
			return "", nil
		}
		sub.Status, sub.EndedAt, sub.Pending = Ended, &now, uuid.Nil
		return message.SubscriptionEnded, nil
	})
}

// SetPastDue says that something is owed, or that nothing is any more. Calls go
// on; suspending stops them.
func (s *Service) SetPastDue(ctx context.Context, tenant, subscription uuid.UUID, owed bool) (Subscription, error) {
	return s.alter(ctx, tenant, subscription, func(sub *Subscription, now time.Time) message.Type {
		if (sub.PastDueAt != nil) == owed {
			return ""
		}
		told := message.SubscriptionSettled
		if sub.PastDueAt = nil; owed {
			told, sub.PastDueAt = message.SubscriptionPastDue, &now
		}
		if sub.Status != Cancelled {
			sub.Status = sub.standing()
		}
		return told
	})
}

// Suspend refuses the customer's calls within a second everywhere; the status,
// the periods and what is used go on as they are.
func (s *Service) Suspend(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	return s.alter(ctx, tenant, subscription, func(sub *Subscription, now time.Time) message.Type {
		if sub.SuspendedAt != nil {
			return ""
		}
		sub.SuspendedAt = &now
		return message.SubscriptionSuspended
	})
}

// Resume takes a suspension back.
func (s *Service) Resume(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	return s.alter(ctx, tenant, subscription, func(sub *Subscription, _ time.Time) message.Type {
		if sub.SuspendedAt == nil {
			return ""
		}
		sub.SuspendedAt = nil
		return message.SubscriptionResumed
	})
}

// StayOnPlan takes back the change that waits for the period's end.
func (s *Service) StayOnPlan(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	return s.alter(ctx, tenant, subscription, func(sub *Subscription, _ time.Time) message.Type {
		if sub.Pending == uuid.Nil {
			return ""
		}
		sub.Pending, sub.lastToken = uuid.Nil, nil // its preview is over too
		return message.SubscriptionUnscheduled
	})
}

// alter changes a subscription that has not ended, once: f says what it did, ""
// that it is so already.
func (s *Service) alter(ctx context.Context, tenant, subscription uuid.UUID, f func(*Subscription, time.Time) message.Type) (Subscription, error) {
	return s.alterAny(ctx, tenant, subscription, func(sub *Subscription, now time.Time) (message.Type, error) {
		if sub.Status == Ended {
			return "", hasEnded()
		}
		return f(sub, now), nil
	})
}

func hasEnded() error {
	return fault.New(fault.Conflict, "subscription_ended", "This subscription has ended. The customer can be put on a plan anew.")
}

func (s *Service) alterAny(ctx context.Context, tenant, subscription uuid.UUID, f func(*Subscription, time.Time) (message.Type, error)) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if sub, err = s.lock(ctx, tx, tenant, subscription); err != nil {
			return err
		}
		told, err := f(&sub, s.stamp())
		if err != nil || told == "" {
			return err
		}
		if err := saveSubscription(ctx, tx, tenant, &sub); err != nil {
			return err
		}
		return s.note(ctx, tx, tenant, sub, told, map[string]string{"status": string(sub.Status)})
	})
	return sub, conflict(err)
}

// lock reads a subscription as it stands now and keeps it from others until the
// transaction ends. Periods that are over are turned first.
func (s *Service) lock(ctx context.Context, tx pgx.Tx, tenant, subscription uuid.UUID) (Subscription, error) {
	if _, err := tx.Exec(ctx, `
		select from subscriptions where tenant_id = $1 and subscription_id = $2 for update`, tenant, subscription); err != nil {
		return Subscription{}, err
	}
	sub, err := readSubscription(ctx, tx, tenant, subscription)
	if err != nil {
		return sub, err
	}
	return sub, s.turn(ctx, tx, tenant, &sub, s.stamp())
}

// saveSubscription writes all of a locked subscription that changes.
func saveSubscription(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub *Subscription) error {
	var pending *uuid.UUID
	if sub.Pending != uuid.Nil {
		pending = &sub.Pending
	}
	sub.Revision++
	_, err := tx.Exec(ctx, `
		update subscriptions set plan_version_id = $3, status = $4, period_ends_at = $5, past_due_at = $6, cancelled_at = $7,
		       suspended_at = $8, ended_at = $9, pending_version_id = $10, revision = $11, last_token = $12
		where tenant_id = $1 and subscription_id = $2`,
		tenant, sub.ID, sub.PlanVersion, string(sub.Status), sub.Current.End, sub.PastDueAt, sub.CancelledAt,
		sub.SuspendedAt, sub.EndedAt, pending, sub.Revision, sub.lastToken)
	return err
}

// note audits and tells what happened to a subscription.
func (s *Service) note(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub Subscription, told message.Type, difference map[string]string) error {
	if err := message.Emit(ctx, tx, tenant, told, toldOf(sub)); err != nil {
		return err
	}
	difference["customer_id"] = id.Customer.Format(sub.Customer)
	return tenants.Audit(ctx, tx, tenant, string(told), id.Subscription.Format(sub.ID), difference)
}
