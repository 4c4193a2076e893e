package billing

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/money"
	"weir/internal/tenants"
)

// QuotedTx makes n the draft of the plan that one quote alone offers under a name,
// and makes that plan where the quote has none of the name yet: what was sent
// under another keeps it. It is in no list of plans. Publish it with PublishQuotedTx when the quote is sent.
func (s *Service) QuotedTx(ctx context.Context, tx pgx.Tx, tenant, quote uuid.UUID, name string, n NewVersion) (Version, error) {
	var v Version
	t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
	if err != nil {
		return v, err
	}
	n, sums, wrong := n.checked(t.Currency)
	if len(wrong) > 0 {
		return v, fault.InvalidFields(wrong...)
	}
	plan, err := s.quotedPlan(ctx, tx, tenant, quote, name)
	if err != nil {
		return v, err
	}
	v, err = newestVersion(ctx, tx, tenant, plan)
	switch {
	case fault.Is(err, fault.NotFound):
		v = Version{Number: 1}
	case err != nil:
		return v, err
	case v.Status != Draft:
		v = Version{Number: v.Number + 1}
	}
	v.BaseFee, v.Minimum, v.Currency, v.Prices = sums.fee, sums.minimum, sums.currency, nil
	return v, conflict(s.writeDraft(ctx, tx, tenant, plan, &v, n))
}

func (s *Service) quotedPlan(ctx context.Context, tx pgx.Tx, tenant, quote uuid.UUID, name string) (plan uuid.UUID, err error) {
	err = tx.QueryRow(ctx, `
		select plan_id from plans where tenant_id = $1 and quote_id = $2 and name = $3`, tenant, quote, name).Scan(&plan)
	if !errors.Is(err, pgx.ErrNoRows) {
		return plan, err
	}
	plan = id.New()
	_, err = tx.Exec(ctx, `
		insert into plans (tenant_id, plan_id, name, quote_id, created_at)
		values ($1, $2, $3, $4, $5)`, tenant, plan, name, quote, s.stamp())
	return plan, err
}

// PublishQuotedTx freezes the version that a quote offers of its own, and
// retires the one that it offered before. Of a plan of the list nothing is
// changed; there, a version that is a draft is a Conflict.
func (s *Service) PublishQuotedTx(ctx context.Context, tx pgx.Tx, tenant, version uuid.UUID) error {
	var plan uuid.UUID
	var quoted bool
	var status VersionStatus
	err := tx.QueryRow(ctx, `
		select p.plan_id, p.quote_id is not null, v.status
		from plan_versions v
		join plans p on p.tenant_id = v.tenant_id and p.plan_id = v.plan_id
		where v.tenant_id = $1 and v.plan_version_id = $2`, tenant, version).Scan(&plan, &quoted, &status)
	switch {
	case err != nil:
		return err
	case status != Draft:
		return nil
	case !quoted:
		return notPublished()
	}
	return s.release(ctx, tx, tenant, plan, version)
}

// SubscribeVersionTx puts a customer on a plan version, from now: one that is on
// a plan already moves, at once, and a cancellation of it is taken back. The
// version that it is on already is left as it is. A draft is a Conflict.
func (s *Service) SubscribeVersionTx(ctx context.Context, tx pgx.Tx, tenant, customer, version uuid.UUID) (Subscription, error) {
	sub, err := s.lockOf(ctx, tx, tenant, customer)
	if err != nil && fault.Of(err).Code == "no_active_subscription" || err == nil && sub.Status == Ended {
		return s.SubscribeTx(ctx, tx, tenant, Start{Customer: customer, Version: version})
	}
	if err != nil || sub.PlanVersion == version && sub.Status != Cancelled && sub.Pending == uuid.Nil {
		return sub, err
	}
	if sub.Status == Cancelled {
		sub.CancelledAt = nil
		sub.Status = sub.standing()
	}
	if sub.PlanVersion == version {
		sub.Pending = uuid.Nil
		if err := saveSubscription(ctx, tx, tenant, &sub); err != nil {
			return sub, err
		}
		return sub, s.note(ctx, tx, tenant, sub, message.SubscriptionKept, map[string]string{"status": string(sub.Status)})
	}
	c, err := s.change(ctx, tx, tenant, sub, version, AtOnce, s.stamp())
	if err != nil {
		return sub, err
	}
	err = s.apply(ctx, tx, tenant, &c, uuid.Nil)
	return c.Subscription, conflict(err)
}

func notPublished() error {
	return fault.New(fault.Conflict, "plan_not_published", "This plan has no published version yet; publish it first.")
}

// Again is a version's terms as the start of another.
func (v Version) Again() NewVersion {
	list := slices.Clone(v.Limits)
	for i := range list {
		list[i].ID, list[i].Zone, list[i].PastZones = uuid.Nil, "", nil // they are the version's, and the tenant's
	}
	return NewVersion{
		Limits: list, Prices: slices.Clone(v.Prices), Period: v.Period, TrialDays: v.TrialDays, CapOutput: v.CapOutput,
		BaseFee: &money.Amount{Amount: money.FormatMinor(v.BaseFee, v.Currency), Currency: v.Currency},
		Minimum: &money.Amount{Amount: money.FormatMinor(v.Minimum, v.Currency), Currency: v.Currency},
	}
}

// Supposed is what a version of these terms would be, without an id: nothing is
// kept. Invalid names every field that is wrong.
func (s *Service) Supposed(ctx context.Context, tenant uuid.UUID, n NewVersion) (Version, error) {
	var v Version
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		n, sums, wrong := n.checked(t.Currency)
		if len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
		v = Version{
			Status: Draft, Limits: n.Limits, Prices: n.Prices, BaseFee: sums.fee, Minimum: sums.minimum, Currency: sums.currency,
			Period: n.Period, TrialDays: n.TrialDays, CapOutput: n.CapOutput,
		}
		return nil
	})
	return v, err
}
