package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
	"weir/internal/money"
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
		if err != nil {
			return err
		}
		for _, a := range list {
			readings, err := b.read(a)
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
	return books{ctx, tx, t, now, since}, list, err
}

// fire tells, unless that was done: the row is the proof, in the transaction
// that tells.
func (e *Evaluator) fire(ctx context.Context, tx pgx.Tx, b books, a Alert, r Reading) error {
	name, err := b.nameOf(a, r)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		insert into alert_firings (tenant_id, alert_id, subject, period_start, threshold, name, value, of_amount, fired_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		on conflict do nothing`, b.tenant.ID, a.ID, r.Subject, r.Period, a.threshold(), name, r.Value, r.Of, b.now)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	r.Name = name
	if a.Webhook {
		if err := message.Emit(ctx, tx, b.tenant.ID, message.AlertFired, toldAlert{
			Alert: id.Alert.Format(a.ID), Kind: a.Kind, Scope: a.Scope, Subject: r.Subject, Name: r.Name, Dimension: a.Dimension, Window: a.Window,
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
		text := fmt.Sprintf("%s.\n\nSince %s. This alert tells once in that period.\n\n%s/alerts\n", words, r.Period.UTC().Format("2 January 2006 15:04 UTC"), e.publicURL)
		if err := e.OweMail(ctx, tx, b.tenant.ID, Mail{To: address, Subject: shorten(words), Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// shorten makes words a subject.
func shorten(words string) string {
	if r := []rune(words); len(r) > 150 {
		return string(r[:150]) + "…"
	}
	return words
}

// toldAlert is the data of alert.fired. Money is in micro-units.
type toldAlert struct {
	Alert       string           `json:"alert"`
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

// Words say what a reading is to its alert: "Kestrel used 4,312 of 5,000 tokens
// of its day".
func Words(a Alert, r Reading, currency string) string {
	switch a.Kind {
	case AlertCooling:
		return "Provider key " + r.Name + " cools"
	case AlertFailed:
		return "Provider key " + r.Name + " was refused by its provider"
	case AlertUnpriced:
		return "The cost of model " + r.Name + " is not known"
	}
	figure := func(n int64) string {
		if a.Dimension == limits.DimensionSpend {
			return money.Times(n, 1_000_000).Decimal() + " " + currency
		}
		return grouped(n)
	}
	what := strings.ReplaceAll(string(a.Dimension), "_", " ")
	if a.Dimension == limits.DimensionSpend {
		what = "spend"
	}
	return fmt.Sprintf("%s: %s of %s, %s of the %s (alert at %s)", r.Name, figure(r.Value), figure(r.Of), what, a.Window, a.thresholdWords(figure))
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (a Alert) thresholdWords(figure func(int64) string) string {
	if a.Percent > 0 {
		return strconv.Itoa(a.Percent) + "%"
	}
	return figure(a.Amount)
}

// Standing is an alert with the reading that is closest to it now; zero where
// nothing was used.
type Standing struct {
	Alert
	Closest Reading
}

// Standings are all alerts, newest first, as they stand now.
func (s *Service) Standings(ctx context.Context, tenant uuid.UUID) (out []Standing, err error) {
	now := s.instant()
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		out = nil
		b, list, err := s.books(ctx, tx, tenant, now, time.Time{})
		if err != nil {
			return err
		}
		for _, a := range list {
			readings, err := b.read(a)
			if err != nil {
				return err
			}
			st := Standing{Alert: a}
			for _, r := range readings {
				if st.Closest.Subject == "" || float64(r.Value)*float64(max(st.Closest.Of, 1)) > float64(st.Closest.Value)*float64(max(r.Of, 1)) {
					st.Closest = r
				}
			}
			if st.Closest.Name, err = b.nameOf(a, st.Closest); err != nil {
				return err
			}
			out = append(out, st)
		}
		return nil
	})
	return out, err
}

// Firing is one time that an alert told.
type Firing struct {
	Alert   Alert
	Reading Reading
	At      time.Time
}

// Firings are the last ones, newest first.
func (s *Service) Firings(ctx context.Context, tenant uuid.UUID, most int) (out []Firing, err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select f.subject, f.name, f.period_start, f.value, f.of_amount, f.fired_at, f.threshold, a.alert_id, a.kind, a.dimension, a.win
			from alert_firings f join alerts a on a.tenant_id = f.tenant_id and a.alert_id = f.alert_id
			where f.tenant_id = $1
			order by f.fired_at desc, f.alert_id, f.subject limit $2`, tenant, most)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Firing, err error) {
			var threshold string
			r := &f.Reading
			err = row.Scan(&r.Subject, &r.Name, &r.Period, &r.Value, &r.Of, &f.At, &threshold, &f.Alert.ID, &f.Alert.Kind, &f.Alert.Dimension, &f.Alert.Window)
			if share, found := strings.CutSuffix(threshold, "%"); found {
				f.Alert.Percent, _ = strconv.Atoi(share)
			} else {
				f.Alert.Amount, _ = strconv.ParseInt(threshold, 10, 64)
			}
			return f, err
		})
		return err
	})
	return out, err
}
