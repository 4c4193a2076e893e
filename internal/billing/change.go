package billing

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
	"weir/internal/tenants"
)

// When is when a change takes effect.
type When string

// The instants of a change. "" leaves it to what the change is: an upgrade takes
// effect now, a downgrade when the period ends.
const (
	AtOnce      When = "now"
	AtPeriodEnd When = "period_end"
)

// Direction is what a change is.
type Direction string

// The directions.
const (
	Upgrade   Direction = "upgrade"
	Downgrade Direction = "downgrade"
)

// Direct says what going from one version to another is. The base fee decides;
// where it is the same, the limits: tighter in any is a downgrade.
func Direct(from, to Version) Direction {
	switch {
	case to.BaseFee > from.BaseFee:
		return Upgrade
	case to.BaseFee < from.BaseFee, tighter(from.Limits, to.Limits):
		return Downgrade
	}
	return Upgrade
}

// tighter tells whether a limit of to allows less than from did, or limits what
// from did not.
func tighter(from, to []limits.Limit) bool {
	for _, l := range to {
		i := slices.IndexFunc(from, l.Same)
		if l.Mode != limits.ModeShadow && (i < 0 || l.Amount < from[i].Amount || from[i].Mode == limits.ModeShadow) {
			return true
		}
	}
	return false
}

// Line is an amount that a change adds to the running period.
type Line struct {
	Kind        string // proration
	Description string
	AmountMinor int64
}

// Change is a change of a subscription's plan version: as it would be, or as it
// was made. Preview and change are made by the same function.
type Change struct {
	Subscription  Subscription
	Direction     Direction
	When          When
	At            time.Time // when it takes effect
	From, To      Terms
	Lines         []Line // for the running period
	TotalMinor    int64
	NextFeeMinor  int64 // of the next whole period
	Currency      string
	Before, After []limits.Limit // of the customer, overrides among them
	Token         string         // of a preview: carries out exactly this
	Expires       time.Time      // of the token
}

// Piece is what of a fee falls into a part of a period, from and to in whole
// seconds after its start. Pieces that tile a period add up to the fee.
func Piece(fee, from, to, whole int64) int64 {
	return share(fee, to, whole) - share(fee, from, whole)
}

// change works out what a locked subscription's change to a version is, at an
// instant.
func (s *Service) change(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub Subscription, version uuid.UUID, when When, at time.Time) (Change, error) {
	if at.Before(sub.Current.Start) {
		at = sub.Current.Start // it was turned by a clock that is ahead
	}
	c := Change{Subscription: sub, When: when, At: at}
	var err error
	if c.From, err = readTerms(ctx, tx, tenant, sub.PlanVersion); err != nil {
		return c, err
	}
	if c.To, err = readTerms(ctx, tx, tenant, version); err != nil {
		return c, err
	}
	if err := changeable(sub, c.To.Version); err != nil {
		return c, err
	}
	c.Direction, c.Currency, c.NextFeeMinor = Direct(c.From.Version, c.To.Version), c.To.Version.Currency, c.To.Version.BaseFee
	switch {
	case when == "" && c.Direction == Upgrade:
		c.When = AtOnce
	case when == "":
		c.When = AtPeriodEnd
	}
	if c.When == AtPeriodEnd {
		c.At = sub.Current.End
	} else if !sub.Current.Trial {
		c.prorate()
	}
	over, err := overridesOf(ctx, tx, tenant, at, sub.ID)
	if err != nil {
		return c, err
	}
	c.Before = Overridden(c.From.Version.Placed(sub.Customer, c.From.Plan), over[sub.ID], at)
	c.After = Overridden(c.To.Version.Placed(sub.Customer, c.To.Plan), over[sub.ID], c.At)
	return c, nil
}

func changeable(sub Subscription, to Version) error {
	switch {
	case sub.Status == Ended:
		return hasEnded()
	case sub.Status == Cancelled:
		return fault.New(fault.Conflict, "subscription_cancelled", "This subscription is cancelled and ends with its period. Take the cancellation back first.")
	case to.Status == Draft:
		return notPublished()
	case sub.PlanVersion == to.ID && sub.Pending == uuid.Nil:
		return alreadyOn("The customer is on this version of the plan already.")
	case sub.PlanVersion == to.ID:
		return alreadyOn("The customer is on this version already. To let it stay there, take back the change that waits for the period's end.")
	}
	return nil
}

func alreadyOn(says string) error {
	return fault.New(fault.Conflict, "already_on_plan", says).
		With(fault.Field{Pointer: "/plan", Code: "already_on_plan", Message: "It is on this plan already."})
}

// prorate cuts the period where the change takes effect. A fee of 0 makes no line.
func (c *Change) prorate() {
	p := c.Subscription.Current
	whole, cut := int64(p.End.Sub(p.Start)/time.Second), int64(c.At.Sub(p.Start)/time.Second)
	for _, x := range []struct {
		says string
		of   Terms
		sign int64
	}{{"Unused time on ", c.From, -1}, {"Remaining time on ", c.To, 1}} {
		if amount := x.sign * Piece(x.of.Version.BaseFee, cut, whole, whole); amount != 0 {
			c.Lines = append(c.Lines, Line{Kind: "proration", Description: x.says + x.of.Plan, AmountMinor: amount})
			c.TotalMinor += amount
		}
	}
}

