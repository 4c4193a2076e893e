package notify

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// AlertKind is what an alert watches.
type AlertKind string

// The kinds of alerts.
const (
	AlertUsage    AlertKind = "usage"                // an amount, or a share of limits
	AlertCooling  AlertKind = "provider_key_cooling" // once per cooldown
	AlertFailed   AlertKind = "provider_key_failed"  // once per refusal
	AlertUnpriced AlertKind = "unpriced"             // once a day and model whose cost is not known
)

// MaxAlerts is how many a tenant may have.
const MaxAlerts = 100

// Alert is what somebody is told about, once per period and threshold.
type Alert struct {
	ID        uuid.UUID
	Kind      AlertKind
	Scope     limits.ScopeKind // of usage: whose; "": of a share, every limit of the tenant
	ScopeID   uuid.UUID        // zero: any of that kind
	Dimension limits.Dimension
	Window    limits.Window // day or month
	Percent   int           // of a limit; 0: Amount counts
	Amount    int64         // of money in micro-units
	Emails    []string      // none: owners and admins
	Mail      bool
	Webhook   bool
	CreatedAt time.Time
	LastFired *time.Time
}

// threshold names what was passed: part of what fires once.
func (a Alert) threshold() string {
	switch {
	case a.Kind != AlertUsage:
		return string(a.Kind)
	case a.Percent > 0:
		return strconv.Itoa(a.Percent) + "%"
	}
	return strconv.FormatInt(a.Amount, 10)
}

const maxEmails = 10

