// Command dev is Weir in one command, for development and for trying it out:
// Postgres, NATS, API and worker, with all data in one folder.
//
// It reads PORT (default 8080; 0 is any free one), WEIR_DATA (default ./.weir),
// PG_BIN, DATABASE_URL (a Postgres to use instead of one of its own) and
// LOG_LEVEL. It allows upstreams on this machine, which production does not.
//
// `dev demo-data` fills the stack that runs in WEIR_DATA with three tenants.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	_ "time/tzdata"

	"weir/internal/boot"
	"weir/internal/config"
	"weir/internal/devstack"
	"weir/internal/devstack/locate"
	"weir/internal/logging"
	"weir/internal/notify"
	"weir/internal/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := word(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := filepath.Abs(cmp.Or(os.Getenv("WEIR_DATA"), ".weir"))
	if err != nil {
		return err
	}
	log := logging.New(os.Stderr, cmp.Or(os.Getenv("LOG_LEVEL"), "info"))
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8080"))
	if err != nil {
		return fmt.Errorf("%w; set PORT to another one", err)
	}
	defer l.Close()
	stack, err := devstack.Start(ctx, devstack.Options{
		Dir: dir, PGBin: os.Getenv("PG_BIN"), DatabaseURL: os.Getenv("DATABASE_URL"),
		Migrate: func(ctx context.Context, ownerURL string) error {
			_, err := postgres.Migrate(ctx, ownerURL)
			return err
		},
	})
	if err != nil {
		return err
	}
	err = serve(ctx, dir, stack, l, log)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(err, stack.Stop(last))
}

// serve runs API and worker on the stack until ctx ends. The worker stops last,
// so that what the API hands over at its end is stored.
func serve(ctx context.Context, dir string, stack *devstack.Stack, l net.Listener, log *slog.Logger) error {
	secrets, err := loadSecrets(dir)
	if err != nil {
		return err
	}
	base := "http://" + l.Addr().String()
	common := config.Common{NATSURL: stack.NATSURL, EventKeys: secrets.EventKeys, DatabaseMax: 20}
	working, stopWorker := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorker()
	worker, outbox := make(chan error, 1), &notify.Outbox{}
	go func() {
		worker <- boot.RunWorker(working, config.Worker{
			Common: common, DatabaseURL: stack.WorkerURL, Workers: 2, AppURL: stack.AppURL, PublicURL: base, KeyRing: secrets.KeyRing, AllowLoopback: true,
		}, outbox, log)
	}()
	api := boot.NewAPI(config.API{
		Common: common, DatabaseURL: stack.AppURL, PublicURL: base, KeyRing: secrets.KeyRing, AppKeys: secrets.AppKeys,
		SpoolDir: filepath.Join(dir, "spool"), SpoolSync: 100 * time.Millisecond, AllowLoopback: true, SignUp: "open", DrainFor: 10 * time.Second,
	}, log)
	api.Outbox = outbox
	api.OnReady = func() { announce(dir, stack, secrets, base, api.FirstVisit(), log) }
	running, stopAPI := context.WithCancel(ctx)
	defer stopAPI()
	go func() {
		select {
		case <-stack.DatabaseGone():
			stopAPI()
		case <-running.Done():
		}
	}()
	err = api.Run(running, l)
	stopWorker()
	return errors.Join(err, <-worker, lost(stack, dir))
}

// lost is an error if the database has ended by itself.
func lost(stack *devstack.Stack, dir string) error {
	select {
	case <-stack.DatabaseGone():
		return fmt.Errorf("postgres has ended by itself: see %s", filepath.Join(dir, "postgres", "server", "log"))
	default:
		return nil
	}
}

// announce tells people and `api admin` where everything is.
func announce(dir string, stack *devstack.Stack, s secrets, base, firstVisit string, log *slog.Logger) {
	d := stack.Description
	d.BaseURL, d.KeyRing = base, s.KeyRing
	if err := locate.Publish(dir, d); err != nil {
		log.Error("stack not described", "error", err)
	}
	fmt.Println("ready", base)
	if firstVisit != "" {
		fmt.Println("nobody is here yet; begin at", firstVisit)
	}
}
