package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/web/ui"
)

// What the path's alert tells at: a share of a cap, or tokens of a day where
// nothing is capped.
const (
	startShare = 80
	startSpent = 100_000
)

// alertOffer is the alert that the path makes with one press.
type alertOffer struct {
	Alert notify.Alert
	Whose string
	Cap   string // "" nothing is capped by day or month
}

// offerAlert watches the customer that the path made, or the organisation.
func (p *Pages) offerAlert(ctx context.Context, w workspace) (alertOffer, error) {
	o := alertOffer{Whose: w.Tenant.Name, Alert: notify.Alert{Kind: notify.AlertUsage, Scope: limits.ScopeTenant, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Mail: true}}
	caps := w.Tenant.Limits
	k, found, err := p.setupCustomer(ctx, w)
	if err != nil {
		return o, err
	}
	if found {
		c, err := p.tenants.Customer(ctx, w.Tenant.ID, k.Customer)
		standings, err1 := p.billing.Standings(ctx, w.Tenant.ID, []uuid.UUID{k.Customer})
		if err := errors.Join(err, err1); err != nil {
			return o, err
		}
		o.Whose, o.Alert.Scope, o.Alert.ScopeID, caps = c.Name, limits.ScopeCustomer, k.Customer, standings[k.Customer].Limits
	}
	if l, capped := firstCap(caps); capped {
		o.Cap, o.Alert.Dimension, o.Alert.Window, o.Alert.Percent = sentence([]limits.Limit{l}), l.Dimension, l.Window, startShare
	}
	return o, nil
}

// firstCap is a cap of the day, or else of the month.
func firstCap(list []limits.Limit) (limits.Limit, bool) {
	for _, w := range []limits.Window{limits.WindowDay, limits.WindowMonth} {
		for _, l := range list {
			if l.Window == w && l.Policy == limits.PolicyCalendar && l.Amount > 0 && !l.EachEndUser() {
				return l, true
			}
		}
	}
	return limits.Limit{}, false
}

// setupTelling reads whether the customer of the path, or all, is watched.
func (p *Pages) setupTelling(ctx context.Context, v *setupPage, says map[string]string) error {
	page, err := p.notify.Alerts(ctx, v.Tenant.ID, uuid.Nil, notify.MaxAlerts)
	if err != nil || len(page.Items) == 0 {
		return err
	}
	k, _, err := p.setupCustomer(ctx, v.workspace)
	for _, a := range page.Items {
		if a.Kind != notify.AlertUsage || a.PausedAt != nil || a.ScopeID != uuid.Nil && a.ScopeID != k.Customer {
			continue
		}
		says["alert"] = "There is one."
		if v.May(seeAlerts) {
			says["alert"] = alertName(a) + ", at " + alertAt(a, v.Tenant.Currency) + "."
		}
	}
	return err
}

// setupAlert makes the alert of the path. Where there is one it stays the one.
func (p *Pages) setupAlert(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	ctx, says := asPerson(c, who), map[string]string{}
	if err := p.setupTelling(ctx, &setupPage{workspace: w}, says); err != nil {
		return err
	}
	if says["alert"] != "" {
		return c.Redirect(http.StatusSeeOther, "/setup")
	}
	o, err := p.offerAlert(ctx, w)
	if err != nil {
		return err
	}
	if o.Cap == "" {
		o.Alert = f.passes(o.Alert, false)
	}
	status := http.StatusBadRequest
	if len(f.Wrong) == 0 {
		_, err = p.notify.AddAlert(ctx, who.Tenant, o.Alert)
		if err == nil {
			return c.Redirect(http.StatusSeeOther, "/setup")
		}
		if status, err = f.refuse(err); err != nil {
			return err
		}
	}
	return p.again(c, who, w, "alert", f, status)
}

// alertAt is where an alert tells.
func alertAt(a notify.Alert, currency string) string {
	switch {
	case a.Percent > 0:
		return ui.Count(int64(a.Percent)) + "%"
	case a.Kind == notify.AlertUsage:
		return alertFigure(a, a.Amount, currency)
	case a.Kind == notify.AlertBehind:
		return ui.Of(int64(a.Minutes), "minute", "minutes")
	}
	return "once"
}
