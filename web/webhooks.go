package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/notify"
	"weir/web/ui"
)

// toldRows is how many messages a page of the list has.
const toldRows = 30

// webhooksPage is what GET /webhooks shows: endpoints, and what they were told.
type webhooksPage struct {
	workspace
	Endpoints []hookRow
	Query     url.Values
	Search    string
	Picks     []ui.Option // endpoints to choose from
	States    []ui.Option
	Rows      []toldRow
	Older     string
	First     bool // this is the newest page
	Missed    int  // endpoints that have not taken something
}

// hookRow is an endpoint as the list shows it.
type hookRow struct {
	ID, URL, Description, Types, Last4 string
	OldUntil                           time.Time // zero: one secret signs
	Tone                               ui.Tone
	State                              string
	Off                                bool
}

// toldRow is one message on its way to one endpoint.
type toldRow struct {
	ID, Type, To, Href string
	Tone               ui.Tone
	State              string
	Tries              int
	At                 time.Time // of the last try, or of the message
}

func (v webhooksPage) title() string {
	failing, off := 0, 0
	for _, e := range v.Endpoints {
		switch {
		case e.Off:
			off++
		case e.Tone == ui.Bad:
			failing++
		}
	}
	words := ui.Of(int64(len(v.Endpoints)), "endpoint", "endpoints")
	switch {
	case failing > 0:
		return words + ", " + ui.Of(int64(failing), "does not answer as it should", "do not answer as they should") + "."
	case off > 0:
		return words + ", " + ui.Of(int64(off), "is off", "are off") + "."
	}
	return words + ", and nothing is failing."
}

func hookRowOf(e notify.Endpoint, now time.Time) hookRow {
	row := hookRow{ID: id.Endpoint.Format(e.ID), URL: e.URL, Description: e.Description, Types: strings.Join(e.Types, ", "), Last4: e.Last4, Tone: ui.OK, State: "on", Off: e.DisabledAt != nil}
	if row.Types == "" {
		row.Types = "everything, " + ui.Of(int64(len(message.Types)-1), "type", "types")
	}
	if e.OldUntil != nil && e.OldUntil.After(now) {
		row.OldUntil = e.OldUntil.In(now.Location())
	}
	switch {
	case e.DisabledWhy == notify.OffGone:
		row.Tone, row.State = ui.Bad, "off: it answered 410, gone"
	case e.DisabledWhy == notify.OffFailing:
		row.Tone, row.State = ui.Bad, "off: it took nothing for five days"
	case row.Off:
		row.Tone, row.State = ui.Idle, "switched off "+ui.Instant(e.DisabledAt.In(now.Location()), now)
	case e.FailingSince != nil:
		row.Tone, row.State = ui.Bad, "failing since "+ui.Instant(e.FailingSince.In(now.Location()), now)
	}
	return row
}

func toldRowsOf(m notify.Message, only uuid.UUID, now time.Time) (out []toldRow) {
	for _, d := range m.Deliveries {
		if only != uuid.Nil && d.Endpoint != only {
			continue
		}
		row := toldRow{ID: id.Message.Format(m.ID), Type: string(m.Type), To: d.URL, Tries: d.Tries, At: m.CreatedAt.In(now.Location())}
		row.Href = "/webhooks/messages/" + row.ID
		if d.LastAt != nil {
			row.At = d.LastAt.In(now.Location())
		}
		row.Tone, row.State = deliveryWords(d, now)
		out = append(out, row)
	}
	return out
}

// deliveryWords say where a delivery stands.
func deliveryWords(d notify.Delivery, now time.Time) (ui.Tone, string) {
	next := ui.Instant(d.NextAt.In(now.Location()), now)
	switch d.State {
	case notify.Taken:
		return ui.OK, tryWords(d.Status, d.Error) + " in " + ui.Count(int64(d.MS)) + " ms"
	case notify.Dead:
		return ui.Bad, tryWords(d.Status, d.Error) + ", given up"
	case notify.Held:
		return ui.Idle, "held: the endpoint was off"
	case notify.Waiting:
		if d.Tries > 0 {
			return ui.Bad, tryWords(d.Status, d.Error) + ", next try " + next
		}
	}
	return ui.Idle, "on its way"
}

var tryErrors = map[string]string{
	"timed_out": "no answer in 15 s", "unreachable": "not reachable", "address_not_allowed": "its address may not be called",
	"bad_certificate": "its certificate is not valid", "secret_unavailable": "its secret could not be opened",
}

func tryWords(status int, why string) string {
	if status != 0 {
		words := strconv.Itoa(status)
		if status >= 300 && status < 400 {
			words += ", a redirect, which is not followed"
		}
		return words
	}
	return tryErrors[why]
}

