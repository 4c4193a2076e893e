package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
)

// DayBooks are the sums of one civil day of a tenant, each summed on its own as
// one instant shows it.
type DayBooks struct {
	Events, Quarters, Days Sums
	Calls, Refusals        int64 // rows of events: of calls that were admitted, and of refusals
	Caps                   []CapBook
	Differences            []Difference
	Gone                   bool // calls of the day are no longer kept: nothing is compared with them
	AsOf                   time.Time
}

// CapBook is one calendar window that began in the day: what its calls state
// that they charged, and the total that caps are loaded from.
type CapBook struct {
	Ledger          string
	Window          time.Time
	Charged, Booked int64
}

// DayBooks reads the books of the day that begins at from and ends at to.
func (r *Reports) DayBooks(ctx context.Context, tenant uuid.UUID, from, to time.Time) (b DayBooks, err error) {
	now := r.now()
	err = r.db.Snapshot(ctx, tenant, func(tx pgx.Tx) (err error) {
		b = DayBooks{}
		if b.AsOf, _, err = complete(ctx, tx, now); err != nil {
			return err
		}
		events := fmt.Sprintf(`(select *, local_day as bucket, `+latencyOf+` as latency from usage_events where day_utc between '%s'::date - 1 and '%s'::date + 3) e`, from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly))
		for _, book := range []struct {
			sums *Sums
			of   string
		}{{&b.Events, events}, {&b.Quarters, "usage_quarter e"}, {&b.Days, "usage_day e"}} {
			if *book.sums, err = sumAll(ctx, tx, book.of, tenant, from, to); err != nil {
				return err
			}
		}
		err = tx.QueryRow(ctx, `select count(*) filter (where refused = 0), count(*) filter (where refused > 0) from `+events+` where tenant_id = $1 and bucket >= $2 and bucket < $3`, tenant, from, to).Scan(&b.Calls, &b.Refusals)
		if err != nil {
			return err
		}
		if b.Caps, err = capBooks(ctx, tx, tenant, from, to); err != nil {
			return err
		}
		gone, err := goneBefore(ctx, tx, tenant)
		if b.Gone = !kept(from, gone); b.Gone || err != nil {
			return err
		}
		b.Differences, err = reconcile(ctx, tx, tenant, from, to, now)
		return err
	})
	return b, err
}

// sumAll adds up everything of a tenant in a table's buckets.
func sumAll(ctx context.Context, tx pgx.Tx, of string, tenant uuid.UUID, from, to time.Time) (s Sums, err error) {
	rows, err := tx.Query(ctx, `
		select 0, `+noID+`, '', false, currency, coalesce(cost_currency, ''), `+cellSums+`
		from `+of+`
		where tenant_id = $1 and bucket >= $2 and bucket < $3
		group by 5, 6`, tenant, from, to)
	if err != nil {
		return s, err
	}
	cells, err := pgx.CollectRows(rows, scanCell)
	for _, c := range cells {
		s.add(c)
	}
	return s, err
}

func capBooks(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, from, to time.Time) ([]CapBook, error) {
	rows, err := tx.Query(ctx, `
		with charged as (
			select c ->> 'ledger' as ledger, (c ->> 'window_start')::timestamptz as window_start, sum((c ->> 'amount')::bigint)::bigint as amount
			from usage_events, json_array_elements(detail -> 'charges') c
			where tenant_id = $1 and day_utc between $2::timestamptz::date - 2 and $3::timestamptz::date + 33
			  and (c ->> 'window_start')::timestamptz >= $2 and (c ->> 'window_start')::timestamptz < $3
			group by 1, 2
		), booked as (
			select ledger, window_start, used from cap_totals where tenant_id = $1 and window_start >= $2 and window_start < $3
		)
		select ledger, window_start, coalesce(amount, 0), coalesce(used, 0)
		from charged full join booked using (ledger, window_start)
		order by coalesce(used, 0) desc, ledger, window_start
		limit 200`, tenant, from, to)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c CapBook, err error) {
		return c, row.Scan(&c.Ledger, &c.Window, &c.Charged, &c.Booked)
	})
}

// DayCheck is what the last comparison of a civil day found.
type DayCheck struct {
	Day         time.Time
	CheckedAt   time.Time
	Differs     int
	Differences []Difference
	Asked       bool      // to be summed again, not done yet
	RebuiltAt   time.Time // when it was last summed again; zero: never
}

// DayChecks are the comparisons of days that begin in [from, to), in order.
// Days that were not compared yet are not there.
func (r *Reports) DayChecks(ctx context.Context, tenant uuid.UUID, from, to time.Time) (days []DayCheck, err error) {
	err = r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select day, checked_at, differences, asked_at is not null, rebuilt_at
			from reconciliations where tenant_id = $1 and day >= $2 and day < $3 order by day`, tenant, from, to)
		if err != nil {
			return err
		}
		days, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DayCheck, err error) {
			var checked, rebuilt *time.Time
			var differ []byte
			if err := row.Scan(&d.Day, &checked, &differ, &d.Asked, &rebuilt); err != nil {
				return d, err
			}
			if checked != nil {
				d.CheckedAt = *checked
			}
			if rebuilt != nil {
				d.RebuiltAt = *rebuilt
			}
			err = decodeOwn(differ, &d.Differences)
			d.Differs = len(d.Differences)
			return d, err
		})
		return err
	})
	return days, err
}

// Audit writes who did what, in the transaction that does it.
type Audit func(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action, object string, difference any) error

// AskRebuild has a worker sum the day that begins at from and ends at to again
// from its events, within seconds. Asking twice is asking once. Conflict
// (day_not_kept) is one whose calls are no longer kept: its sums stay.
func (r *Reports) AskRebuild(ctx context.Context, tenant uuid.UUID, from, to time.Time, audit Audit) error {
	return r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if gone, err := goneBefore(ctx, tx, tenant); err != nil {
			return err
		} else if !kept(from, gone) {
			return fault.New(fault.Conflict, "day_not_kept", "Calls of this day are no longer kept. Its sums stay as they are.")
		}
		if err := audit(ctx, tx, tenant, "books.rebuild", from.UTC().Format(time.RFC3339), map[string]time.Time{"from": from, "to": to}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			insert into reconciliations (tenant_id, day, day_end, asked_at)
			values ($1, $2, $3, now())
			on conflict (tenant_id, day) do update set day_end = excluded.day_end, asked_at = coalesce(reconciliations.asked_at, now())`, tenant, from, to)
		return err
	})
}
