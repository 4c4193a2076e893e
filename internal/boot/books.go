package boot

import (
	"context"
	"slices"
	"time"

	"weir/internal/limits"
	"weir/internal/usage"
)

// openBooks opens the spool, starts the engine on what the books and the spool say,
// and ends what an earlier life left open.
func (a *API) openBooks(ctx context.Context) (*usage.Reports, error) {
	spool, rec, err := a.openSpool(ctx)
	if err != nil {
		return nil, err
	}
	a.spool = spool
	for _, d := range rec.Damage {
		a.log.Error("spool damaged", "file", d.File, "offset", d.Offset, "reason", d.Reason, "kept", d.Kept)
	}
	started := a.Now()
	books := usage.NewBooks(a.db, spool.Instance(), rec.Tail)
	if err := a.openEngine(books, rec, started); err != nil {
		return nil, err
	}
	ended, alive, err := usage.CloseOpen(ctx, spool, rec.Open, a.redis, started)
	if err != nil {
		return nil, err
	}
	books.Left(ended)
	a.reports = usage.NewReports(a.db, a.Now)
	a.meter = usage.NewMeter(a.engine, spool, a.reports, a.log, a.Now)
	a.meter.Recovered(slices.Concat(rec.Tail, ended))
	if len(ended)+len(alive) > 0 {
		a.log.Info("earlier life closed", "expired", len(ended), "open", len(alive), "clean", rec.Clean)
	}
	return a.reports, a.meter.Restore(ctx, alive)
}

// openEngine starts the limits engine: on Redis where one is configured.
func (a *API) openEngine(books *usage.Books, rec usage.Recovery, started time.Time) (err error) {
	if a.cfg.RedisURL == "" {
		a.memory = limits.NewMemory(limits.MemoryOptions{
			Now: a.Now, Books: books, Started: started, Unclean: !rec.Fresh && len(rec.Snapshot) == 0, LastAlive: rec.LastAlive, Snapshot: rec.Snapshot, Journal: rec.Journal,
		})
		a.engine = a.memory
		return nil
	}
	a.redis, err = limits.DialRedis(a.cfg.RedisURL, limits.RedisOptions{
		Books: books, Owner: a.spool.Instance().String(), Budget: a.cfg.RedisBudget, Processes: a.cfg.Replicas, Log: a.log,
	})
	a.engine = a.redis
	return err
}

// sawPeers notes how many other API processes live. Limits that are kept in each
// process are all as many times as large: a mistake.
func (a *API) sawPeers(n int) {
	a.peers.Store(int32(n))
	if a.redis != nil {
		a.redis.Alive(n + 1)
	} else if n > 0 {
		a.log.Error("several API processes without REDIS_URL: each grants every limit in full", "others", n)
	}
}

// keepEvery is how often the engine's state is written down. After a kill, what
// happened since is read from the spool.
const keepEvery = 30 * time.Second

// keepSnapshots writes the engine's state down, at once and then every so often.
func (a *API) keepSnapshots(ctx context.Context) error {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		from := a.spool.Place()
		snapshot, err := a.memory.Snapshot()
		if err == nil {
			err = a.spool.Keep(from, snapshot)
		}
		if err != nil {
			a.log.Error("limits not written down", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
