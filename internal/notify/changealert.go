package notify

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/tenants"
)

// AlertChange is what changes of an alert; nil leaves it as it is.
type AlertChange struct {
	Name                     *string
	Percent, Amount, Minutes *int64 // one takes the others' place
	Emails                   *[]string
	Mail, Webhook            *bool
	Paused                   *bool
}

// ChangeAlert changes when and whom an alert tells, what it is called, and
// whether it rests. Another threshold may fire in
// a period in which the old one has; the old one, come back to, does not again.
func (s *Service) ChangeAlert(ctx context.Context, tenant, alert uuid.UUID, c AlertChange) (Alert, error) {
	var a Alert
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if a, err = readAlert(ctx, tx, tenant, alert); err != nil {
			return err
		}
		was := a.threshold()
		if a = c.applied(a, s.instant()); a.threshold() != was {
			a.SetAt = s.instant()
		}
		if err := a.check(); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update alerts set percent = nullif($3, 0), amount = nullif($4, 0), emails = $5, mail = $6, webhook = $7, name = $8, minutes = nullif($9, 0), paused_at = $10, set_at = $11
			where tenant_id = $1 and alert_id = $2`, tenant, alert, a.Percent, a.Amount, a.Emails, a.Mail, a.Webhook, a.Name, a.Minutes, a.PausedAt, a.SetAt); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "alert.changed", id.Alert.Format(alert), a.noted())
	})
	return a, err
}

func (c AlertChange) applied(a Alert, now time.Time) Alert {
	if c.Percent != nil || c.Amount != nil || c.Minutes != nil {
		a.Percent, a.Amount, a.Minutes = small(c.Percent), 0, small(c.Minutes)
	}
	if c.Amount != nil {
		a.Amount = *c.Amount
	}
	if c.Name != nil {
		a.Name = strings.TrimSpace(*c.Name)
	}
	switch {
	case c.Paused == nil:
	case !*c.Paused:
		a.PausedAt = nil
	case a.PausedAt == nil:
		a.PausedAt = &now
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

// small is a number that check can look at: what is out of every range stays so.
func small(n *int64) int {
	if n == nil {
		return 0
	}
	return int(min(max(*n, -1), 1_000_000))
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
		return tenants.Audit(ctx, tx, tenant, "alert.removed", id.Alert.Format(alert), a.noted())
	})
}
