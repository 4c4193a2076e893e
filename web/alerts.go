package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/limits"
	exact "weir/internal/money"
	"weir/internal/notify"
	"weir/web/ui"
)

// firedRows is how many firings the page shows.
const firedRows = 20

// alertsPage is what GET /alerts shows.
type alertsPage struct {
	workspace
	form
	Rows  []alertRow
	Fired []firedRow
	Today int // how many fired since the tenant's day began
}

// alertRow is an alert as the list shows it.
type alertRow struct {
	ID, Name, To, At string
	Watches          string    // beside a name of its own
	Gauge            *ui.Gauge // nil: nothing to measure
	Closest          string
	Tone             ui.Tone
	State, Last      string
}

// firedRow is one time that an alert told.
type firedRow struct {
	At    time.Time
	Tone  ui.Tone
	Words string
}

func (v alertsPage) title() string {
	switch {
	case len(v.Rows) == 0:
		return "Alerts"
	case v.Today == 0:
		return ui.Of(int64(len(v.Rows)), "alert", "alerts") + ", and none has fired today."
	}
	return ui.Of(int64(len(v.Rows)), "alert", "alerts") + ", fired " + ui.Of(int64(v.Today), "time", "times") + " today."
}

// alertWords name what an alert watches.
func alertWords(a notify.Alert) string {
	switch a.Kind {
	case notify.AlertCooling:
		return "A provider key cools"
	case notify.AlertFailed:
		return "A provider refuses a key"
	case notify.AlertUnpriced:
		return "A model’s cost is not known"
	case notify.AlertBehind:
		return "The books fall behind"
	case notify.AlertDiffer:
		return "The books of a day differ"
	case notify.AlertLetters:
		return "Something could not be counted"
	}
	what := strings.ReplaceAll(string(a.Dimension), "_", " ")
	whose := map[limits.ScopeKind]string{limits.ScopeCustomer: "any customer", limits.ScopeAPIKey: "any API key", limits.ScopeProviderKey: "any provider key"}[a.Scope]
	if whose == "" {
		whose = "the organisation"
		if a.Percent > 0 && a.Scope == "" {
			whose = "anybody"
		}
	}
	if a.Percent > 0 {
		return strings.ToUpper(what[:1]) + what[1:] + " a " + string(a.Window) + ", share of the limit of " + whose
	}
	return strings.ToUpper(what[:1]) + what[1:] + " a " + string(a.Window) + " of " + whose
}

// alertName is an alert's own name, or what it watches.
func alertName(a notify.Alert) string {
	if a.Name != "" {
		return a.Name
	}
	return alertWords(a)
}

func alertFigure(a notify.Alert, n int64, currency string) string {
	if a.Dimension == limits.DimensionSpend {
		return ui.Amount(exact.Times(n, 1_000_000).Decimal()) + " " + currency
	}
	return ui.Count(n)
}

func alertRowOf(s notify.Standing, w workspace) alertRow {
	a, r := s.Alert, s.Closest
	row := alertRow{ID: id.Alert.Format(a.ID), Name: alertWords(a), At: "at once", Tone: ui.OK, State: "quiet", Last: "never fired"}
	if a.Name != "" {
		row.Name, row.Watches = a.Name, row.Name
	}
	var to []string
	if a.Mail {
		to = append(to, strings.Join(a.Emails, ", "))
		if len(a.Emails) == 0 {
			to[0] = "owners and admins"
		}
	}
	if a.Webhook {
		to = append(to, "webhook")
	}
	row.To = strings.Join(to, ", ")
	if a.Kind == notify.AlertUsage {
		row.At = alertAt(a, w.Tenant.Currency)
		of, at := a.Amount, a.Amount
		if a.Percent > 0 {
			of, at = r.Of, r.Of/100*int64(a.Percent)
		}
		if r.Subject != "" {
			row.Gauge = &ui.Gauge{Label: r.Name, Used: r.Value, Limit: of, Alert: at}
			row.Closest = r.Name + ", " + alertFigure(a, r.Value, w.Tenant.Currency) + " of " + alertFigure(a, of, w.Tenant.Currency)
		}
	} else if r.Subject != "" {
		row.Closest = r.Name
	}
	if a.Kind == notify.AlertBehind {
		row.At = alertAt(a, w.Tenant.Currency)
		if row.Closest = "the books are complete"; r.Subject != "" {
			row.Closest = ui.Of(r.Value, "minute", "minutes") + " behind"
		}
	}
	if a.LastFired != nil {
		last := a.LastFired.In(w.Now.Location())
		row.Last = "last " + ui.Instant(last, w.Now)
		if start, _, _ := w.Tenant.Zones.Day(w.Now); !last.Before(start) {
			row.Tone, row.State = ui.Warn, "fired today"
		}
	}
	if a.PausedAt != nil {
		row.Tone, row.State = ui.Idle, "rests"
	}
	return row
}

