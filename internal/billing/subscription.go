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

// Status is where a subscription stands.
type Status string

// The statuses. What may follow what is a trigger of the database.
const (
	Trialing  Status = "trialing"  // used, and never billed
	Active    Status = "active"    //
	PastDue   Status = "past_due"  // active, and something is owed
	Cancelled Status = "cancelled" // runs until its period ends
	Ended     Status = "ended"     // for good
)

// Statuses lists them in the order of a life.
var Statuses = []Status{Trialing, Active, PastDue, Cancelled, Ended}

// Subscription is a customer on a plan version.
type Subscription struct {
	ID          uuid.UUID
	Customer    uuid.UUID
	Plan        uuid.UUID
	PlanVersion uuid.UUID
	Status      Status
	StartedAt   time.Time
	TrialEndsAt *time.Time
	PastDueAt   *time.Time // kept while it is cancelled
	CancelledAt *time.Time
	SuspendedAt *time.Time // calls are refused, whatever the status
	EndedAt     *time.Time
	Pending     uuid.UUID // the version that it goes to when its period ends; zero: none
	Current     Period    // the newest
	Revision    int       // how many times it was changed

	tenant    uuid.UUID
	anchor    time.Time
	lastToken []byte
}

// Start is what a subscription begins as.
type Start struct {
	Customer uuid.UUID
	Version  uuid.UUID // published or retired, not a draft
	Status   Status    // Trialing or Active; "": Trialing where the version has trial days
}

// Subscribe puts a customer on the published version of a plan, from now, in its
// trial where it has one. A plan without a published version is a Conflict, and
// so is a customer that has a subscription.
func (s *Service) Subscribe(ctx context.Context, tenant, customer, plan uuid.UUID) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		sub, err = s.subscribe(ctx, tx, tenant, customer, plan)
		return err
	})
	return sub, conflict(err)
}

func (s *Service) subscribe(ctx context.Context, tx pgx.Tx, tenant, customer, plan uuid.UUID) (Subscription, error) {
	if _, err := tenants.ReadCustomer(ctx, tx, tenant, customer); err != nil {
		return Subscription{}, err
	}
	p, err := readPlan(ctx, tx, tenant, plan)
	if err != nil {
		return Subscription{}, err
	}
	if p.Version.Status != Published {
		return Subscription{}, notPublished()
	}
	return s.SubscribeTx(ctx, tx, tenant, Start{Customer: customer, Version: p.Version.ID})
}

// SubscribeTx puts a customer on a plan version in the caller's transaction,
// with its first period, audit entry and message. A version that is a draft is a
// Conflict (plan_not_published), and so is a customer that has a subscription
// (already_subscribed): then the transaction is of no more use.
func (s *Service) SubscribeTx(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, n Start) (Subscription, error) {
	t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
	if err != nil {
		return Subscription{}, err
	}
	c, err := tenants.ReadCustomer(ctx, tx, tenant, n.Customer)
	if err != nil {
		return Subscription{}, err
	}
	terms, err := readTerms(ctx, tx, tenant, n.Version)
	if err != nil {
		return Subscription{}, err
	}
	if terms.Version.Status == Draft {
		return Subscription{}, notPublished()
	}
	sub, err := s.insertSubscription(ctx, tx, t, n, terms)
	if err != nil {
		return sub, conflict(err)
	}
	return sub, s.note(ctx, tx, tenant, sub, message.SubscriptionCreated, map[string]string{"customer": c.Name, "plan": terms.Plan, "status": string(sub.Status)})
}

