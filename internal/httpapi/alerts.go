package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/tenants"
)

type alertBody struct {
	Kind        string         `json:"kind,omitempty" enum:"usage,provider_key_cooling,provider_key_failed,unpriced,pipeline_behind,books_differ,dead_letters" description:"Absent: usage"`
	Name        string         `json:"name,omitempty" description:"For people; in its mails and messages"`
	Scope       string         `json:"scope,omitempty" enum:"tenant,customer,api_key,provider_key" description:"Whose usage, where no one of them is named: each of that kind by itself. Absent: the tenant's amount, or every limit's percent"`
	Customer    string         `json:"customer,omitempty" description:"Only this one" example:"cus_01kb0000000000000000000000"`
	APIKey      string         `json:"api_key,omitempty" description:"Only this one, and what it is rotated to" example:"key_01kb0000000000000000000000"`
	ProviderKey string         `json:"provider_key,omitempty" description:"Only this one" example:"pvk_01kb0000000000000000000000"`
	Dimension   string         `json:"dimension,omitempty" enum:"requests,tokens,input_tokens,output_tokens,units,spend"`
	Window      string         `json:"window,omitempty" enum:"day,month"`
	Threshold   *thresholdBody `json:"threshold,omitempty" nullable:"false"`
	Channels    []string       `json:"channels" required:"true" nullable:"false" description:"email, webhook, or both"`
	Emails      []string       `json:"emails,omitempty" description:"Absent or empty: owners and admins"`
}

type thresholdBody struct {
	Percent int64 `json:"percent,omitempty" minimum:"0" maximum:"1000" description:"Of a limit"`
	Amount  int64 `json:"amount,omitempty" minimum:"0" description:"Of the dimension; of spend in micro-units of the tenant's currency"`
	Minutes int64 `json:"minutes,omitempty" minimum:"0" maximum:"1440" description:"Of pipeline_behind: how far the books are behind. Absent: 10"`
}

type alertChangeBody struct {
	Name      *string        `json:"name,omitempty" nullable:"false"`
	Paused    *bool          `json:"paused,omitempty" nullable:"false" description:"It tells nothing meanwhile; what still holds afterwards is told then"`
	Threshold *thresholdBody `json:"threshold,omitempty" nullable:"false"`
	Channels  *[]string      `json:"channels,omitempty" nullable:"false"`
	Emails    *[]string      `json:"emails,omitempty" nullable:"false" description:"The whole new set; empty: owners and admins"`
}

type alertJSON struct {
	ID        string         `json:"id" example:"alr_01kb0000000000000000000000"`
	Kind      string         `json:"kind"`
	Name      string         `json:"name"`
	Scope     string         `json:"scope,omitempty"`
	ScopeID   string         `json:"scope_id,omitempty" description:"A rotated key is its first one"`
	Dimension string         `json:"dimension,omitempty"`
	Window    string         `json:"window,omitempty"`
	Threshold *thresholdBody `json:"threshold"`
	Channels  []string       `json:"channels"`
	Emails    []string       `json:"emails"`
	LastFired *time.Time     `json:"last_fired_at"`
	PausedAt  *time.Time     `json:"paused_at"`
	CreatedAt time.Time      `json:"created_at"`
}

var scopeIDs = map[limits.ScopeKind]id.Kind{limits.ScopeCustomer: id.Customer, limits.ScopeAPIKey: id.APIKey, limits.ScopeProviderKey: id.ProviderKey}

func alertOf(a notify.Alert) alertJSON {
	out := alertJSON{
		ID: id.Alert.Format(a.ID), Name: a.Name, Kind: string(a.Kind), Scope: string(a.Scope), Dimension: string(a.Dimension), Window: string(a.Window),
		Channels: []string{}, Emails: append([]string{}, a.Emails...), LastFired: a.LastFired, PausedAt: a.PausedAt, CreatedAt: a.CreatedAt,
	}
	if a.Kind == notify.AlertUsage || a.Kind == notify.AlertBehind {
		out.Threshold = &thresholdBody{int64(a.Percent), a.Amount, int64(a.Minutes)}
	}
	if a.ScopeID != uuid.Nil {
		out.ScopeID = scopeIDs[a.Scope].Format(a.ScopeID)
	}
	if a.Mail {
		out.Channels = append(out.Channels, "email")
	}
	if a.Webhook {
		out.Channels = append(out.Channels, "webhook")
	}
	return out
}

