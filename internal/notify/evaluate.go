package notify

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
	"weir/internal/tenants"
)

const (
	alertsEvery = 3 * time.Second
	lately      = 15 * time.Minute // whose calls began so long ago is looked at each time
	sweepEvery  = 2 * time.Minute  // and everybody of the period every so often: long calls, limits that changed
)

// Evaluator fires alerts from what the books say. Any number may run, in any
// number of processes and lives: what fires is a row that can be inserted once.
// It is for one goroutine.
type Evaluator struct {
	*Service
	publicURL string
	log       *slog.Logger
	swept     time.Time
}

// NewEvaluator makes one. Links in mails begin with publicURL.
func NewEvaluator(s *Service, publicURL string, log *slog.Logger) *Evaluator {
	return &Evaluator{Service: s, publicURL: strings.TrimRight(publicURL, "/"), log: log}
}

// Run evaluates every few seconds until ctx ends.
func (e *Evaluator) Run(ctx context.Context) error {
	tick := time.NewTicker(alertsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := e.Evaluate(ctx); err != nil && ctx.Err() == nil {
			e.log.Warn("alerts not evaluated", "error", err.Error())
		}
	}
}

// Evaluate fires every alert whose threshold is passed and that did not fire in
// its period yet. One tenant's failure is no other's.
func (e *Evaluator) Evaluate(ctx context.Context) error {
	now := e.instant()
	since := now.Add(-lately)
	if now.Sub(e.swept) >= sweepEvery {
		since = time.Time{}
	}
	list, err := lookup(ctx, e.db, `select tenant_id from lookup_alerting()`, pgx.RowTo[uuid.UUID])
	for _, tenant := range list {
		err = errors.Join(err, e.evaluateTenant(ctx, tenant, now, since))
	}
	if err == nil && since.IsZero() {
		e.swept = now
	}
	return err
}

func (e *Evaluator) evaluateTenant(ctx context.Context, tenant uuid.UUID, now, since time.Time) error {
	return e.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		b, list, err := e.books(ctx, tx, tenant, now, since)
		if err == nil && since.IsZero() {
			err = b.asOf()
		}
		if err != nil {
			return err
		}
		for _, a := range list {
			if a.PausedAt != nil {
				continue
			}
			readings, err := b.read(a)
			if err == nil {
				err = over(ctx, tx, tenant, a, readings)
			}
			if err != nil {
				return err
			}
			for _, r := range readings {
				if !r.passed(a) {
					continue
				}
				if err := e.fire(ctx, tx, b, a, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *Service) books(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, now, since time.Time) (books, []Alert, error) {
	t, err := tenants.ReadTenant(ctx, tx, tenant, now)
	if err != nil {
		return books{}, nil, err
	}
	list, err := readAlerts(ctx, tx, tenant, uuid.Nil, MaxAlerts)
	return books{ctx: ctx, tx: tx, tenant: t, now: now, since: since}, list, err
}

// fire tells, unless that was done: the row is the proof, in the transaction
// that tells.
func (e *Evaluator) fire(ctx context.Context, tx pgx.Tx, b books, a Alert, r Reading) error {
	name, err := b.nameOf(a, r)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		insert into alert_firings (tenant_id, alert_id, subject, period_start, threshold, name, value, of_amount, fired_at, stands)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		on conflict do nothing`, b.tenant.ID, a.ID, r.Subject, r.Period, a.threshold(), name, r.Value, r.Of, b.now, a.Kind == AlertBehind)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	r.Name = name
	if a.Webhook {
		if err := message.Emit(ctx, tx, b.tenant.ID, message.AlertFired, toldAlert{
			Alert: id.Alert.Format(a.ID), AlertName: a.Name, Kind: a.Kind, Scope: a.Scope, Subject: r.Subject, Name: r.Name, Dimension: a.Dimension, Window: a.Window,
			Threshold: a.threshold(), Value: r.Value, Of: r.Of, PeriodStart: r.Period,
		}); err != nil {
			return err
		}
	}
	if !a.Mail {
		return nil
	}
	to := a.Emails
	if len(to) == 0 {
		if to, err = managers(ctx, tx, b.tenant.ID); err != nil {
			return err
		}
	}
	for _, address := range to {
		words := Words(a, r, b.tenant.Currency)
		if err := e.OweMail(ctx, tx, b.tenant.ID, Mail{To: address, Subject: shorten(words), Text: mailText(a, r, words, e.publicURL)}); err != nil {
			return err
		}
	}
	return nil
}

// toldAlert is the data of alert.fired. Money is in micro-units, and how far the
// books are behind in minutes.
type toldAlert struct {
	Alert       string           `json:"alert"`
	AlertName   string           `json:"alert_name,omitempty"`
	Kind        AlertKind        `json:"kind"`
	Scope       limits.ScopeKind `json:"scope,omitempty"`
	Subject     string           `json:"subject"`
	Name        string           `json:"name"`
	Dimension   limits.Dimension `json:"dimension,omitempty"`
	Window      limits.Window    `json:"window,omitempty"`
	Threshold   string           `json:"threshold"`
	Value       int64            `json:"value"`
	Of          int64            `json:"of"`
	PeriodStart time.Time        `json:"period_start"`
}

// nameOf is what people call the subject of a sum.
func (b books) nameOf(a Alert, r Reading) (string, error) {
	_, of, found := strings.Cut(r.Subject, ":")
	scope, err := uuid.Parse(of)
	if a.Kind != AlertUsage || a.Percent > 0 || !found || err != nil {
		return r.Name, nil //nolint:nilerr // it has its name already
	}
	var name string
	err = b.tx.QueryRow(b.ctx, `
		select coalesce(
		    (select name from customers where tenant_id = $1 and customer_id = $2),
		    (select name from api_keys where tenant_id = $1 and counter_id = $2 order by api_key_id desc limit 1),
		    (select name from provider_keys where tenant_id = $1 and provider_key_id = $2), $3)`, b.tenant.ID, scope, b.tenant.Name).Scan(&name)
	return name, err
}