func (p *Pages) alerts(c echo.Context, who auth.Person, w workspace) error {
	return p.showAlerts(c, who, w, form{Values: url.Values{}}, http.StatusOK)
}

func (p *Pages) showAlerts(c echo.Context, who auth.Person, w workspace, f form, status int) error {
	ctx := c.Request().Context()
	list, err := p.notify.Standings(ctx, who.Tenant)
	if err != nil {
		return err
	}
	fired, err := p.notify.Firings(ctx, who.Tenant, firedRows)
	if err != nil {
		return err
	}
	v := alertsPage{workspace: w, form: f}
	for _, s := range list {
		v.Rows = append(v.Rows, alertRowOf(s, w))
	}
	start, _, _ := w.Tenant.Zones.Day(w.Now)
	for _, x := range fired {
		if !x.At.Before(start) {
			v.Today++
		}
		row := firedRow{At: x.At.In(w.Now.Location()), Tone: ui.Warn, Words: notify.Words(x.Alert, x.Reading, w.Tenant.Currency)}
		if x.Alert.Kind == notify.AlertCooling {
			row.Tone = ui.Cool
		}
		v.Fired = append(v.Fired, row)
	}
	return show(c, status, alertsView(v))
}

// watched are the things that an alert of the form may watch, by the values of
// its first choice.
var watched = []struct {
	value, words string
	alert        notify.Alert
}{
	{"share", "any limit is nearly spent", notify.Alert{Kind: notify.AlertUsage}},
	{"share-customer", "a customer’s plan is nearly spent", notify.Alert{Kind: notify.AlertUsage, Scope: limits.ScopeCustomer}},
	{"share-provider", "a provider key’s limit is nearly spent", notify.Alert{Kind: notify.AlertUsage, Scope: limits.ScopeProviderKey}},
	{"amount", "the organisation has used", notify.Alert{Kind: notify.AlertUsage, Scope: limits.ScopeTenant}},
	{"amount-customer", "any customer has used", notify.Alert{Kind: notify.AlertUsage, Scope: limits.ScopeCustomer}},
	{"cooling", "a provider key cools", notify.Alert{Kind: notify.AlertCooling}},
	{"failed", "a provider refuses a key", notify.Alert{Kind: notify.AlertFailed}},
	{"unpriced", "a model’s cost is not known", notify.Alert{Kind: notify.AlertUnpriced}},
	{"behind", "the books fall behind", notify.Alert{Kind: notify.AlertBehind}},
	{"differ", "the books of a day differ", notify.Alert{Kind: notify.AlertDiffer}},
	{"letters", "something could not be counted", notify.Alert{Kind: notify.AlertLetters}},
}

// alert reads the form of a new alert.
func (f *form) alert() notify.Alert {
	var a notify.Alert
	for _, x := range watched {
		if x.value == f.Get("when") {
			a = x.alert
		}
	}
	if a.Kind == "" {
		f.wrong("when", "Choose what to watch.")
	}
	switch {
	case a.Kind == notify.AlertUsage:
		a.Dimension, a.Window = limits.Dimension(f.Get("dimension")), limits.Window(f.Get("window"))
		a = f.passes(a, strings.HasPrefix(f.Get("when"), "share"))
	case a.Kind == notify.AlertBehind && strings.TrimSpace(f.Get("threshold")) != "":
		a = f.passes(a, false)
	}
	a.Name, a.Emails, a.Mail, a.Webhook = f.Get("name"), f.words("emails"), f.picked("channels", "email"), f.picked("channels", "webhook")
	return a
}

