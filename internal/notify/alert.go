package notify

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
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
	AlertBehind   AlertKind = "pipeline_behind"      // once until the books have caught up
	AlertDiffer   AlertKind = "books_differ"         // once a day whose books differ, until they agree
	AlertLetters  AlertKind = "dead_letters"         // of the operator: once an hour in which some came
)

// BehindMinutes is how far behind the books are where an alert does not say.
const BehindMinutes = 10

// MaxAlerts is how many a tenant may have.
const MaxAlerts = 100

// Alert is what somebody is told about, once per period and threshold.
type Alert struct {
	ID        uuid.UUID
	Name      string // "": what it watches, in the words of whoever shows it
	Kind      AlertKind
	Scope     limits.ScopeKind // of usage: whose; "": of a share, every limit of the tenant
	ScopeID   uuid.UUID        // zero: any of that kind
	Dimension limits.Dimension
	Window    limits.Window // day or month
	Percent   int           // of a limit; 0: Amount counts
	Amount    int64         // of money in micro-units
	Minutes   int           // of AlertBehind
	Emails    []string      // none: owners and admins
	Mail      bool
	Webhook   bool
	CreatedAt time.Time
	PausedAt  *time.Time // it tells nothing meanwhile
	SetAt     time.Time  // when its threshold became what it is
	LastFired *time.Time
}

// threshold names what was passed: part of what fires once.
func (a Alert) threshold() string {
	switch {
	case a.Kind == AlertBehind:
		return strconv.Itoa(a.Minutes) + minutesMark
	case a.Kind != AlertUsage:
		return string(a.Kind)
	case a.Percent > 0:
		return strconv.Itoa(a.Percent) + "%"
	}
	return strconv.FormatInt(a.Amount, 10)
}

// minutesMark ends a threshold of minutes.
const minutesMark = " min"

const (
	maxEmails  = 10
	maxMinutes = 24 * 60
)

// kinds are those that an alert may be of.
var kinds = []AlertKind{AlertUsage, AlertCooling, AlertFailed, AlertUnpriced, AlertBehind, AlertDiffer, AlertLetters}

func (a Alert) check() error {
	wrong := a.checkKind()
	if a.Name != "" {
		wrong = append(wrong, tenants.CheckName("/name", a.Name)...)
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

// checkKind holds an alert to what its kind has.
func (a Alert) checkKind() (wrong []fault.Field) {
	switch {
	case !slices.Contains(kinds, a.Kind):
		return []fault.Field{{Pointer: "/kind", Code: "not_one_of", Message: "Must be one of usage, provider_key_cooling, provider_key_failed, unpriced, pipeline_behind, books_differ, dead_letters."}}
	case a.Kind != AlertUsage && (a.Scope != "" || a.Dimension != "" || a.Window != "" || a.Percent != 0 || a.Amount != 0):
		return []fault.Field{{Pointer: "/kind", Code: "not_for_this_kind", Message: "Alerts of this kind have no percent, amount, dimension, window or scope."}}
	case a.Kind == AlertUsage:
		wrong = a.checkUsage()
	}
	switch {
	case a.Kind == AlertBehind && (a.Minutes < 1 || a.Minutes > maxMinutes):
		wrong = append(wrong, fault.Field{Pointer: "/threshold", Code: "out_of_range", Message: "The books are behind by 1 to 1,440 minutes."})
	case a.Kind != AlertBehind && a.Minutes != 0:
		wrong = append(wrong, fault.Field{Pointer: "/threshold", Code: "not_for_this_kind", Message: "Minutes are of alerts of the kind pipeline_behind."})
	}
	return wrong
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
	a.Name = strings.TrimSpace(a.Name)
	if a.Kind == AlertBehind && a.Minutes == 0 {
		a.Minutes = BehindMinutes
	}
	if err := a.check(); err != nil {
		return Alert{}, err
	}
	a.ID, a.CreatedAt, a.Emails = id.New(), s.instant(), append([]string{}, a.Emails...)
	a.SetAt = a.CreatedAt
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if a.Kind == AlertLetters {
			if t, err := tenants.ReadTenant(ctx, tx, tenant, s.now()); err != nil {
				return err
			} else if !t.Operator {
				return fault.InvalidFields(fault.Field{Pointer: "/kind", Code: "not_for_this_tenant", Message: "Dead letters are the operator's; no other tenant sees them."})
			}
		}
		if err := s.scopeExists(ctx, tx, tenant, &a); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1::text, 25))`, tenant); err != nil {
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
			insert into alerts (tenant_id, alert_id, kind, scope, scope_id, dimension, win, percent, amount, emails, mail, webhook, created_at, name, minutes, paused_at)
			values ($1, $2, $3, $4, $5, $6, $7, nullif($8, 0), nullif($9, 0), $10, $11, $12, $13, $14, nullif($15, 0), $16)`,
			tenant, a.ID, string(a.Kind), string(a.Scope), optional(a.ScopeID), string(a.Dimension), string(a.Window), a.Percent, a.Amount, a.Emails, a.Mail, a.Webhook, a.CreatedAt,
			a.Name, a.Minutes, a.PausedAt); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "alert.created", id.Alert.Format(a.ID), a.noted())
	})
	return a, err
}

// noted is what the audit says of an alert.
func (a Alert) noted() map[string]string {
	out := map[string]string{"kind": string(a.Kind), "threshold": a.threshold()}
	if a.Name != "" {
		out["name"] = a.Name
	}
	if a.PausedAt != nil {
		out["paused"] = "yes"
	}
	return out
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

const alertColumns = `alert_id, kind, scope, scope_id, dimension, win, coalesce(percent, 0), coalesce(amount, 0), emails, mail, webhook, created_at, coalesce(set_at, created_at),
	name, coalesce(minutes, 0), paused_at,
	(select max(f.fired_at) from alert_firings f where f.tenant_id = alerts.tenant_id and f.alert_id = alerts.alert_id)`

func scanAlert(row pgx.CollectableRow) (a Alert, err error) {
	var scope *uuid.UUID
	err = row.Scan(&a.ID, &a.Kind, &a.Scope, &scope, &a.Dimension, &a.Window, &a.Percent, &a.Amount, &a.Emails, &a.Mail, &a.Webhook, &a.CreatedAt, &a.SetAt, &a.Name, &a.Minutes, &a.PausedAt, &a.LastFired)
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
