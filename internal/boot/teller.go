package boot

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/catalogue"
	"weir/internal/config"
	"weir/internal/exports"
	"weir/internal/keyring"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/portal"
	"weir/internal/postgres"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// tellerConns is how many connections telling may take beside the pipeline's.
const tellerConns = 8

// teller is what a worker does for tenants beside storing what happened: it tells
// people and programs, makes files, opens the periods of subscriptions, and writes
// down which quotes lapsed.
type teller struct {
	db      *postgres.DB
	guard   *outbound.Guard
	deliver *notify.Deliverer
	alerts  *notify.Evaluator
	exports *exports.Maker
	quotes  *quotes.Service
	turner  *billing.Turner
}

// newTeller makes it. Tenants' tables are read as the API's role, tenant by
// tenant: the pipeline's sees none of them.
func newTeller(ctx context.Context, cfg config.Worker, outbox *notify.Outbox, log *slog.Logger) (*teller, error) {
	ring, err := keyring.ParseRing(cfg.KeyRing)
	if err != nil {
		return nil, fmt.Errorf("KEY_RING: %w", err)
	}
	db, err := postgres.Open(ctx, cfg.AppURL, postgres.Options{MaxConns: tellerConns, Name: "weir teller"})
	if err != nil {
		return nil, err
	}
	guard := outbound.New(outbound.Policy{AllowLoopback: cfg.AllowLoopback, Ports: cfg.OutboundPorts})
	tenantService := tenants.New(db, ring, guard, catalogue.NewClient(guard), time.Now)
	service := notify.New(db, tenantService, guard, time.Now)
	mail := mailer(outbox, notify.SMTP{Addr: cfg.SMTPAddr, User: cfg.SMTPUser, Password: cfg.SMTPPassword, From: cfg.MailFrom})
	files := exports.New(db, tenantService, usage.NewReports(db, time.Now), time.Now)
	plans := billing.New(db, time.Now)
	door := portal.New(db, tenantService, service, mail, cfg.PublicURL, log, time.Now)
	offers := quotes.New(db, tenantService, plans, service, door, capacity.New(tenantService, plans, time.Now), strings.TrimRight(cfg.PublicURL, "/"), time.Now)
	return &teller{
		db, guard, notify.NewDeliverer(service, mail, log), notify.NewEvaluator(service, cfg.PublicURL, log), exports.NewMaker(files, log), offers,
		billing.NewTurner(plans, log),
	}, nil
}

func (t *teller) close() {
	t.guard.Close()
	t.db.Close()
}

func (t *teller) run(ctx context.Context, log *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.deliver.Run(ctx) })
	group.Go(func() error { return t.alerts.Run(ctx) })
	group.Go(func() error { return t.exports.Run(ctx) })
	group.Go(func() error { return t.quotes.Run(ctx, log) })
	group.Go(func() error { return t.turner.Run(ctx) })
	return group.Wait()
}
