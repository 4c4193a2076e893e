package billing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/tenants"
)

// Era is a span in which a customer was on one plan version, half-open; a zero
// Until has no end yet.
type Era struct {
	From, Until  time.Time
	Subscription uuid.UUID
	Terms
}

// History is on which plan versions a customer was, oldest first. Between eras
// it was on none. NotFound as for any customer.
func (s *Service) History(ctx context.Context, tenant, customer uuid.UUID) (eras []Era, err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tenants.ReadCustomer(ctx, tx, tenant, customer); err != nil {
			return err
		}
		versions := map[uuid.UUID]Terms{}
		if eras, err = readEras(ctx, tx, tenant, customer); err != nil {
			return err
		}
		for i := range eras {
			of := eras[i].Version.ID
			terms, known := versions[of]
			if !known {
				if terms, err = readTerms(ctx, tx, tenant, of); err != nil {
					return err
				}
				versions[of] = terms
			}
			eras[i].Terms = terms
		}
		return nil
	})
	return eras, err
}

// readEras cuts each subscription where it changed its version.
func readEras(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) ([]Era, error) {
	rows, err := tx.Query(ctx, `
		with pieces as (
			select subscription_id, changed_at as at, to_version_id as version_id, from_version_id as before
			from subscription_changes
			where tenant_id = $1
		)
		select s.subscription_id, s.started_at,
		       coalesce((select p.before from pieces p where p.subscription_id = s.subscription_id order by p.at limit 1), s.plan_version_id), s.ended_at
		from subscriptions s
		where s.tenant_id = $1 and s.customer_id = $2
		union all
		select s.subscription_id, p.at, p.version_id, s.ended_at
		from subscriptions s
		join pieces p on p.subscription_id = s.subscription_id
		where s.tenant_id = $1 and s.customer_id = $2
		order by 2`, tenant, customer)
	if err != nil {
		return nil, err
	}
	eras, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Era, err error) {
		var until *time.Time
		err = row.Scan(&e.Subscription, &e.From, &e.Version.ID, &until)
		if until != nil {
			e.Until = until.UTC()
		}
		e.From = e.From.UTC()
		return e, err
	})
	for i := range eras {
		if i+1 < len(eras) && eras[i+1].Subscription == eras[i].Subscription {
			eras[i].Until = eras[i+1].From
		}
	}
	return eras, err
}

// At is the era that an instant is in; false where there was none.
func At(eras []Era, t time.Time) (Era, bool) {
	for i := len(eras) - 1; i >= 0; i-- {
		if !t.Before(eras[i].From) {
			return eras[i], eras[i].Until.IsZero() || t.Before(eras[i].Until)
		}
	}
	return Era{}, false
}
