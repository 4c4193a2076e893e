// Command worker stores what happened, usage events from the queue with their
// rollups and cap totals, in Postgres, and tells of it: webhooks, alerts, mail.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata"

	"weir/internal/boot"
	"weir/internal/config"
	"weir/internal/logging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.Load[config.Worker](os.Environ())
	if err != nil {
		return err
	}
	return boot.RunWorker(ctx, cfg, nil, logging.New(os.Stderr, cfg.LogLevel))
}
