package billing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
	"weir/internal/tenants"
)

// Party is a customer, and the subscription that it has. What is to come is part
// of it, so that it takes effect at its instant without being read again.
type Party struct {
	Customer     tenants.Customer
	Subscription uuid.UUID // zero: no active one
	Version      uuid.UUID // the plan version that it is on
	Suspended    bool      // the subscription
	Overrides    []Override

	periodEnds time.Time
	ends       bool      // with the period
	next       uuid.UUID // the version from the period's end on; zero: the same
}

// At is the party as it stands at an instant: on the version that waited for its
// period's end, or on none where it was cancelled, even before the period is
// turned.
func (p Party) At(now time.Time) Party {
	switch {
	case p.Subscription == uuid.Nil || now.Before(p.periodEnds):
	case p.ends:
		p.Subscription, p.Version, p.Overrides = uuid.Nil, uuid.Nil, nil
	case p.next != uuid.Nil:
		p.Version = p.next
	}
	return p
}

// Terms are what a plan version says, to all who are on it.
type Terms struct {
	PlanID  uuid.UUID
	Plan    string // its name
	Version Version
}

// In is the same terms where days are those of other zones.
func (t Terms) In(z limits.Zones) Terms {
	t.Version.Limits = tenants.InZones(slices.Clone(t.Version.Limits), z)
	return t
}

// PartyOf reads a customer with its subscription.
func (s *Service) PartyOf(ctx context.Context, tenant, customer uuid.UUID) (Party, error) {
	var p Party
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		p, err = readParty(ctx, tx, tenant, customer, s.now())
		return err
	})
	return p, err
}

// readParty reads a party for what is at an instant and later.
func readParty(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID, at time.Time) (p Party, err error) {
	if p.Customer, err = tenants.ReadCustomer(ctx, tx, tenant, customer); err != nil {
		return p, err
	}
	err = tx.QueryRow(ctx, `
		select subscription_id, plan_version_id, suspended_at is not null, period_ends_at, status = 'cancelled',
		       coalesce(pending_version_id, '00000000-0000-0000-0000-000000000000')
		from subscriptions
		where tenant_id = $1 and customer_id = $2 and status <> 'ended'`, tenant, customer).
		Scan(&p.Subscription, &p.Version, &p.Suspended, &p.periodEnds, &p.ends, &p.next)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	over, err := overridesOf(ctx, tx, tenant, at, p.Subscription)
	p.Overrides = over[p.Subscription]
	return p, err
}

// TermsOf reads what a plan version says.
func (s *Service) TermsOf(ctx context.Context, tenant, version uuid.UUID) (Terms, error) {
	var t Terms
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		t, err = readTerms(ctx, tx, tenant, version)
		return err
	})
	return t, err
}

// TermsTx is TermsOf for a caller who owns the transaction.
func (s *Service) TermsTx(ctx context.Context, tx pgx.Tx, tenant, version uuid.UUID) (Terms, error) {
	return readTerms(ctx, tx, tenant, version)
}

func readTerms(ctx context.Context, tx pgx.Tx, tenant, version uuid.UUID) (t Terms, err error) {
	err = tx.QueryRow(ctx, `
		select p.plan_id, p.name
		from plan_versions v
		join plans p on p.tenant_id = v.tenant_id and p.plan_id = v.plan_id
		where v.tenant_id = $1 and v.plan_version_id = $2`, tenant, version).Scan(&t.PlanID, &t.Plan)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, tenants.NotFound("plan version")
	}
	if err != nil {
		return t, err
	}
	t.Version, err = oneVersion(ctx, tx, tenant, `plan_version_id = $2`, version)
	return t, err
}