// webhooks answers GET /webhooks.
func (p *Pages) webhooks(c echo.Context, who auth.Person, w workspace) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	v := webhooksPage{workspace: w, Query: q, Search: strings.TrimSpace(q.Get("q")), First: q.Get("after") == ""}
	if msg, err := id.Message.Parse(v.Search); err == nil {
		return c.Redirect(http.StatusSeeOther, "/webhooks/messages/"+id.Message.Format(msg))
	}
	page, err := p.notify.Endpoints(ctx, who.Tenant, uuid.Nil, notify.MaxEndpoints)
	if err != nil {
		return err
	}
	f := notify.MessageFilter{Text: v.Search}
	f.Endpoint, _ = id.Endpoint.Parse(q.Get("endpoint")) // what is no id chooses none
	v.Picks = []ui.Option{{Label: "Every endpoint"}}
	for _, e := range page.Items {
		row := hookRowOf(e, w.Now)
		v.Endpoints = append(v.Endpoints, row)
		v.Picks = append(v.Picks, ui.Option{Value: row.ID, Label: row.URL, Chosen: e.ID == f.Endpoint})
	}
	v.States = ui.Choose(q.Get("state"), ui.Option{Value: "", Label: "Every state"}, ui.Option{Value: "failing", Label: "Failing"}, ui.Option{Value: "waiting", Label: "Waiting"}, ui.Option{Value: "taken", Label: "Taken"}, ui.Option{Value: "dead", Label: "Given up"}, ui.Option{Value: "held", Label: "Held"})
	if state := q.Get("state"); state == "failing" {
		f.Failing = true
	} else if slices.ContainsFunc(v.States, func(o ui.Option) bool { return o.Chosen }) {
		f.State = notify.State(state)
	}
	after, _ := id.Message.Parse(q.Get("after"))
	told, err := p.notify.Messages(ctx, who.Tenant, f, after, toldRows)
	if err != nil {
		return err
	}
	for _, m := range told.Items {
		v.Rows = append(v.Rows, toldRowsOf(m, f.Endpoint, w.Now)...)
	}
	if told.Next != uuid.Nil {
		v.Older = link("/webhooks", q, "after", id.Message.Format(told.Next))
	}
	return show(c, http.StatusOK, webhooksView(v))
}

// webhookMessagePage is one message with every try.
type webhookMessagePage struct {
	workspace
	ID, Type, Body string
	At             time.Time
	Deliveries     []toldTo
}

// toldTo is what became of a message at one endpoint.
type toldTo struct {
	Endpoint, URL string
	Tone          ui.Tone
	State         string
	Tries         []toldTry
	Waits         bool
	Next          time.Time
	Left          int
}

type toldTry struct {
	At    time.Time
	Tone  ui.Tone
	Words string
	MS    int
}

// webhookMessage answers GET /webhooks/messages/:id.
func (p *Pages) webhookMessage(c echo.Context, who auth.Person, w workspace) error {
	msg, err := param(c, id.Message, "webhook message")
	if err != nil {
		return err
	}
	m, err := p.notify.Message(c.Request().Context(), who.Tenant, msg)
	if err != nil {
		return err
	}
	v := webhookMessagePage{workspace: w, ID: id.Message.Format(m.ID), Type: string(m.Type), Body: m.Body, At: m.CreatedAt.In(w.Now.Location())}
	for _, d := range m.Deliveries {
		x := toldTo{Endpoint: id.Endpoint.Format(d.Endpoint), URL: d.URL, Waits: d.State == notify.Waiting, Next: d.NextAt.In(w.Now.Location()), Left: max(notify.Tries-d.Tries, 0)}
		x.Tone, x.State = deliveryWords(d, w.Now)
		for _, a := range d.Attempts {
			t := toldTry{At: a.At.In(w.Now.Location()), Tone: ui.Bad, Words: tryWords(a.Status, a.Error), MS: a.MS}
			if a.Status >= 200 && a.Status < 300 {
				t.Tone = ui.OK
			}
			x.Tries = append(x.Tries, t)
		}
		v.Deliveries = append(v.Deliveries, x)
	}
	return show(c, http.StatusOK, webhookMessageView(v))
}

// resendMessage sends a message again to one endpoint.
func (p *Pages) resendMessage(c echo.Context, who auth.Person, _ workspace) error {
	msg, err := param(c, id.Message, "webhook message")
	if err != nil {
		return err
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	endpoint, _ := id.Endpoint.Parse(f.Get("endpoint")) // what is no id: every endpoint
	_, err = p.notify.Resend(asPerson(c, who), who.Tenant, msg, endpoint)
	return orDone(c, err, "/webhooks/messages/"+c.Param("id"), "webhook-resent")
}
