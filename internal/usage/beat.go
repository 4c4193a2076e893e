package usage

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// beats tells the books every few seconds that the instance lives, the numbers
// it has given, and since when a call has been open; and it sweeps the spool. The
// last beat says that the instance stopped, if the books have all of it.
func (p *Publisher) beats(ctx context.Context) {
	tick := time.NewTicker(p.o.BeatEvery)
	defer tick.Stop()
	register := trouble{log: p.o.Log, what: "instance not registered"}
	alive := 0
	sweep := trouble{log: p.o.Log, what: "spool not swept"}
	for {
		register.say(ctx, p.beat(ctx, false))
		alive = p.peers(ctx, alive)
		sweep.say(ctx, p.spool.sweep())
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = p.beat(ctx, p.spool.progress().drained()) // the next start makes it good
			return
		case <-tick.C:
		}
	}
}

// peers tells how many other instances have said so lately that they live, where
// that has changed. While Postgres is out, nothing has.
func (p *Publisher) peers(ctx context.Context, before int) int {
	if p.o.Peers == nil {
		return before
	}
	n := before
	err := p.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			select count(*) from instances
			where instance_id <> $1 and stopped_at is null and seen_at > now() - make_interval(secs => $2)`,
			p.spool.instance, (3 * p.o.BeatEvery).Seconds()).Scan(&n)
	})
	if err != nil || n == before {
		return before
	}
	p.o.Peers(n)
	return n
}

func (p *Publisher) beat(ctx context.Context, stopped bool) error {
	given := p.spool.progress().given
	return p.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into instances (instance_id, host, started_at, seen_at, numbers, oldest_open, fresh_at, stopped_at, adopted_by, adopted_at)
			values ($1, $2, $3, now(), $4, $5, $6, case when $7 then now() end, $8, case when $8::uuid is not null then now() end)
			on conflict (instance_id) do update
			set host = excluded.host, started_at = excluded.started_at, seen_at = excluded.seen_at, numbers = excluded.numbers,
			    oldest_open = excluded.oldest_open, fresh_at = coalesce(excluded.fresh_at, instances.fresh_at), stopped_at = excluded.stopped_at,
			    adopted_by = excluded.adopted_by, adopted_at = case when instances.adopted_by = excluded.adopted_by then instances.adopted_at else excluded.adopted_at end,
			    retired_at = null`, // what lives is waited for, whatever was said of it
			p.spool.instance, p.spool.o.Host, p.spool.started, given[:], orNull(p.spool.oldestOpen()), orNull(p.fresh.until()), stopped, adopter(p.o.For))
		return err
	})
}

func adopter(u uuid.UUID) *uuid.UUID {
	if u == uuid.Nil {
		return nil
	}
	return &u
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// freshness knows up to when the books are complete for this instance: every
// call that ended before is committed.
type freshness struct {
	mu     sync.Mutex
	fresh  time.Time
	points []point
}

// point says that at this instant these were the last numbers given.
type point struct {
	at    time.Time
	given [Shards]int64
}

const maxPoints = 128

// observe looks at the spool once. Between two looks it keeps a point, so that
// freshness moves on under steady traffic; a long outage thins the points out.
func (f *freshness) observe(now time.Time, p progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points = append(f.points, point{now, p.given})
	for len(f.points) > 0 && (progress{given: f.points[0].given, missing: p.missing}).drained() {
		f.fresh, f.points = f.points[0].at, f.points[1:]
	}
	if len(f.points) > maxPoints {
		kept := f.points[:0]
		for i, pt := range f.points {
			if i%2 == 0 {
				kept = append(kept, pt)
			}
		}
		f.points = kept
	}
}

// until is zero while it is not known.
func (f *freshness) until() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fresh
}
