package usage

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// lateAfterErasure is how long calls of an erased customer are looked for that
// a worker was just storing. What comes later is stored without names.
const lateAfterErasure = time.Hour

// Erase has the worker take end users and tags out of every call of a customer,
// within minutes; what is stored of it from now on has none. Every figure stays. It takes part in the transaction of whoever erases the customer.
func Erase(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		insert into usage_erasures (tenant_id, customer_id) values ($1, $2)
		on conflict (tenant_id, customer_id) do update set asked_at = now(), looked_at = null`, tenant, customer)
	return err
}

// erasure is a customer whose calls are to name nobody.
type erasure struct{ tenant, customer uuid.UUID }

// EraseAsked does what Erase asked for, a partition at a time.
func (k *Keeper) EraseAsked(ctx context.Context) error {
	now := k.now()
	var due []erasure
	err := k.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select tenant_id, customer_id from usage_erasures
			where looked_at is null or looked_at < $1 and looked_at < asked_at + $2
			order by asked_at limit 20`, now.Add(-10*time.Minute), lateAfterErasure)
		if err != nil {
			return err
		}
		due, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e erasure, err error) {
			return e, row.Scan(&e.tenant, &e.customer)
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range due {
		err = errors.Join(err, k.erase(ctx, e, now))
	}
	return err
}

func (k *Keeper) erase(ctx context.Context, e erasure, now time.Time) error {
	var days []time.Time
	err := k.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select distinct day_utc from usage_events
			where tenant_id = $1 and customer_id = $2 and (end_user is not null or tags is not null)`, e.tenant, e.customer)
		if err != nil {
			return err
		}
		days, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range days {
		err := k.exec(ctx, `
			update usage_events set end_user = null, tags = null
			where tenant_id = $1 and customer_id = $2 and day_utc = $3 and (end_user is not null or tags is not null)`, e.tenant, e.customer, d)
		if err != nil {
			return err
		}
	}
	return k.exec(ctx, `update usage_erasures set looked_at = $3 where tenant_id = $1 and customer_id = $2`, e.tenant, e.customer, now)
}
