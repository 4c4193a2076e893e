package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// BehindSince is the instant up to which the books surely have every call of the
// tenant that ended, where some may be missing; zero where none is. They may be
// missing of an instance that has given numbers of the tenant's shard which are
// not committed, and of one that says nothing and is neither stopped nor retired.
// The transaction may be any tenant's.
func BehindSince(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, now time.Time) (time.Time, error) {
	var since *time.Time
	err := tx.QueryRow(ctx, `
		select min(coalesce(i.fresh_at, i.started_at))
		from instances i
		left join usage_marks m on m.instance_id = i.instance_id and m.shard = $1
		where i.stopped_at is null and i.retired_at is null
		  and (i.seen_at < $2
		       or coalesce(i.numbers[$1 + 1], 0) > 0 and not coalesce(m.committed, '{}') @> int8range(1, i.numbers[$1 + 1], '[]'))`,
		ShardOf(tenant), now.Add(-SilentAfter)).Scan(&since)
	if err != nil || since == nil {
		return time.Time{}, err
	}
	return since.UTC(), nil
}

// DayApart is a civil day of a tenant whose books differ from its calls.
type DayApart struct {
	Day, FoundAt time.Time
	Rows         int // that differ; at most those that are kept
}

// DaysApart are the days whose difference stands and was first seen since an
// instant, oldest first. The transaction must be the tenant's.
func DaysApart(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, since time.Time) ([]DayApart, error) {
	rows, err := tx.Query(ctx, `
		select day, found_at, jsonb_array_length(differences)
		from reconciliations
		where tenant_id = $1 and found_at >= $2
		order by day`, tenant, since)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DayApart, err error) {
		return d, row.Scan(&d.Day, &d.FoundAt, &d.Rows)
	})
}

// Saw notes what a look at a day, by DayBooks at an instant, found of it: a
// difference that nobody knew of, or that a known one is gone. What was compared
// after that instant stands.
func (r *Reports) Saw(ctx context.Context, tenant uuid.UUID, from, to time.Time, differ []Difference, at time.Time) error {
	shown, err := encode(append([]Difference{}, differ[:min(len(differ), mostShown)]...))
	if err != nil {
		return err
	}
	return r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into reconciliations as r (tenant_id, day, day_end, differences, found_at)
			select $1, $2, $3, $4::jsonb, $5
			where $4::jsonb <> '[]' or exists (select from reconciliations where tenant_id = $1 and day = $2 and found_at is not null)
			on conflict (tenant_id, day) do update
			set differences = excluded.differences, found_at = case when excluded.differences <> '[]' then coalesce(r.found_at, excluded.found_at) end
			where coalesce(greatest(r.checked_at, r.rebuilt_at, r.found_at), '-infinity') < excluded.found_at and r.differences <> excluded.differences`,
			tenant, from, to, string(shown), at)
		return err
	})
}