// passes reads where an alert tells: a share, an amount or minutes, as its kind
// has it.
func (f *form) passes(a notify.Alert, share bool) notify.Alert {
	text := strings.TrimSuffix(strings.TrimSpace(f.Get("threshold")), "%")
	if a.Dimension == limits.DimensionSpend && !share {
		n, err := parseMicros(text)
		if err != nil || n <= 0 {
			f.wrong("threshold", "An amount of money more than 0, such as 1,500.00.")
		}
		a.Amount = n
		return a
	}
	n, err := strconv.ParseInt(separators.Replace(text), 10, 64)
	switch {
	case err != nil || n <= 0:
		f.wrong("threshold", "A whole number more than 0: a percent of the limit, an amount, or minutes.")
	case a.Kind == notify.AlertBehind:
		a.Minutes = int(min(n, 1_000_000))
	case share:
		a.Percent = int(min(n, 1_000_000))
	default:
		a.Amount = n
	}
	return a
}

func (p *Pages) addAlert(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	a := f.alert()
	status := http.StatusBadRequest
	if len(f.Wrong) == 0 {
		_, err = p.notify.AddAlert(asPerson(c, who), who.Tenant, a)
		if err == nil {
			return done(c, "/alerts", "alert-added")
		}
		if status, err = f.refuse(err); err != nil {
			return err
		}
	}
	return p.showAlerts(c, who, w, f, status)
}

// removeAlert asks before an alert is removed, and POST removes it.
func (p *Pages) removeAlert(c echo.Context, who auth.Person, w workspace) error {
	alert, err := param(c, id.Alert, "alert")
	if err != nil {
		return err
	}
	a, err := p.notify.Alert(c.Request().Context(), who.Tenant, alert)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return p.ask(c, w, ui.Confirm{
			Title: "Remove this alert?", Text: alertName(a) + ". Nobody is told by it any more.",
			Action: "/alerts/" + c.Param("id") + "/remove", Back: "/alerts", Keep: "Keep it", Do: "Remove it",
		})
	}
	return orDone(c, p.notify.RemoveAlert(asPerson(c, who), who.Tenant, alert), "/alerts", "alert-removed")
}

func (v alertsPage) when() ui.Input {
	in := v.input("when", "Tell me when")
	for _, x := range watched {
		if x.alert.Kind == notify.AlertLetters && !v.Tenant.Operator {
			continue
		}
		in.Options = append(in.Options, ui.Option{Value: x.value, Label: x.words, Chosen: x.value == v.Get("when")})
	}
	return in
}

func (v alertsPage) counted() ui.Input {
	in := v.input("dimension", "Of")
	in.Options = ui.Choose(v.Get("dimension"), ui.Option{Value: "tokens", Label: "tokens"}, ui.Option{Value: "requests", Label: "requests"}, ui.Option{Value: "input_tokens", Label: "input tokens"},
		ui.Option{Value: "output_tokens", Label: "output tokens"}, ui.Option{Value: "units", Label: "units"}, ui.Option{Value: "spend", Label: "spend, " + v.Tenant.Currency})
	return in
}

func (v alertsPage) every() ui.Input {
	in := v.input("window", "Once every")
	in.Options = ui.Choose(v.Get("window"), ui.Option{Value: "day", Label: "day"}, ui.Option{Value: "month", Label: "month"})
	return in
}

func (f form) channels(fresh bool) ui.Input {
	in := f.input("channels", "How")
	in.Options = []ui.Option{
		{Value: "email", Label: "E-mail", Chosen: fresh || f.picked("channels", "email")},
		{Value: "webhook", Label: "Webhook", Chosen: f.picked("channels", "webhook")},
	}
	return in
}