func (s *Service) insertSubscription(ctx context.Context, tx pgx.Tx, t tenants.Tenant, n Start, terms Terms) (Subscription, error) {
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return Subscription{}, err
	}
	days := terms.Version.TrialDays
	if n.Status == Active {
		days = 0
	}
	sub := Subscription{tenant: t.ID, ID: id.New(), Customer: n.Customer, Plan: terms.PlanID, PlanVersion: n.Version, Status: Active, StartedAt: s.stamp(), Revision: 1}
	if sub.Current, sub.anchor = first(sub.StartedAt, zone, days); sub.Current.Trial {
		sub.Status, sub.TrialEndsAt = Trialing, &sub.Current.End
	}
	_, err = tx.Exec(ctx, `
		insert into subscriptions (tenant_id, subscription_id, customer_id, plan_version_id, status, started_at, zone, anchor, period_ends_at, trial_ends_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		t.ID, sub.ID, sub.Customer, sub.PlanVersion, string(sub.Status), sub.StartedAt, t.Zone, sub.anchor, sub.Current.End, sub.TrialEndsAt)
	if err != nil {
		return sub, err
	}
	return sub, insertPeriod(ctx, tx, t.ID, sub.ID, sub.Current, t.Zone)
}

func insertPeriod(ctx context.Context, tx pgx.Tx, tenant, subscription uuid.UUID, p Period, zone string) error {
	_, err := tx.Exec(ctx, `
		insert into subscription_periods (tenant_id, subscription_id, starts_at, ends_at, number, trial, zone)
		values ($1, $2, $3, $4, $5, $6, $7)`, tenant, subscription, p.Start, p.End, p.Number, p.Trial, zone)
	return err
}

const subscriptionQuery = `
	select s.tenant_id, s.subscription_id, s.customer_id, v.plan_id, s.plan_version_id, s.status, s.started_at, s.trial_ends_at, s.past_due_at,
	       s.cancelled_at, s.suspended_at, s.ended_at, coalesce(s.pending_version_id, '00000000-0000-0000-0000-000000000000'),
	       s.revision, s.anchor, s.last_token, p.starts_at, p.ends_at, p.number, p.trial
	from subscriptions s
	join plan_versions v on v.tenant_id = s.tenant_id and v.plan_version_id = s.plan_version_id
	join subscription_periods p on p.tenant_id = s.tenant_id and p.subscription_id = s.subscription_id and p.ends_at = s.period_ends_at
	where s.tenant_id = $1 and `

func scanSubscription(row pgx.CollectableRow) (sub Subscription, err error) {
	err = row.Scan(&sub.tenant, &sub.ID, &sub.Customer, &sub.Plan, &sub.PlanVersion, &sub.Status, &sub.StartedAt, &sub.TrialEndsAt, &sub.PastDueAt,
		&sub.CancelledAt, &sub.SuspendedAt, &sub.EndedAt, &sub.Pending, &sub.Revision, &sub.anchor, &sub.lastToken,
		&sub.Current.Start, &sub.Current.End, &sub.Current.Number, &sub.Current.Trial)
	return sub, err
}

// Subscription reads one subscription.
func (s *Service) Subscription(ctx context.Context, tenant, subscription uuid.UUID) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		sub, err = readSubscription(ctx, tx, tenant, subscription)
		return err
	})
	return sub, err
}

func readSubscription(ctx context.Context, tx pgx.Tx, tenant, subscription uuid.UUID) (Subscription, error) {
	rows, err := tx.Query(ctx, subscriptionQuery+`s.subscription_id = $2`, tenant, subscription)
	if err != nil {
		return Subscription{}, err
	}
	sub, err := pgx.CollectExactlyOneRow(rows, scanSubscription)
	if errors.Is(err, pgx.ErrNoRows) {
		return sub, tenants.NotFound("subscription")
	}
	return sub, err
}

// SubscriptionFilter narrows a list of subscriptions; what is zero does not.
type SubscriptionFilter struct {
	Customer uuid.UUID
	Version  uuid.UUID
	Status   Status
}

// Subscriptions lists subscriptions, newest first, after an id.
func (s *Service) Subscriptions(ctx context.Context, tenant uuid.UUID, f SubscriptionFilter, after uuid.UUID, limit int) (tenants.Page[Subscription], error) {
	var list []Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, subscriptionQuery+`
			s.subscription_id < $2
			and ($3 = '00000000-0000-0000-0000-000000000000'::uuid or s.customer_id = $3)
			and ($4 = '00000000-0000-0000-0000-000000000000'::uuid or s.plan_version_id = $4)
			and ($5 = '' or s.status = $5)
			order by s.subscription_id desc limit $6`, tenant, tenants.After(after), f.Customer, f.Version, string(f.Status), limit+1)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanSubscription)
		return err
	})
	return tenants.PageOf(list, limit, func(sub Subscription) uuid.UUID { return sub.ID }), err
}

// Periods are those of a subscription, newest first, at most so many.
func (s *Service) Periods(ctx context.Context, tenant, subscription uuid.UUID, most int) ([]Period, error) {
	var list []Period
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select starts_at, ends_at, number, trial from subscription_periods
			where tenant_id = $1 and subscription_id = $2
			order by starts_at desc limit $3`, tenant, subscription, most)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Period, err error) {
			return p, row.Scan(&p.Start, &p.End, &p.Number, &p.Trial)
		})
		return err
	})
	if err == nil && len(list) == 0 {
		err = tenants.NotFound("subscription")
	}
	return list, err
}

// stamp is now as the database keeps it.
func (s *Service) stamp() time.Time { return s.now().UTC().Truncate(time.Microsecond) }
