package boot

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/limits"
	"weir/internal/usage"
)

// heldFor is how long a start waits for a spool that another process holds: an
// adopter lets go at once.
const heldFor = 15 * time.Second

// openSpool opens the spool of this process, and asks for it where another one
// has adopted it.
func (a *API) openSpool(ctx context.Context) (*usage.Spool, usage.Recovery, error) {
	for until := time.Now().Add(heldFor); ; {
		spool, rec, err := usage.OpenSpool(a.cfg.SpoolDir, a.spoolOptions())
		if !errors.Is(err, usage.ErrHeld) || time.Now().After(until) || ctx.Err() != nil {
			return spool, rec, err
		}
		a.log.Warn("spool is held by another process", "dir", a.cfg.SpoolDir)
		if err := usage.Want(a.cfg.SpoolDir); err != nil {
			return nil, rec, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (a *API) spoolOptions() usage.SpoolOptions {
	host, _ := os.Hostname()
	return usage.SpoolOptions{Host: host, SyncEvery: a.cfg.SpoolSync, Now: a.Now, Log: a.log}
}

// adoptOrphans brings what processes left that do not come back into the books,
// from their spools beside ours, until ctx ends. A process that lives holds its
// spool, one that restarts is back before AdoptAfter has passed.
func (a *API) adoptOrphans(ctx context.Context) error {
	if a.cfg.AdoptAfter <= 0 {
		return nil
	}
	tick := time.NewTicker(a.cfg.AdoptAfter / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		found, err := usage.Orphans(a.cfg.SpoolDir, time.Now().Add(-a.cfg.AdoptAfter))
		if err != nil {
			a.log.Warn("spools beside ours not seen", "error", err)
		}
		for _, o := range found {
			if over, err := a.reports.Over(ctx, o.Instance); err != nil || over {
				continue // an outage ends; what is over needs nobody
			}
			if err := a.adopt(ctx, o.Dir); err != nil {
				a.log.Error("spool not adopted", "dir", o.Dir, "error", err)
			}
		}
	}
}

// adopt lives on as the process whose spool it is: its open calls are ended as
// its own next start would end them, and its events go to the books, until
// nothing is left or that process wants its spool back.
func (a *API) adopt(ctx context.Context, dir string) error {
	spool, rec, err := usage.OpenSpool(dir, a.spoolOptions())
	if err != nil {
		return err
	}
	a.log.Warn("spool adopted", "dir", dir, "instance", spool.Instance(), "open", len(rec.Open), "ended", len(rec.Tail))
	snapshot := []byte(nil)
	if rec.Clean {
		snapshot = rec.Snapshot
	}
	err = a.liveAs(ctx, spool, rec)
	a.log.Info("adopted spool closed", "dir", dir, "instance", spool.Instance(), "over", spool.Over())
	return errors.Join(err, spool.Close(snapshot))
}

func (a *API) liveAs(ctx context.Context, spool *usage.Spool, rec usage.Recovery) error {
	books := usage.NewBooks(a.db, spool.Instance(), rec.Tail)
	var engine usage.Limiter = limits.NewMemory(limits.MemoryOptions{Now: a.Now, Books: books, Started: a.Now()})
	var shared *limits.Redis
	if a.redis != nil {
		r, err := limits.DialRedis(a.cfg.RedisURL, limits.RedisOptions{Books: books, Owner: spool.Instance().String(), Budget: a.cfg.RedisBudget, Processes: a.cfg.Replicas, Log: a.log})
		if err != nil {
			return err
		}
		defer r.Close()
		engine, shared = r, r
	}
	ended, alive, err := usage.CloseOpen(ctx, spool, rec.Open, shared, a.Now())
	if err != nil {
		return err
	}
	books.Left(ended)
	meter := usage.NewMeter(engine, spool, a.reports, a.log, a.Now)
	meter.Recovered(append(rec.Tail, ended...))
	if err := meter.Restore(ctx, alive); err != nil {
		return err
	}
	publisher := usage.NewPublisher(spool, a.queue, a.db, a.eventKeys, usage.PublisherOptions{For: a.spool.Instance(), Log: a.log})
	running, stop := context.WithCancel(ctx)
	defer stop()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return meter.Run(running) })
	group.Go(func() error { return publisher.Run(running) })
	group.Go(func() error {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for !spool.Over() && !spool.Wanted() {
			select {
			case <-running.Done():
				return nil
			case <-tick.C:
			}
		}
		stop()
		return nil
	})
	err = group.Wait()
	meter.Close()
	return err
}
