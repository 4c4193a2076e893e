package billing

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
	"weir/internal/tenants"
)

// Party is a customer, and the subscription that it has.
type Party struct {
	Customer     tenants.Customer
	Subscription uuid.UUID // zero: no active one
	Version      uuid.UUID // the plan version that it is on
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
		p, err = readParty(ctx, tx, tenant, customer)
		return err
	})
	return p, err
}

func readParty(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) (p Party, err error) {
	if p.Customer, err = tenants.ReadCustomer(ctx, tx, tenant, customer); err != nil {
		return p, err
	}
	err = tx.QueryRow(ctx, `
		select subscription_id, plan_version_id from subscriptions
		where tenant_id = $1 and customer_id = $2 and status <> 'ended'`, tenant, customer).Scan(&p.Subscription, &p.Version)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil
	}
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
