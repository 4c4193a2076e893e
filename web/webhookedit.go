package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/notify"
	"weir/web/ui"
)

// webhookPage is an endpoint with its form, or the form of a new one.
type webhookPage struct {
	workspace
	form
	Row      hookRow // zero of a new one
	Rotation form
}

func (v webhookPage) title() string {
	if v.Row.ID == "" {
		return "New webhook endpoint"
	}
	return v.Row.URL
}

func (v webhookPage) action() string {
	if v.Row.ID == "" {
		return "/webhooks"
	}
	return "/webhooks/" + v.Row.ID
}

func (v webhookPage) types() ui.Input {
	in := v.input("types", "Tell it about")
	in.Hint = "None ticked: everything, also what is added later."
	for _, d := range message.Types {
		if d.Type == message.WebhookTest {
			continue
		}
		ticked := v.picked("types", string(d.Type)) || v.picked("types", d.Type.Group()+".*")
		in.Options = append(in.Options, ui.Option{Value: string(d.Type), Label: string(d.Type), Hint: d.Says, Chosen: ticked, Whole: true})
	}
	return in
}

func webhookForm(e notify.Endpoint) form {
	return form{Values: url.Values{"url": {e.URL}, "description": {e.Description}, "types": e.Types}}
}

func (f form) endpoint() notify.NewEndpoint {
	return notify.NewEndpoint{URL: strings.TrimSpace(f.Get("url")), Description: strings.TrimSpace(f.Get("description")), Types: append([]string{}, f.Values["types"]...)}
}

// signedPage shows a signing secret, this once.
type signedPage struct {
	workspace
	Endpoint notify.Issued
	Old      time.Time // until when the one before signs too; zero: there is none
}

func (p *Pages) newWebhook(c echo.Context, _ auth.Person, w workspace) error {
	return show(c, http.StatusOK, webhookView(webhookPage{workspace: w, form: form{Values: url.Values{}}}))
}

func (p *Pages) addWebhook(c echo.Context, who auth.Person, w workspace) error {
	f, err := typed(c)
	if err != nil {
		return err
	}
	made, err := p.notify.AddEndpoint(asPerson(c, who), who.Tenant, f.endpoint())
	if err == nil {
		return show(c, http.StatusOK, signedView(signedPage{workspace: w, Endpoint: made}))
	}
	status, err := f.refuse(err)
	if err != nil {
		return err
	}
	return show(c, status, webhookView(webhookPage{workspace: w, form: f}))
}

func (p *Pages) endpointOf(c echo.Context, who auth.Person) (notify.Endpoint, error) {
	endpoint, err := param(c, id.Endpoint, "webhook endpoint")
	if err != nil {
		return notify.Endpoint{}, err
	}
	return p.notify.Endpoint(c.Request().Context(), who.Tenant, endpoint)
}

// webhook shows an endpoint, and a POST changes it.
func (p *Pages) webhook(c echo.Context, who auth.Person, w workspace) error {
	e, err := p.endpointOf(c, who)
	if err != nil {
		return err
	}
	v := webhookPage{workspace: w, form: webhookForm(e), Row: hookRowOf(e, w.Now), Rotation: form{Values: url.Values{}}}
	if c.Request().Method != http.MethodPost {
		return show(c, http.StatusOK, webhookView(v))
	}
	if v.form, err = typed(c); err != nil {
		return err
	}
	n := v.endpoint()
	_, err = p.notify.ChangeEndpoint(asPerson(c, who), who.Tenant, e.ID, notify.EndpointChange{URL: &n.URL, Description: &n.Description, Types: &n.Types})
	if err == nil {
		return done(c, "/webhooks/"+v.Row.ID, "webhook-changed")
	}
	status, err := v.refuse(err)
	if err != nil {
		return err
	}
	return show(c, status, webhookView(v))
}

// testWebhook sends a test and leads to what became of it.
func (p *Pages) testWebhook(c echo.Context, who auth.Person, _ workspace) error {
	e, err := p.endpointOf(c, who)
	if err != nil {
		return err
	}
	m, err := p.notify.Test(asPerson(c, who), who.Tenant, e.ID)
	return orDone(c, err, "/webhooks/messages/"+id.Message.Format(m.ID), "webhook-tested")
}

// switchWebhook turns an endpoint off or on.
func (p *Pages) switchWebhook(c echo.Context, who auth.Person, _ workspace) error {
	e, err := p.endpointOf(c, who)
	if err != nil {
		return err
	}
	off, word := e.DisabledAt == nil, "webhook-on"
	if off {
		word = "webhook-off"
	}
	_, err = p.notify.ChangeEndpoint(asPerson(c, who), who.Tenant, e.ID, notify.EndpointChange{Disabled: &off})
	return orDone(c, err, "/webhooks/"+c.Param("id"), word)
}

// replayWebhook sends again what an endpoint missed.
func (p *Pages) replayWebhook(c echo.Context, who auth.Person, _ workspace) error {
	e, err := p.endpointOf(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	hours, err := strconv.Atoi(f.Get("hours"))
	if err != nil || hours < 1 || hours > 30*24 {
		return fault.New(fault.Invalid, "form_unreadable", "Choose how far back the replay goes.")
	}
	_, err = p.notify.Replay(asPerson(c, who), who.Tenant, e.ID, notify.Range{From: p.now().Add(-time.Duration(hours) * time.Hour)})
	return orDone(c, err, "/webhooks", "webhook-replayed")
}

// rotateWebhook gives an endpoint a new secret and shows it.
func (p *Pages) rotateWebhook(c echo.Context, who auth.Person, w workspace) error {
	e, err := p.endpointOf(c, who)
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(f.Get("overlap_seconds"), 10, 32)
	if err != nil {
		f.wrong("overlap_seconds", "Choose for how long the old secret goes on signing.")
		return show(c, http.StatusBadRequest, webhookView(webhookPage{workspace: w, form: webhookForm(e), Row: hookRowOf(e, w.Now), Rotation: f}))
	}
	made, err := p.notify.RotateSecret(asPerson(c, who), who.Tenant, e.ID, time.Duration(seconds)*time.Second)
	if err != nil {
		return err
	}
	v := signedPage{workspace: w, Endpoint: made}
	if seconds > 0 {
		v.Old = made.OldUntil.In(w.Now.Location())
	}
	return show(c, http.StatusOK, signedView(v))
}

// removeWebhook asks before an endpoint is forgotten, and POST forgets it.
func (p *Pages) removeWebhook(c echo.Context, who auth.Person, w workspace) error {
	e, err := p.endpointOf(c, who)
	if err != nil {
		return err
	}
	at := "/webhooks/" + c.Param("id")
	ask := ui.Confirm{
		Title: "Remove this endpoint?", Text: e.URL + " is told nothing more. What it was told stays readable for 30 days.",
		Action: at + "/remove", Back: at, Keep: "Keep it", Do: "Remove it",
		Consequences: []ui.Consequence{{Tone: ui.Bad, Number: "1", Text: "signing secret is forgotten; the same address added again gets another"}},
	}
	if c.Request().Method != http.MethodPost {
		return p.ask(c, w, ask)
	}
	return orDone(c, p.notify.RemoveEndpoint(asPerson(c, who), who.Tenant, e.ID), "/webhooks", "webhook-removed")
}