// apply carries a change out.
func (s *Service) apply(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, c *Change, batch uuid.UUID) error {
	sub, told := &c.Subscription, message.SubscriptionScheduled
	if c.When == AtPeriodEnd {
		sub.Pending = c.To.Version.ID
	} else {
		told = message.SubscriptionChanged
		if err := insertChange(ctx, tx, tenant, sub, c.To.Version.ID, c.At, false, batch); err != nil {
			return err
		}
		sub.Plan, sub.PlanVersion, sub.Pending = c.To.PlanID, c.To.Version.ID, uuid.Nil
	}
	if err := saveSubscription(ctx, tx, tenant, sub); err != nil {
		return err
	}
	return s.note(ctx, tx, tenant, *sub, told, map[string]string{
		"from": c.From.Plan, "plan": c.To.Plan, "plan_version": id.PlanVersion.Format(c.To.Version.ID), "when": string(c.When), "direction": string(c.Direction),
	})
}

// insertChange keeps changes of one instant, or by clocks that differ, in the
// order in which they were made: each stands after the one before.
func insertChange(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, sub *Subscription, to uuid.UUID, at time.Time, atEnd bool, batch uuid.UUID) error {
	var of *uuid.UUID
	if batch != uuid.Nil {
		of = &batch
	}
	_, err := tx.Exec(ctx, `
		insert into subscription_changes (tenant_id, subscription_id, changed_at, from_version_id, to_version_id, at_period_end, batch)
		select $1, $2, greatest($3, max(before.at) + interval '1 microsecond'), $4, $5, $6, $7
		from (
		    select started_at as at from subscriptions where tenant_id = $1 and subscription_id = $2
		    union all
		    select changed_at from subscription_changes where tenant_id = $1 and subscription_id = $2) before`, tenant, sub.ID, at, sub.PlanVersion, to, atEnd, of)
	return err
}

// PreviewChange says what putting a subscription on the published version of a
// plan would do, and for how much. Its token carries out exactly this for a
// quarter of an hour, unless the subscription changes meanwhile.
func (s *Service) PreviewChange(ctx context.Context, tenant, subscription, plan uuid.UUID, when When) (Change, error) {
	if when != "" && when != AtOnce && when != AtPeriodEnd {
		return Change{}, fault.InvalidFields(fault.Field{Pointer: "/at", Code: "not_one_of", Message: "A change takes effect now or at period_end."})
	}
	var c Change
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		sub, err := s.lock(ctx, tx, tenant, subscription)
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
		c, err = s.change(ctx, tx, tenant, sub, p.Version.ID, when, s.stamp())
		return err
	})
	if err == nil {
		c.Token, c.Expires = s.pin(c, s.stamp())
	}
	return c, err
}

// ChangeBy carries out the change of a preview, once however often it is asked.
// A token that is none, or another tenant's, is Invalid; one that is over, or
// whose subscription has changed since, a Conflict (preview_stale) that says
// what changed.
func (s *Service) ChangeBy(ctx context.Context, tenant, subscription uuid.UUID, token string) (Subscription, error) {
	if _, err := s.Subscription(ctx, tenant, subscription); err != nil {
		return Subscription{}, err
	}
	t, err := s.readToken(tenant, subscription, token)
	if err != nil {
		return Subscription{}, err
	}
	sum := sha256.Sum256([]byte(token))
	var sub Subscription
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if sub, err = s.lock(ctx, tx, tenant, subscription); err != nil {
			return err
		}
		if slices.Equal(sub.lastToken, sum[:]) {
			return nil // it was carried out before
		}
		if err := t.holds(sub, s.stamp()); err != nil {
			return err
		}
		c, err := s.change(ctx, tx, tenant, sub, t.To, t.When, t.At)
		if err != nil {
			return err
		}
		if c.To.Version.Status != Published {
			return stale("Another version of the plan was published, or this one was retired.")
		}
		c.Subscription.lastToken = sum[:]
		if err := s.apply(ctx, tx, tenant, &c, uuid.Nil); err != nil {
			return err
		}
		sub = c.Subscription
		return nil
	})
	return sub, conflict(err)
}

// Move puts a customer that has a subscription on the published version of a
// plan at once, without a preview. Subscription and period go on; ledgers hang
// on the customer, so what is used stays used. A customer without a
// subscription, a plan without a published version, and the version that it is
// on already are Conflicts.
func (s *Service) Move(ctx context.Context, tenant, customer, plan uuid.UUID) (Subscription, error) {
	var sub Subscription
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tenants.ReadCustomer(ctx, tx, tenant, customer); err != nil {
			return err
		}
		p, err := readPlan(ctx, tx, tenant, plan)
		if err != nil {
			return err
		}
		if p.Version.Status != Published {
			return notPublished()
		}
		if sub, err = s.lockOf(ctx, tx, tenant, customer); err != nil {
			return err
		}
		c, err := s.change(ctx, tx, tenant, sub, p.Version.ID, AtOnce, s.stamp())
		if err != nil {
			return err
		}
		err = s.apply(ctx, tx, tenant, &c, uuid.Nil)
		sub = c.Subscription
		return err
	})
	return sub, conflict(err)
}

// lockOf locks the subscription that a customer has.
func (s *Service) lockOf(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) (Subscription, error) {
	p, err := readParty(ctx, tx, tenant, customer, s.now())
	if err != nil {
		return Subscription{}, err
	}
	if p.Subscription == uuid.Nil {
		return Subscription{}, fault.New(fault.Conflict, "no_active_subscription", "This customer is on no plan yet, so there is none to move it from.")
	}
	return s.lock(ctx, tx, tenant, p.Subscription)
}
