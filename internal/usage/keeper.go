package usage

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// DaysKept is how many days of events and of quarters of an hour are kept,
// where nothing else is configured. Days are kept for ever.
const DaysKept = 400

const (
	checkAfter = 3 * time.Hour // a day is compared so long after its end
	longestOne = 26 * time.Hour
	checksBack = 40 * day
	estimates  = 90 // days
	mostShown  = 100
)

// Keeper keeps the books in order: it makes partitions ahead and drops those
// whose time is over, deletes fine rollups that nobody reads any more, sums
// every civil day that has ended again from its events and notes what differs,
// sums days anew where
// somebody asked for it, and takes persons out of the calls of erased customers. Each process may run one.
type Keeper struct {
	db   *postgres.DB // of the worker role
	log  *slog.Logger
	now  func() time.Time
	days int
}

// NewKeeper makes one. days is how long events are kept, at least 30; 0 means
// DaysKept.
func NewKeeper(db *postgres.DB, days int, log *slog.Logger, now func() time.Time) *Keeper {
	if days == 0 {
		days = DaysKept
	}
	return &Keeper{db: db, log: log, now: now, days: max(days, 30)}
}

// Run works until ctx ends. What fails is tried again in its next round.
func (k *Keeper) Run(ctx context.Context) error {
	duties := []struct {
		what  string
		every time.Duration
		do    func(context.Context) error
		due   time.Time
	}{
		{"days asked for", 2 * time.Second, k.RebuildAsked, time.Time{}},
		{"erasure", 5 * time.Second, k.EraseAsked, time.Time{}},
		{"nightly check", 10 * time.Minute, k.CheckDays, time.Time{}},
		{"retention", time.Hour, k.Drop, time.Time{}},
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		for i := range duties {
			d := &duties[i]
			if now := k.now(); !now.Before(d.due) {
				d.due = now.Add(d.every)
				if err := d.do(ctx); err != nil && ctx.Err() == nil {
					k.log.WarnContext(ctx, "books not kept", "what", d.what, "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Drop makes the partitions of the coming days and drops what is past its time.
func (k *Keeper) Drop(ctx context.Context) error {
	now := k.now().UTC()
	oldest := now.Truncate(day).AddDate(0, 0, -k.days)
	for d := range 4 {
		if err := k.exec(ctx, `select usage_ensure_day($1)`, now.Truncate(day).AddDate(0, 0, d)); err != nil {
			return err
		}
	}
	var gone []string
	err := k.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select usage_drop_days($1)`, oldest).Scan(&gone)
	})
	if err != nil {
		return err
	}
	for _, partition := range gone {
		k.log.InfoContext(ctx, "events past their time dropped", "partition", partition)
	}
	for _, old := range []struct {
		sql  string
		args []any
	}{
		{`delete from usage_minute where bucket < $1`, []any{now.Add(-MinutesKept)}},
		{`delete from usage_quarter where bucket < $1`, []any{oldest}},
		{`delete from cap_totals where window_start < $1`, []any{oldest.AddDate(0, -1, 0)}},
		{`delete from usage_estimates where day_utc < $1::date`, []any{now.AddDate(0, 0, -estimates)}},
		{`delete from reconciliations where day < $1 and asked_at is null`, []any{oldest}},
		{`delete from usage_events e using usage_kept_days() t where t.tenant_id = e.tenant_id and e.day_utc < $1::date - t.days`, []any{now}},
	} {
		if err := k.exec(ctx, old.sql, old.args...); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) exec(ctx context.Context, sql string, args ...any) error {
	return k.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

// kept is the first instant of which every event of a tenant is surely there.
func (k *Keeper) kept(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (time.Time, error) {
	days := k.days
	err := tx.QueryRow(ctx, `select least($2, (select days from usage_kept_days() where tenant_id = $1))`, tenant, days).Scan(&days)
	return k.now().UTC().Truncate(day).AddDate(0, 0, 2-days), err
}
