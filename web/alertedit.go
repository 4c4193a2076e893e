package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/web/ui"
)

// alertPage is an alert with its form. What it watches stays what it is.
type alertPage struct {
	workspace
	form
	ID    string
	Alert notify.Alert
}

// alertForm is an alert as its form begins.
func alertForm(a notify.Alert) form {
	f := form{Values: url.Values{"name": {a.Name}, "emails": {strings.Join(a.Emails, ", ")}, "threshold": {""}}}
	switch {
	case a.Percent > 0:
		f.Set("threshold", strconv.Itoa(a.Percent))
	case a.Amount > 0:
		f.Set("threshold", amountOf(a.Dimension, a.Amount))
	case a.Minutes > 0:
		f.Set("threshold", strconv.Itoa(a.Minutes))
	}
	for channel, on := range map[string]bool{"email": a.Mail, "webhook": a.Webhook} {
		if on {
			f.Add("channels", channel)
		}
	}
	if a.PausedAt != nil {
		f.Set("paused", "true")
	}
	return f
}

// threshold is the field of where it tells; false where its kind has none.
func (v alertPage) threshold() (ui.Input, bool) {
	in := v.input("threshold", "Passes, % of the limit")
	in.Class, in.InputMode = "num", "numeric"
	in.Hint = "Another threshold may tell in a period in which this one has; this one, come back to, does not again."
	switch {
	case v.Alert.Kind == notify.AlertBehind:
		in.Label, in.Hint = "Minutes behind", "It tells again only after the books had caught up."
	case v.Alert.Kind != notify.AlertUsage:
		return in, false
	case v.Alert.Amount > 0:
		in.Label = "Passes, " + strings.ReplaceAll(string(v.Alert.Dimension), "_", " ") + " a " + string(v.Alert.Window)
		if v.Alert.Dimension == limits.DimensionSpend {
			in.Label, in.InputMode = "Passes, "+v.Tenant.Currency+" a "+string(v.Alert.Window), "decimal"
		}
	}
	return in, true
}

// change reads the form.
func (v *alertPage) change() notify.AlertChange {
	name, emails, paused := v.Get("name"), append([]string{}, v.words("emails")...), v.Get("paused") == "true"
	mail, webhook := v.picked("channels", "email"), v.picked("channels", "webhook")
	c := notify.AlertChange{Name: &name, Emails: &emails, Mail: &mail, Webhook: &webhook, Paused: &paused}
	if _, has := v.threshold(); has {
		a := v.passes(notify.Alert{Kind: v.Alert.Kind, Dimension: v.Alert.Dimension}, v.Alert.Percent > 0)
		percent, minutes := int64(a.Percent), int64(a.Minutes)
		c.Percent, c.Amount, c.Minutes = &percent, &a.Amount, &minutes
	}
	return c
}

// alert shows an alert, and a POST changes it.
func (p *Pages) alert(c echo.Context, who auth.Person, w workspace) error {
	alert, err := param(c, id.Alert, "alert")
	if err != nil {
		return err
	}
	a, err := p.notify.Alert(c.Request().Context(), who.Tenant, alert)
	if err != nil {
		return err
	}
	v := alertPage{workspace: w, form: alertForm(a), ID: id.Alert.Format(alert), Alert: a}
	if c.Request().Method != http.MethodPost {
		return show(c, http.StatusOK, alertView(v))
	}
	if v.form, err = typed(c); err != nil {
		return err
	}
	change, status := v.change(), http.StatusBadRequest
	if len(v.Wrong) == 0 {
		_, err = p.notify.ChangeAlert(asPerson(c, who), who.Tenant, alert, change)
		if err == nil {
			return done(c, "/alerts", "alert-changed")
		}
		if status, err = v.refuse(err); err != nil {
			return err
		}
	}
	return show(c, status, alertView(v))
}
