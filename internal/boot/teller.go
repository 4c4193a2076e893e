package boot

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"weir/internal/catalogue"
	"weir/internal/config"
	"weir/internal/keyring"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// tellerConns is how many connections telling may take beside the pipeline's.
const tellerConns = 8

// teller is what a worker tells people and programs with.
type teller struct {
	db      *postgres.DB
	guard   *outbound.Guard
	deliver *notify.Deliverer
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
	service := notify.New(db, tenants.New(db, ring, guard, catalogue.NewClient(guard), time.Now), guard, time.Now)
	mail := mailer(outbox, notify.SMTP{Addr: cfg.SMTPAddr, User: cfg.SMTPUser, Password: cfg.SMTPPassword, From: cfg.MailFrom})
	return &teller{db, guard, notify.NewDeliverer(service, mail, log)}, nil
}

func (t *teller) close() {
	t.guard.Close()
	t.db.Close()
}

func (t *teller) run(ctx context.Context) error { return t.deliver.Run(ctx) }
