package billing

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/tenants"
)

// turn opens every period that has begun by now, and does what waited for the
// end of the one before: the trial is over, a cancelled subscription ends, a
// change takes effect. Each at the instant of the period's end, however late the
// turn itself is. The subscription is locked.
func (s *Service) turn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub *Subscription, now time.Time) error {
	ctx = tenants.WithActor(ctx, tenants.System)
	for sub.Status != Ended && !now.Before(sub.Current.End) {
		if err := s.turnOne(ctx, tx, tenant, sub, sub.Current.End); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) turnOne(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub *Subscription, at time.Time) error {
	if sub.Status == Cancelled {
		sub.Status, sub.EndedAt, sub.Pending = Ended, &at, uuid.Nil
		if err := saveSubscription(ctx, tx, tenant, sub); err != nil {
			return err
		}
		return s.note(ctx, tx, tenant, *sub, message.SubscriptionEnded, map[string]string{"status": string(Ended), "was": string(Cancelled)})
	}
	t, err := tenants.ReadTenant(ctx, tx, tenant, at)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return err
	}
	trial := sub.Current.Trial
	sub.Current = sub.Current.after(sub.anchor, zone)
	if err := insertPeriod(ctx, tx, tenant, sub.ID, sub.Current, t.Zone); err != nil {
		return err
	}
	sub.Status = sub.standing()
	if err := s.turnPlan(ctx, tx, tenant, sub, at); err != nil {
		return err
	}
	told := message.SubscriptionRenewed
	if trial {
		told = message.SubscriptionActivated
	}
	return s.note(ctx, tx, tenant, *sub, told, map[string]string{
		"status": string(sub.Status), "period_start": sub.Current.Start.Format(time.RFC3339Nano), "period_end": sub.Current.End.Format(time.RFC3339Nano),
	})
}

// turnPlan saves the subscription, on the version that waited for this instant
// where one did.
func (s *Service) turnPlan(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub *Subscription, at time.Time) error {
	if sub.Pending == uuid.Nil {
		return saveSubscription(ctx, tx, tenant, sub)
	}
	terms, err := readTerms(ctx, tx, tenant, sub.Pending)
	if err != nil {
		return err
	}
	if err := insertChange(ctx, tx, tenant, sub, sub.Pending, at, true, uuid.Nil); err != nil {
		return err
	}
	sub.Plan, sub.PlanVersion, sub.Pending = terms.PlanID, sub.Pending, uuid.Nil
	if err := saveSubscription(ctx, tx, tenant, sub); err != nil {
		return err
	}
	return s.note(ctx, tx, tenant, *sub, message.SubscriptionChanged, map[string]string{"plan": terms.Plan, "plan_version": id.PlanVersion.Format(sub.PlanVersion), "when": string(AtPeriodEnd)})
}

// Turner opens the periods of every tenant's subscriptions as they begin. Any
// number may run, in any number of processes: a subscription is turned under its
// lock, and one that was turned is left alone.
type Turner struct {
	*Service
	log *slog.Logger
}

// NewTurner makes one.
func NewTurner(s *Service, log *slog.Logger) *Turner { return &Turner{s, log} }

const (
	turnEvery   = time.Second
	turnsAtMost = 200 // in one look
)

// Run turns until ctx ends. What fails is tried again.
func (t *Turner) Run(ctx context.Context) error {
	tick := time.NewTicker(turnEvery)
	defer tick.Stop()
	for {
		if err := t.Turn(ctx); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "periods not opened", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Turn turns what is due now. One that fails holds up no other; it stays due,
// and its error is logged.
func (t *Turner) Turn(ctx context.Context) error {
	for {
		list, err := t.due(ctx)
		if err != nil {
			return err
		}
		failed := false
		for _, d := range list {
			if err := t.one(ctx, d); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				failed = true
				t.log.WarnContext(ctx, "subscription not turned", "subscription", id.Subscription.Format(d.subscription), "error", err)
			}
		}
		if len(list) < turnsAtMost || failed {
			return nil
		}
	}
}

type dueTurn struct{ tenant, subscription uuid.UUID }

func (t *Turner) due(ctx context.Context) (list []dueTurn, err error) {
	err = t.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, subscription_id from lookup_due_subscriptions($1, $2)`, t.now(), turnsAtMost)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d dueTurn, err error) {
			return d, row.Scan(&d.tenant, &d.subscription)
		})
		return err
	})
	return list, err
}

func (t *Turner) one(ctx context.Context, d dueTurn) error {
	return t.db.WithTenant(ctx, d.tenant, func(tx pgx.Tx) error {
		_, err := t.lock(ctx, tx, d.tenant, d.subscription)
		return err
	})
}