// channelsOf reads where an alert tells.
func channelsOf(list []string) (mail, webhook bool, err error) {
	for i, c := range list {
		switch {
		case c == "email" && !mail:
			mail = true
		case c == "webhook" && !webhook:
			webhook = true
		default:
			return false, false, fault.InvalidFields(fault.Field{Pointer: "/channels/" + itoa(i), Code: "not_one_of", Message: "A channel is email or webhook, each once."})
		}
	}
	return mail, webhook, nil
}

// alert reads the body.
func (b alertBody) alert() (notify.Alert, error) {
	a := notify.Alert{Kind: notify.AlertKind(b.Kind), Name: b.Name, Scope: limits.ScopeKind(b.Scope), Dimension: limits.Dimension(b.Dimension), Window: limits.Window(b.Window), Emails: b.Emails}
	if b.Kind == "" {
		a.Kind = notify.AlertUsage
	}
	switch a.Scope {
	case "", limits.ScopeTenant, limits.ScopeCustomer, limits.ScopeAPIKey, limits.ScopeProviderKey:
	default:
		return a, fault.InvalidFields(fault.Field{Pointer: "/scope", Code: "not_one_of", Message: "scope must be one of tenant, customer, api_key, provider_key."})
	}
	named := 0
	for _, x := range []struct {
		kind                limits.ScopeKind
		value, member, what string
	}{{limits.ScopeCustomer, b.Customer, "/customer", "customer"}, {limits.ScopeAPIKey, b.APIKey, "/api_key", "API key"}, {limits.ScopeProviderKey, b.ProviderKey, "/provider_key", "provider key"}} {
		if x.value == "" {
			continue
		}
		u, err := scopeIDs[x.kind].Parse(x.value)
		if err != nil {
			return a, missing(x.member, x.what)
		}
		if named++; named > 1 || b.Scope != "" && a.Scope != x.kind {
			return a, fault.InvalidFields(fault.Field{Pointer: x.member, Code: "not_for_this_kind", Message: "An alert watches one thing."})
		}
		a.Scope, a.ScopeID = x.kind, u
	}
	if b.Threshold != nil {
		a.Percent, a.Amount, a.Minutes = int(min(b.Threshold.Percent, 1_000_000)), b.Threshold.Amount, int(min(b.Threshold.Minutes, 1_000_000))
	}
	var err error
	a.Mail, a.Webhook, err = channelsOf(b.Channels)
	return a, err
}

func addAlert(s *Server, r *request, _ none, b alertBody) (alertJSON, error) {
	a, err := b.alert()
	if err != nil {
		return alertJSON{}, err
	}
	a, err = s.notify.AddAlert(r.ctx, r.tenant(), a)
	return alertOf(a), err
}

func listAlerts(s *Server, r *request, q listQuery, _ none) (page[alertJSON], error) {
	return list(s, r, q, "alerts", func(after uuid.UUID, limit int) (tenants.Page[notify.Alert], error) {
		return s.notify.Alerts(r.ctx, r.tenant(), after, limit)
	}, alertOf)
}

func getAlert(s *Server, r *request, _ none, _ none) (alertJSON, error) {
	alert, err := r.path(id.Alert, "alert")
	if err != nil {
		return alertJSON{}, err
	}
	a, err := s.notify.Alert(r.ctx, r.tenant(), alert)
	return alertOf(a), err
}

func changeAlert(s *Server, r *request, _ none, b alertChangeBody) (alertJSON, error) {
	alert, err := r.path(id.Alert, "alert")
	if err != nil {
		return alertJSON{}, err
	}
	c := notify.AlertChange{Name: b.Name, Emails: b.Emails, Paused: b.Paused}
	if b.Threshold != nil {
		c.Percent, c.Amount, c.Minutes = &b.Threshold.Percent, &b.Threshold.Amount, &b.Threshold.Minutes
	}
	if b.Channels != nil {
		mail, webhook, err := channelsOf(*b.Channels)
		if err != nil {
			return alertJSON{}, err
		}
		c.Mail, c.Webhook = &mail, &webhook
	}
	a, err := s.notify.ChangeAlert(r.ctx, r.tenant(), alert, c)
	return alertOf(a), err
}

func removeAlert(s *Server, r *request, _ none, _ none) (none, error) {
	alert, err := r.path(id.Alert, "alert")
	if err != nil {
		return none{}, err
	}
	return none{}, s.notify.RemoveAlert(r.ctx, r.tenant(), alert)
}
