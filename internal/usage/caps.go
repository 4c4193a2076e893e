package usage

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
	"weir/internal/postgres"
)

// Books tells the limits engine what ended calls have charged to calendar
// windows that began before this process: what Postgres has, and what an earlier
// life of this spool wrote down that Postgres does not have yet. It is safe for
// concurrent use.
type Books struct {
	db       *postgres.DB
	instance uuid.UUID

	mu   sync.Mutex
	tail map[uuid.UUID][]Ended // by tenant: charges that may not be committed
}

// NewBooks makes the books of an instance whose spool was just opened. db is a
// pool of the app role. tail is what Recovery says.
func NewBooks(db *postgres.DB, instance uuid.UUID, tail []Ended) *Books {
	b := &Books{db: db, instance: instance, tail: map[uuid.UUID][]Ended{}}
	b.Left(tail)
	return b
}

// Left adds what was ended since the spool was opened and before the engine was
// asked anything.
func (b *Books) Left(tail []Ended) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range tail {
		if len(e.Charges) > 0 {
			b.tail[e.Tenant] = append(b.tail[e.Tenant], e)
		}
	}
}

// CapTotals is the total of each window, in order; a window that nothing was
// charged to is 0. Totals and committed numbers are read as of one instant, so
// that an event is in the one or in the other. Unavailable if Postgres is out.
func (b *Books) CapTotals(ctx context.Context, tenant uuid.UUID, keys []limits.WindowKey) ([]limits.Total, error) {
	totals, _, err := b.Read(ctx, tenant, keys)
	return totals, err
}

// Read is CapTotals, with what stands for its instant: Postgres's own words for
// the snapshot.
func (b *Books) Read(ctx context.Context, tenant uuid.UUID, keys []limits.WindowKey) (totals []limits.Total, reading string, err error) {
	var done numbers
	err = b.db.Snapshot(ctx, tenant, func(tx pgx.Tx) (err error) {
		if totals, err = capTotals(ctx, tx, tenant, keys); err != nil {
			return err
		}
		if done, err = committedNumbers(ctx, tx, b.instance, ShardOf(tenant)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select pg_current_snapshot()::text`).Scan(&reading)
	})
	if err != nil {
		return nil, "", err
	}
	index := make(map[windowID]int, len(keys))
	for i, k := range keys {
		index[windowOf(k.Ledger, k.WindowStart)] = i
	}
	for _, e := range b.uncommitted(tenant, done) {
		for _, c := range e.Charges {
			if i, ok := index[windowOf(c.Ledger, c.WindowStart)]; ok {
				totals[i].Amount += c.Amount
				totals[i].Pico += c.Pico
			}
		}
	}
	return totals, reading, nil
}

// Held are those of the calls whose terminal events were committed before a
// reading. Unavailable if Postgres is out.
func (b *Books) Held(ctx context.Context, tenant uuid.UUID, reading string, calls []uuid.UUID) (held []uuid.UUID, err error) {
	days := make([]time.Time, len(calls))
	for i, c := range calls {
		days[i] = partition(c)
	}
	err = b.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		// A row tells 32 bits of the transaction that stored it; the rest is that
		// of the snapshot's, which is at most 2^31 away.
		rows, err := tx.Query(ctx, `
			with reading as (select $4::pg_snapshot as r, pg_snapshot_xmax($4::pg_snapshot)::text::bigint as top),
			found as (
				select e.event_id, r.r, r.top + ((e.xmin::text::bigint - r.top) << 32 >> 32) as stored
				from usage_events e cross join reading r
				where e.tenant_id = $1 and e.day_utc = any ($2::date[]) and e.event_id = any ($3)
			)
			select event_id from found where pg_visible_in_snapshot(stored::text::xid8, r)`, tenant, days, calls, reading)
		if err != nil {
			return err
		}
		held, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return held, err
}

// windowID is a window as the books name it.
type windowID struct {
	ledger string
	start  int64
}

func windowOf(ledger string, start time.Time) windowID {
	return windowID{text(ledger, maxLedger), start.Unix()}
}

// uncommitted forgets what is committed, and returns the rest.
func (b *Books) uncommitted(tenant uuid.UUID, done numbers) []Ended {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []Ended
	for _, e := range b.tail[tenant] {
		if !done.has(e.Number) {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		delete(b.tail, tenant)
	} else {
		b.tail[tenant] = left
	}
	return left
}

func capTotals(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, keys []limits.WindowKey) ([]limits.Total, error) {
	ledgers, starts := make([]string, len(keys)), make([]time.Time, len(keys))
	for i, k := range keys {
		ledgers[i], starts[i] = text(k.Ledger, maxLedger), k.WindowStart
	}
	rows, err := tx.Query(ctx, `
		select coalesce(c.used, 0), coalesce(c.used_pico, 0)
		from unnest($2::text[], $3::timestamptz[]) with ordinality as k (ledger, window_start, n)
		left join cap_totals c on c.tenant_id = $1 and c.ledger = k.ledger and c.window_start = k.window_start
		order by k.n`, tenant, ledgers, starts)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[limits.Total])
}

func committedNumbers(ctx context.Context, tx pgx.Tx, instance uuid.UUID, shard int) (numbers, error) {
	rows, err := tx.Query(ctx, `
		select lower(r), upper(r) - 1
		from usage_marks m, unnest(m.committed) r
		where m.instance_id = $1 and m.shard = $2`, instance, shard)
	if err != nil {
		return nil, err
	}
	var done numbers
	var s span
	_, err = pgx.ForEachRow(rows, []any{&s.first, &s.last}, func() error {
		done.add(s.first, s.last)
		return nil
	})
	return done, err
}
