package usage

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// civilDay is a day of a tenant that has usage.
type civilDay struct {
	tenant   uuid.UUID
	from, to time.Time // to is where the next one begins, or a little later
}

// CheckDays compares each day of each tenant that has ended and was not compared
// yet, and keeps what differs.
func (k *Keeper) CheckDays(ctx context.Context) error {
	now := k.now()
	due, err := k.unchecked(ctx, now)
	if err != nil {
		return err
	}
	for _, d := range due { // one that fails is no other's
		err = errors.Join(err, k.check(ctx, d, now))
	}
	return err
}

func (k *Keeper) unchecked(ctx context.Context, now time.Time) (due []civilDay, err error) {
	err = k.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select d.tenant_id, d.bucket, coalesce(d.next, d.bucket + $3::interval)
			from (
				select tenant_id, bucket, lead(bucket) over (partition by tenant_id order by bucket) as next
				from (select distinct tenant_id, bucket from usage_day where bucket > $1) b
			) d
			left join reconciliations r on r.tenant_id = d.tenant_id and r.day = d.bucket
			left join usage_gone g on g.tenant_id = d.tenant_id
			where d.bucket < $2 and r.checked_at is null
			  and d.bucket >= (select greatest(gone_before, g.gone_before) + 1 from usage_retention)
			order by d.bucket, d.tenant_id`, now.Add(-checksBack), now.Add(-longestOne-checkAfter), longestOne)
		if err != nil {
			return err
		}
		due, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d civilDay, err error) {
			return d, row.Scan(&d.tenant, &d.from, &d.to)
		})
		return err
	})
	return due, err
}

// check compares one day, and keeps the answer where another process has not
// done so meanwhile.
func (k *Keeper) check(ctx context.Context, d civilDay, now time.Time) error {
	if d.to.Sub(d.from) > 2*longestOne { // the next day with usage is far: what lies between is empty
		d.to = d.from.Add(longestOne)
	}
	differ, err := Reconcile(ctx, k.db, d.tenant, d.from, d.to, now)
	if err != nil {
		return err
	}
	for _, x := range differ[:min(len(differ), mostShown)] {
		k.log.ErrorContext(ctx, "the books differ from their events", "tenant", d.tenant, "day", d.from, "table", x.Table, "key", x.Key, "booked", x.Booked, "events", x.Events)
	}
	return k.note(ctx, d, differ, now)
}

func (k *Keeper) note(ctx context.Context, d civilDay, differ []Difference, now time.Time) error {
	shown, err := encode(append([]Difference{}, differ[:min(len(differ), mostShown)]...))
	if err != nil {
		return err
	}
	return k.exec(ctx, `
		insert into reconciliations as r (tenant_id, day, checked_at, differences, found_at)
		values ($1, $2, $3, $4::jsonb, case when $4::jsonb <> '[]' then $3::timestamptz end)
		on conflict (tenant_id, day) do update
		set checked_at = excluded.checked_at, differences = excluded.differences,
		    found_at = case when excluded.differences <> '[]' then coalesce(r.found_at, excluded.found_at) end`,
		d.tenant, d.from, now, string(shown))
}

// RebuildAsked sums the days anew that somebody asked for, and compares them
// afterwards. One whose calls are no longer all there is left as it is.
func (k *Keeper) RebuildAsked(ctx context.Context) error {
	var asked []civilDay
	err := k.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, day, day_end from reconciliations where asked_at is not null order by asked_at limit 20`)
		if err != nil {
			return err
		}
		asked, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d civilDay, err error) {
			return d, row.Scan(&d.tenant, &d.from, &d.to)
		})
		return err
	})
	for _, d := range asked {
		err = errors.Join(err, k.rebuild(ctx, d))
	}
	return err
}

func (k *Keeper) rebuild(ctx context.Context, d civilDay) error {
	now := k.now()
	if err := Rebuild(ctx, k.db, d.tenant, d.from, d.to, now); err != nil && !errors.Is(err, ErrGone) {
		return err
	} else if err != nil {
		k.log.WarnContext(ctx, "day not summed again", "tenant", d.tenant, "day", d.from, "error", err)
		return k.exec(ctx, `update reconciliations set asked_at = null where tenant_id = $1 and day = $2`, d.tenant, d.from)
	}
	differ, err := Reconcile(ctx, k.db, d.tenant, d.from, d.to, now)
	if err != nil {
		return err
	}
	if err := k.note(ctx, d, differ, now); err != nil {
		return err
	}
	k.log.InfoContext(ctx, "day summed again", "tenant", d.tenant, "day", d.from, "differences", len(differ))
	return k.exec(ctx, `update reconciliations set asked_at = null, rebuilt_at = $3 where tenant_id = $1 and day = $2`, d.tenant, d.from, now)
}
