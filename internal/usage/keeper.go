package usage

import (
	"context"
	"errors"
	"log/slog"
	"time"

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

// Drop makes the partitions of the coming days and drops what is past its time,
// by the earlier of two clocks: ours, and that of the database.
func (k *Keeper) Drop(ctx context.Context) error {
	now, err := k.earlier(ctx)
	if err != nil {
		return err
	}
	for d := range 4 {
		if err := k.exec(ctx, `select usage_ensure_day($1)`, now.Truncate(day).AddDate(0, 0, d)); err != nil {
			return err
		}
	}
	oldest, err := k.moveGone(ctx, now)
	if err != nil {
		return err
	}
	err = k.dropGone(ctx, oldest)
	for _, old := range []struct {
		table, where string
		before       time.Time
	}{
		{"usage_minute", "bucket < $1", now.Add(-MinutesKept)},
		{"usage_quarter", "bucket < $1", oldest},
		{"cap_totals", "window_start < $1", oldest.AddDate(0, -1, 0)},
		{"usage_estimates", "day_utc < $1::date", now.AddDate(0, 0, -estimates)},
		{"reconciliations", "day < $1 and asked_at is null", oldest},
	} {
		err = errors.Join(err, k.clear(ctx, old.table, old.where, old.before))
	}
	return err
}

// earlier is now by the clock that is behind: one that jumped ahead drops nothing.
func (k *Keeper) earlier(ctx context.Context) (now time.Time, err error) {
	err = k.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select least($1::timestamptz, now())`, k.now()).Scan(&now)
	})
	return now.UTC(), err
}

func (k *Keeper) exec(ctx context.Context, sql string, args ...any) error {
	return k.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}
