package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"weir/internal/devstack/demo"
	"weir/internal/devstack/locate"
	"weir/internal/logging"
)

// word runs what the command line says: the stack, or something for one that
// runs.
func word(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return run(ctx)
	case args[0] == "demo-data":
		return demoData(ctx, args[1:])
	}
	return errors.New("say nothing to start Weir, or `demo-data` to fill the one that runs")
}

// demoData fills the running stack, and prints how to sign in to each tenant.
func demoData(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo-data", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "what the history follows from")
	days := flags.Int("days", 31, "how many days ago it begins")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d, err := locate.Describe(cmp.Or(os.Getenv("WEIR_DATA"), ".weir"))
	if err != nil {
		return fmt.Errorf("%w: start one with `make run`", err)
	}
	log := logging.New(os.Stderr, cmp.Or(os.Getenv("LOG_LEVEL"), "warn"))
	made, err := demo.Fill(ctx, demo.Options{AppURL: d.AppURL, WorkerURL: d.WorkerURL, KeyRing: d.KeyRing, Seed: *seed, Days: *days, Now: time.Now(), Log: log})
	for _, r := range made {
		fmt.Printf("%-16s %-18s %7d calls   %s/sign-in/%s\n", r.Tenant, r.Zone, r.Events, d.BaseURL, r.SignInToken)
	}
	return err
}
