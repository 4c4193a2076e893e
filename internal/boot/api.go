// Package boot puts processes together: configuration, pools, services,
// surfaces, and the order in which they start and stop. Mains, the development
// command and tests of the whole start the same API and the same worker.
package boot

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/config"
	"weir/internal/gateway"
	"weir/internal/httpapi"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/queue"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web"
)

// API is one API process. It starts answering /livez at once and everything
// else when its database is there.
type API struct {
	cfg   config.API
	log   *slog.Logger
	now   func() time.Time
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
	return &API{cfg: cfg, log: log, now: time.Now}
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
	app, err := keyring.ParseKeys(a.cfg.AppKeys)
	if err != nil {
		return nil, fmt.Errorf("APP_KEYS: %w", err)
	}
	if a.db, err = postgres.Open(ctx, a.cfg.DatabaseURL, postgres.Options{MaxConns: a.cfg.DatabaseMax}); err != nil {
		return nil, err
	}
	if a.changes, err = postgres.Open(ctx, a.cfg.DatabaseURL, postgres.Options{MaxConns: 1, StatementTimeout: time.Second}); err != nil {
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

// openBooks opens the spool, ends what an earlier life left open, and starts
// the engine on what the books and the spool say.
func (a *API) openBooks(ctx context.Context) (*usage.Reports, error) {
	host, _ := os.Hostname()
	spool, rec, err := usage.OpenSpool(a.cfg.SpoolDir, usage.SpoolOptions{Host: host, SyncEvery: a.cfg.SpoolSync, Now: a.now, Log: a.log})
	if err != nil {
		return nil, err
	}
	a.spool = spool
	for _, d := range rec.Damage {
		a.log.Error("spool damaged", "file", d.File, "offset", d.Offset, "reason", d.Reason, "kept", d.Kept)
	}
	started := a.now()
	ended, alive, err := usage.CloseOpen(spool, rec.Open, started)
	if err != nil {
		return nil, err
	}
	tail := slices.Concat(rec.Tail, ended)
	books := usage.NewBooks(a.db, spool.Instance(), tail)
	if err := a.openEngine(books, rec, started); err != nil {
		return nil, err
	}
	reports := usage.NewReports(a.db, a.now)
	a.meter = usage.NewMeter(a.engine, spool, reports, a.log, a.now)
	a.meter.Recovered(tail)
	if len(ended)+len(alive) > 0 {
		a.log.Info("earlier life closed", "expired", len(ended), "open", len(alive), "clean", rec.Clean)
	}
	return reports, a.meter.Restore(ctx, alive)
}

// openEngine starts the limits engine: on Redis where one is configured.
func (a *API) openEngine(books *usage.Books, rec usage.Recovery, started time.Time) (err error) {
	if a.cfg.RedisURL == "" {
		a.memory = limits.NewMemory(limits.MemoryOptions{
			Now: a.now, Books: books, Started: started, Unclean: !rec.Fresh && len(rec.Snapshot) == 0, LastAlive: rec.LastAlive, Snapshot: rec.Snapshot, Journal: rec.Journal,
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

func (a *API) surfaces(ring *keyring.Ring, app []keyring.NamedKey, reports *usage.Reports) (http.Handler, error) {
	var secrets []auth.Secret
	for _, k := range app {
		secrets = append(secrets, auth.Secret{ID: k.Name, Bytes: k.Bytes})
	}
	tokens, err := auth.NewTokenKeys(secrets, a.cfg.PublicURL, a.now)
	if err != nil {
		return nil, err
	}
	cursorKey, err := hkdf.Key(sha256.New, app[0].Bytes, nil, "weir cursors v1", sha256.Size)
	if err != nil {
		return nil, err
	}
	client := catalogue.NewClient(a.guard)
	tenantService := tenants.New(a.db, ring, a.guard, client, a.now)
	a.tenants = tenantService
	billingService := billing.New(a.db, a.now)
	a.directory = auth.NewDirectory(a.db, tenantService, billingService, tokens, a.now)
	a.used = auth.NewLastUsed(tenantService, a.log, a.now)
	rest, err := httpapi.New(httpapi.Deps{
		Log: a.log, Directory: a.directory, Used: a.used, Tenants: tenantService, Billing: billingService, Meter: a.meter,
		Limits: a.engine, Reports: reports, CursorKey: cursorKey, Tokens: tokens, Now: a.now,
	})
	if err != nil {
		return nil, err
	}
	sessions := auth.NewSessions(a.db, a.now)
	accounts := auth.NewAccounts(a.db, tenantService, sessions, a.mailer(), a.cfg.PublicURL, a.log, a.now)
	first, token := auth.NewFirst(accounts)
	a.first, a.firstLink = first, strings.TrimRight(a.cfg.PublicURL, "/")+"/first/"+token
	e := newEcho(a.cfg.Proxies, a.log)
	pages, err := web.New(web.Deps{
		Log: a.log, Sessions: sessions, Outbox: a.Outbox, SignUp: a.cfg.SignUp == "open", First: first, Gateway: e,
		Accounts: accounts, Tenants: tenantService, Billing: billingService, Limits: a.engine, Reports: reports, PublicURL: a.cfg.PublicURL, OpenAPI: rest.OpenAPI(), Now: a.now,
	})
	if err != nil {
		return nil, err
	}
	rest.Mount(e)
	halted, halt := context.WithCancel(context.Background())
	a.halt = halt
	gateway.New(gateway.Deps{
		Halt: halted, Log: a.log, Directory: a.directory, Tenants: tenantService, Used: a.used, Client: client, Meter: a.meter, Spool: a.spool, Limits: a.engine,
		Timeouts: gateway.DefaultTimeouts, Now: a.now,
	}).Mount(e)
	pages.Mount(e)
	a.endPages = pages.End
	return e, nil
}

// work starts what goes on beside the requests, until stopWork, and waits for
// the end of the process or of one of them.
func (a *API) work(ctx, work context.Context) error {
	var running context.Context
	a.background, running = errgroup.WithContext(work)
	a.background.Go(func() error { return a.meter.Run(running) })
	a.background.Go(func() error { return a.publisher.Run(running) })
	if a.memory != nil {
		a.background.Go(func() error { return a.keepSnapshots(running) })
	}
	a.background.Go(func() error { return a.used.Run(running) })
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

// mailer sends by SMTP where it is configured; in development it keeps mail to
// be looked at. nil: no mail.
func (a *API) mailer() notify.Mailer {
	switch {
	case a.Outbox != nil:
		return a.Outbox
	case a.cfg.SMTPAddr != "":
		return notify.SMTP{Addr: a.cfg.SMTPAddr, User: a.cfg.SMTPUser, Password: a.cfg.SMTPPassword, From: a.cfg.MailFrom}
	}
	return nil
}

func jitter(d time.Duration) time.Duration {
	var b [1]byte
	_, _ = rand.Read(b[:])
	return d * time.Duration(b[0]) / 255
}

func signingKeys(s string) (usage.SigningKeys, error) {
	names, err := keyring.ParseKeys(s)
	if err != nil {
		return usage.SigningKeys{}, err
	}
	keys := usage.SigningKeys{Current: names[0].Name, Keys: map[string][]byte{}}
	for _, k := range names {
		keys.Keys[k.Name] = k.Bytes
	}
	return keys, nil
}
