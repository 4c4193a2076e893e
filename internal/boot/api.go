// Package boot puts processes together: configuration, pools, services,
// surfaces, and the order in which they start and stop. Mains, the development
// command and tests of the whole start the same API and the same worker.
package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"weir/internal/auth"
	"weir/internal/config"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/queue"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// API is one API process. It starts answering /livez at once and everything
// else when its database is there.
type API struct {
	cfg   config.API
	log   *slog.Logger
	ready atomic.Pointer[http.Handler]
	ended atomic.Bool

	db        *postgres.DB
	queue     *queue.Conn
	guard     *outbound.Guard
	spool     *usage.Spool
	engine    engine
	memory    *limits.Memory // the engine, where it is this process's own
	redis     *limits.Redis  // the engine, where it is shared
	peers     atomic.Int32   // other API processes that live
	meter     *usage.Meter
	reports   *usage.Reports
	eventKeys usage.SigningKeys
	estimates *usage.Estimates
	publisher *usage.Publisher
	used      *auth.LastUsed
	tenants   *tenants.Service
	directory *auth.Directory
	changes   *postgres.DB // for the directory alone

	background *errgroup.Group
	halt       context.CancelFunc // cuts the calls that still run
	endPages   func()             // lets go of the pages that listen

	first     *auth.First
	firstLink string // "" once it is known that somebody is here

	// Now is the clock; another than the machine's is set before Run.
	Now func() time.Time
	// Outbox, when set, takes all mail, and the browser shows it: development.
	Outbox *notify.Outbox
	// OnReady, when set, is called once everything is answered.
	OnReady func()
}

// engine is what keeps the limits.
type engine interface {
	usage.Limiter
	Live(ctx context.Context, tenant uuid.UUID, l []limits.Limit, model, endUser string) ([]limits.State, error)
}

// NewAPI checks the configuration; nothing is started yet.
func NewAPI(cfg config.API, log *slog.Logger) *API {
	return &API{cfg: cfg, log: log, Now: time.Now}
}

// Run serves on l until ctx ends, then stops in order: not ready, a pause in
// which the balancer notices, no new connections, running calls finish, and
// what they used is written down. A configuration that cannot work is an error
// at once; a database that is not there is waited for.
func (a *API) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: patiently(a), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	group, ctx := errgroup.WithContext(ctx)
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer func() { a.shutdown(server, stopWork) }()
		handler, err := a.start(ctx)
		if err != nil || handler == nil {
			return err
		}
		a.ready.Store(&handler)
		a.log.Info("ready", "addr", l.Addr().String(), "instance", a.spool.Instance())
		a.greet(ctx)
		if a.OnReady != nil {
			a.OnReady()
		}
		return a.work(ctx, work)
	})
	return group.Wait()
}

// greet prints the way in of an installation that nobody is in yet. The link is
// a secret only until then.
func (a *API) greet(ctx context.Context) {
	open, err := a.first.Open(ctx)
	if err != nil {
		a.log.Warn("first visit not offered", "error", err.Error())
	}
	if !open {
		a.firstLink = ""
		return
	}
	a.log.Info("installation is empty", "first_visit", a.firstLink)
}

// FirstVisit is the link that makes the first tenant, "" where somebody is here
// already. It is known by the time of OnReady.
func (a *API) FirstVisit() string { return a.firstLink }

// Ready tells whether everything is answered.
func (a *API) Ready() bool { return a.ready.Load() != nil && !a.ended.Load() }

// start brings the services up. It returns no handler and no error when ctx
// ends while it waits.
func (a *API) start(ctx context.Context) (http.Handler, error) {
	ring, err := keyring.ParseRing(a.cfg.KeyRing)
	if err != nil {
		return nil, fmt.Errorf("KEY_RING: %w", err)
	}
	keys, err := signingKeys(a.cfg.EventKeys)
	if err != nil {
		return nil, fmt.Errorf("EVENT_KEYS: %w", err)
	}
	a.eventKeys = keys
	app, err := keyring.ParseKeys(a.cfg.AppKeys)
	if err != nil {
		return nil, fmt.Errorf("APP_KEYS: %w", err)
	}
	if a.db, err = postgres.Open(ctx, a.cfg.DatabaseURL, postgres.Options{MaxConns: a.cfg.DatabaseMax}); err != nil {
		return nil, err
	}
	if a.changes, err = postgres.Open(ctx, a.cfg.DatabaseURL, postgres.Options{MaxConns: 1, StatementTimeout: time.Second, Name: "weir changes"}); err != nil {
		return nil, err
	}
	if err := awaitSelfTest(ctx, a.db, a.log); err != nil || ctx.Err() != nil {
		return nil, err
	}
	if a.queue, err = queue.Connect(queue.Options{URL: a.cfg.NATSURL, Name: "weir api", User: a.cfg.NATSUser, Password: a.cfg.NATSPass, CredsFile: a.cfg.NATSCreds}); err != nil {
		return nil, err
	}
	a.guard = outbound.New(outbound.Policy{AllowLoopback: a.cfg.AllowLoopback, Ports: a.cfg.OutboundPorts})
	books, err := a.openBooks(ctx)
	if err != nil {
		return nil, err
	}
	a.publisher = usage.NewPublisher(a.spool, a.queue, a.db, keys, usage.PublisherOptions{Log: a.log, Peers: a.sawPeers})
	return a.surfaces(ring, app, books)
}

// work starts what goes on beside the requests, until stopWork, and waits for
// the end of the process or of one of them.
func (a *API) work(ctx, work context.Context) error {
	var running context.Context
	a.background, running = errgroup.WithContext(work)
	a.background.Go(func() error { return a.meter.Run(running) })
	a.background.Go(func() error { return a.publisher.Run(running) })
	a.background.Go(func() error { return a.adoptOrphans(running) })
	if a.memory != nil {
		a.background.Go(func() error { return a.keepSnapshots(running) })
	}
	a.background.Go(func() error { return a.used.Run(running) })
	a.background.Go(func() error { return a.estimates.Run(running) })
	a.background.Go(func() error { return a.tenants.RunChecks(running, a.log) })
	if a.redis != nil {
		a.background.Go(func() error { return a.redis.Run(running) })
	}
	a.background.Go(func() error { return a.directory.Follow(running, a.changes, a.log) })
	select {
	case <-running.Done(): // none of them ends by itself
		return a.background.Wait()
	case <-ctx.Done():
		return nil
	}
}