func (a Alert) check() error {
	var wrong []fault.Field
	if a.Kind == AlertUsage {
		wrong = a.checkUsage()
	} else if a.Kind != AlertCooling && a.Kind != AlertFailed && a.Kind != AlertUnpriced {
		wrong = append(wrong, fault.Field{Pointer: "/kind", Code: "not_one_of", Message: "Must be one of usage, provider_key_cooling, provider_key_failed, unpriced."})
	} else if a.Scope != "" || a.Dimension != "" || a.Window != "" || a.Percent != 0 || a.Amount != 0 {
		wrong = append(wrong, fault.Field{Pointer: "/kind", Code: "not_for_this_kind", Message: "Alerts of this kind have no threshold, dimension, window or scope."})
	}
	if !a.Mail && !a.Webhook {
		wrong = append(wrong, fault.Field{Pointer: "/channels", Code: "required", Message: "Name at least one channel: email, webhook."})
	}
	if len(a.Emails) > maxEmails {
		wrong = append(wrong, fault.Field{Pointer: "/emails", Code: "too_many", Message: "An alert is mailed to at most 10 addresses."})
	}
	for i, e := range a.Emails {
		wrong = append(wrong, tenants.CheckEmail("/emails/"+strconv.Itoa(i), e)...)
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

func (a Alert) checkUsage() (wrong []fault.Field) {
	switch a.Dimension {
	case limits.DimensionRequests, limits.DimensionTokens, limits.DimensionInputTokens, limits.DimensionOutputTokens, limits.DimensionUnits, limits.DimensionSpend:
	default:
		wrong = append(wrong, fault.Field{Pointer: "/dimension", Code: "not_one_of", Message: "dimension must be one of requests, tokens, input_tokens, output_tokens, units, spend."})
	}
	if a.Window != limits.WindowDay && a.Window != limits.WindowMonth {
		wrong = append(wrong, fault.Field{Pointer: "/window", Code: "not_one_of", Message: "window must be day or month: what the books keep totals of."})
	}
	switch {
	case (a.Percent != 0) == (a.Amount != 0):
		wrong = append(wrong, fault.Field{Pointer: "/threshold", Code: "required", Message: "A threshold is either a percent or an amount."})
	case a.Amount < 0, a.Percent < 0, a.Percent > 1000:
		wrong = append(wrong, fault.Field{Pointer: "/threshold", Code: "out_of_range", Message: "A percent is from 1 to 1,000, an amount more than 0."})
	}
	if a.Amount > 0 && a.Dimension == limits.DimensionSpend && a.Scope == limits.ScopeProviderKey {
		wrong = append(wrong, fault.Field{Pointer: "/dimension", Code: "not_for_this_kind", Message: "What customers are charged is not a provider key's. Watch its tokens or requests."})
	}
	return wrong
}

// AddAlert makes an alert. What has passed its threshold already fires within
// seconds. One too many is a Conflict too_many_alerts.
func (s *Service) AddAlert(ctx context.Context, tenant uuid.UUID, a Alert) (Alert, error) {
	if err := a.check(); err != nil {
		return Alert{}, err
	}
	a.ID, a.CreatedAt, a.Emails = id.New(), s.instant(), append([]string{}, a.Emails...)
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := s.scopeExists(ctx, tx, tenant, &a); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from alerts where tenant_id = $1 and removed_at is null`, tenant).Scan(&n); err != nil {
			return err
		}
		if n >= MaxAlerts {
			return fault.Newf(fault.Conflict, "too_many_alerts", "A tenant may have %d alerts. Remove one first.", MaxAlerts)
		}
		if _, err := tx.Exec(ctx, `
			insert into alerts (tenant_id, alert_id, kind, scope, scope_id, dimension, win, percent, amount, emails, mail, webhook, created_at)
			values ($1, $2, $3, $4, $5, $6, $7, nullif($8, 0), nullif($9, 0), $10, $11, $12, $13)`,
			tenant, a.ID, string(a.Kind), string(a.Scope), optional(a.ScopeID), string(a.Dimension), string(a.Window), a.Percent, a.Amount, a.Emails, a.Mail, a.Webhook, a.CreatedAt); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "alert.created", id.Alert.Format(a.ID), map[string]string{"kind": string(a.Kind), "threshold": a.threshold()})
	})
	return a, err
}

// scopeExists refuses a scope that is not the tenant's. A key is watched by its
// counter, so that rotating it changes nothing.
func (s *Service) scopeExists(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, a *Alert) (err error) {
	if a.ScopeID == uuid.Nil {
		return nil
	}
	switch a.Scope {
	case limits.ScopeCustomer:
		_, err = tenants.ReadCustomer(ctx, tx, tenant, a.ScopeID)
	case limits.ScopeAPIKey:
		var k tenants.APIKey
		k, err = tenants.ReadAPIKey(ctx, tx, tenant, a.ScopeID)
		a.ScopeID = k.Counter
	case limits.ScopeProviderKey:
		var there bool
		err = tx.QueryRow(ctx, `select exists (select from provider_keys where tenant_id = $1 and provider_key_id = $2 and removed_at is null)`, tenant, a.ScopeID).Scan(&there)
		if err == nil && !there {
			err = tenants.NotFound("provider key")
		}
	default:
		err = fault.New(fault.Invalid, "invalid_fields", "An alert watches one customer, API key or provider key.")
	}
	return err
}

const alertColumns = `alert_id, kind, scope, scope_id, dimension, win, coalesce(percent, 0), coalesce(amount, 0), emails, mail, webhook, created_at,
	(select max(f.fired_at) from alert_firings f where f.tenant_id = alerts.tenant_id and f.alert_id = alerts.alert_id)`

func scanAlert(row pgx.CollectableRow) (a Alert, err error) {
	var scope *uuid.UUID
	err = row.Scan(&a.ID, &a.Kind, &a.Scope, &scope, &a.Dimension, &a.Window, &a.Percent, &a.Amount, &a.Emails, &a.Mail, &a.Webhook, &a.CreatedAt, &a.LastFired)
	if scope != nil {
		a.ScopeID = *scope
	}
	return a, err
}

// Alert reads one alert.
func (s *Service) Alert(ctx context.Context, tenant, alert uuid.UUID) (Alert, error) {
	var a Alert
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		a, err = readAlert(ctx, tx, tenant, alert)
		return err
	})
	return a, err
}

func readAlert(ctx context.Context, tx pgx.Tx, tenant, alert uuid.UUID) (Alert, error) {
	rows, err := tx.Query(ctx, `
		select `+alertColumns+` from alerts
		where tenant_id = $1 and alert_id = $2 and removed_at is null`, tenant, alert)
	if err != nil {
		return Alert{}, err
	}
	a, err := pgx.CollectExactlyOneRow(rows, scanAlert)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, tenants.NotFound("alert")
	}
	return a, err
}

// Alerts lists alerts, newest first, after an id.
func (s *Service) Alerts(ctx context.Context, tenant, after uuid.UUID, limit int) (tenants.Page[Alert], error) {
	var list []Alert
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		list, err = readAlerts(ctx, tx, tenant, after, limit+1)
		return err
	})
	return tenants.PageOf(list, limit, func(a Alert) uuid.UUID { return a.ID }), err
}

func readAlerts(ctx context.Context, tx pgx.Tx, tenant, after uuid.UUID, limit int) ([]Alert, error) {
	rows, err := tx.Query(ctx, `
		select `+alertColumns+` from alerts
		where tenant_id = $1 and removed_at is null and alert_id < $2
		order by alert_id desc limit $3`, tenant, tenants.After(after), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAlert)
}

// AlertChange is what changes of an alert; nil leaves it as it is.
type AlertChange struct {
	Percent, Amount *int64 // one takes the other's place
	Emails          *[]string
	Mail, Webhook   *bool
}

// ChangeAlert changes when and whom an alert tells. Another threshold may fire in
// a period in which the old one has; the old one, come back to, does not again.
func (s *Service) ChangeAlert(ctx context.Context, tenant, alert uuid.UUID, c AlertChange) (Alert, error) {
	var a Alert
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if a, err = readAlert(ctx, tx, tenant, alert); err != nil {
			return err
		}
		a = c.applied(a)
		if err := a.check(); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update alerts set percent = nullif($3, 0), amount = nullif($4, 0), emails = $5, mail = $6, webhook = $7
			where tenant_id = $1 and alert_id = $2`, tenant, alert, a.Percent, a.Amount, a.Emails, a.Mail, a.Webhook); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "alert.changed", id.Alert.Format(alert), map[string]string{"kind": string(a.Kind), "threshold": a.threshold()})
	})
	return a, err
}

func (c AlertChange) applied(a Alert) Alert {
	if c.Percent != nil || c.Amount != nil {
		a.Percent, a.Amount = 0, 0
	}
	if c.Percent != nil {
		a.Percent = int(min(max(*c.Percent, -1), 1_000_000))
	}
	if c.Amount != nil {
		a.Amount = *c.Amount
	}
	if c.Emails != nil {
		a.Emails = append([]string{}, *c.Emails...)
	}
	if c.Mail != nil {
		a.Mail = *c.Mail
	}
	if c.Webhook != nil {
		a.Webhook = *c.Webhook
	}
	return a
}

// RemoveAlert ends an alert. What it told stays in the audit.
func (s *Service) RemoveAlert(ctx context.Context, tenant, alert uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		a, err := readAlert(ctx, tx, tenant, alert)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update alerts set removed_at = $3 where tenant_id = $1 and alert_id = $2`, tenant, alert, s.instant()); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "alert.removed", id.Alert.Format(alert), map[string]string{"kind": string(a.Kind), "threshold": a.threshold()})
	})
}
