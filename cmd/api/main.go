// Command api serves Weir: dashboard, REST API, decision API and gateway.
//
//	api                serve
//	api migrate        bring the database to this binary's schema
//	api admin …        make a tenant, or a sign-in link
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata"

	"weir/internal/boot"
	"weir/internal/config"
	"weir/internal/logging"
	"weir/internal/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return serve(ctx)
	case args[0] == "migrate" && len(args) == 1:
		return migrate(ctx)
	case args[0] == "admin":
		return admin(ctx, os.Stdout, args[1:])
	}
	return fmt.Errorf("unknown words %q; there are: migrate, admin create-tenant, admin sign-in-link", args)
}

func serve(ctx context.Context) error {
	cfg, err := config.Load[config.API](os.Environ())
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		boot.MakeRoom()
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return err
	}
	return boot.NewAPI(cfg, logging.New(os.Stderr, cfg.LogLevel)).Run(ctx, l)
}

func migrate(ctx context.Context) error {
	cfg, err := config.Load[config.Migrate](os.Environ())
	if err != nil {
		return err
	}
	version, err := postgres.Migrate(ctx, cfg.DatabaseURL)
	if err == nil {
		fmt.Println("schema version", version)
	}
	return err
}
