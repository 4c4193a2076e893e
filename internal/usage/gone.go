package usage

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrGone says that calls of a day were dropped after their retention, so that
// its sums cannot be made again.
var ErrGone = errors.New("usage: calls of the day are no longer kept")

// keepGone is held, shared, by whoever rests on calls that are still there, and
// alone by whoever says that some are not.
const keepGone = "hashtext('usage_gone')"

// goneBefore is the day before which calls of a tenant, or of nobody in
// particular, may be gone.
func goneBefore(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (d time.Time, err error) {
	err = tx.QueryRow(ctx, `
		select greatest(usage_kept_since(), (select gone_before from usage_gone where tenant_id = $1))`, tenant).Scan(&d)
	return d, err
}

// stays is ErrGone where a call that counts in a window from an instant on may be
// gone; if not, none goes before the transaction ends.
func stays(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, from time.Time) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+keepGone+`)`); err != nil {
		return err
	}
	gone, err := goneBefore(ctx, tx, tenant)
	if err == nil && !kept(from, gone) {
		err = ErrGone
	}
	return err
}

// kept tells whether every call of a day that begins at an instant is there: an
// id may be minted a little before its call begins.
func kept(from, gone time.Time) bool { return !from.Before(gone.AddDate(0, 0, 1)) }

// moveGone says which days are over, before anything of them goes: those before
// oldest, and those that tenants do not keep for so long. It returns since when
// the installation keeps calls, which is never earlier than it was.
func (k *Keeper) moveGone(ctx context.Context, now time.Time) (oldest time.Time, err error) {
	err = k.db.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+keepGone+`)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			insert into usage_gone as g (tenant_id, gone_before)
			select tenant_id, $1::date - days from usage_kept_days()
			on conflict (tenant_id) do update set gone_before = greatest(g.gone_before, excluded.gone_before)`, now); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			update usage_retention set gone_before = greatest(gone_before, $1::date - $2::integer) returning gone_before`, now, k.days).Scan(&oldest)
	})
	return oldest, err
}

// dropGone drops what is over: whole partitions, and calls of tenants that keep
// theirs for a shorter time, a day at a time.
func (k *Keeper) dropGone(ctx context.Context, oldest time.Time) error {
	var gone []string
	var from, to time.Time
	err := k.db.Tx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select usage_drop_days($1)`, oldest).Scan(&gone); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			select coalesce(min(day_utc), $1::date), coalesce((select max(gone_before) from usage_gone), $1::date)
			from (select to_date(right(relname, 8), 'YYYYMMDD') as day_utc from pg_inherits join pg_class c on c.oid = inhrelid
			      where inhparent = 'usage_events'::regclass and relname ~ '^usage_events_[0-9]{8}$') d`, oldest).Scan(&from, &to)
	})
	if err != nil {
		return err
	}
	for _, partition := range gone {
		k.log.InfoContext(ctx, "events past their time dropped", "partition", partition)
	}
	for d := from; d.Before(to); d = d.AddDate(0, 0, 1) {
		err := k.exec(ctx, `
			delete from usage_events
			where day_utc = $1::date and tenant_id = any (array(select tenant_id from usage_gone where gone_before > $1::date))`, d)
		if err != nil {
			return err
		}
	}
	return nil
}

const atATime = 20_000 // rows that clear deletes in one transaction

// clear deletes what a condition names, some rows at a time, so that nothing
// waits for long and no amount of it is too much.
func (k *Keeper) clear(ctx context.Context, table, where string, args ...any) error {
	for {
		var n int64
		err := k.db.Tx(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `delete from `+table+` where ctid = any (array(select ctid from `+table+` where `+where+` limit `+strconv.Itoa(atATime)+`))`, args...)
			n = tag.RowsAffected()
			return err
		})
		if err != nil || n < atATime {
			return err
		}
	}
}
