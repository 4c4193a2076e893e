package boot

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/auth"
	"weir/internal/config"
	"weir/internal/notify"
	"weir/internal/postgres"
	"weir/internal/queue"
	"weir/internal/usage"
)

// RunWorker stores what the queue brings and tells what happened until ctx ends.
// Mail goes to outbox where there is one. A configuration that cannot work is an
// error at once; a database or queue that is not there is waited for.
func RunWorker(ctx context.Context, cfg config.Worker, outbox *notify.Outbox, log *slog.Logger) error {
	keys, err := signingKeys(cfg.EventKeys)
	if err != nil {
		return fmt.Errorf("EVENT_KEYS: %w", err)
	}
	db, err := postgres.Open(ctx, cfg.DatabaseURL, postgres.Options{MaxConns: cfg.DatabaseMax, StatementTimeout: 30 * time.Second, LockTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := awaitSelfTest(ctx, db, log); err != nil || ctx.Err() != nil {
		return err
	}
	teller, err := newTeller(ctx, cfg, outbox, log)
	if err != nil {
		return err
	}
	defer teller.close()
	q, err := queue.Connect(queue.Options{URL: cfg.NATSURL, Name: "weir worker", User: cfg.NATSUser, Password: cfg.NATSPass, CredsFile: cfg.NATSCreds})
	if err != nil {
		return err
	}
	defer q.Close()
	log.Info("working", "workers", cfg.Workers)
	group, ctx := errgroup.WithContext(ctx)
	for range cfg.Workers {
		group.Go(func() error { return usage.NewWorker(db, q, keys, usage.WorkerOptions{Log: log}).Run(ctx) })
	}
	group.Go(func() error { return usage.NewWorker(db, q, keys, usage.WorkerOptions{Log: log}).Replays(ctx) })
	group.Go(func() error { return usage.NewKeeper(db, cfg.UsageDays, log, time.Now).Run(ctx) })
	group.Go(func() error { return auth.NewPruner(db, time.Now).Run(ctx, log) })
	group.Go(func() error { return teller.run(ctx, log) })
	return group.Wait()
}

// awaitSelfTest waits for a database that answers; one whose isolation does not
// hold is an error.
func awaitSelfTest(ctx context.Context, db *postgres.DB, log *slog.Logger) error {
	for pause := 50 * time.Millisecond; ; pause = min(pause*2, 5*time.Second) {
		err := db.Ping(ctx)
		if err == nil {
			return db.SelfTest(ctx)
		}
		log.Warn("waiting for the database", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause/2 + jitter(pause/2)):
		}
	}
}

func jitter(d time.Duration) time.Duration {
	var b [1]byte
	_, _ = rand.Read(b[:])
	return d * time.Duration(b[0]) / 255
}
