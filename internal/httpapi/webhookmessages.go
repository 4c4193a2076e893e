package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/notify"
	"weir/internal/tenants"
)

type webhookMessageJSON struct {
	ID         string         `json:"id" description:"The webhook-id of every try" example:"msg_01kb0000000000000000000000"`
	Type       string         `json:"type" example:"customer.created"`
	Body       string         `json:"body" description:"The bytes that every try sends"`
	CreatedAt  time.Time      `json:"created_at"`
	Deliveries []deliveryJSON `json:"deliveries"`
}

type deliveryJSON struct {
	Endpoint string           `json:"endpoint"`
	URL      string           `json:"url"`
	State    string           `json:"state" enum:"waiting,taken,dead,held" description:"held: the endpoint was off"`
	Tries    int              `json:"tries" description:"Since it was first sent, or sent again by a person"`
	NextAt   *time.Time       `json:"next_try_at"`
	LastAt   *time.Time       `json:"last_try_at"`
	Status   int              `json:"last_status" description:"0: there was no answer"`
	MS       int              `json:"last_ms"`
	Error    string           `json:"last_error,omitempty" enum:"timed_out,unreachable,address_not_allowed,bad_certificate,secret_unavailable"`
	Attempts []webhookTryJSON `json:"attempts,omitempty" description:"Every try, where one message is read"`
}

type webhookTryJSON struct {
	At     time.Time `json:"at"`
	Status int       `json:"status"`
	MS     int       `json:"ms"`
	Error  string    `json:"error,omitempty"`
}

func webhookMessageOf(m notify.Message) webhookMessageJSON {
	out := webhookMessageJSON{ID: id.Message.Format(m.ID), Type: string(m.Type), Body: m.Body, CreatedAt: m.CreatedAt, Deliveries: []deliveryJSON{}}
	for _, d := range m.Deliveries {
		x := deliveryJSON{
			Endpoint: id.Endpoint.Format(d.Endpoint), URL: d.URL, State: string(d.State), Tries: d.Tries, LastAt: d.LastAt, Status: d.Status, MS: d.MS, Error: d.Error,
		}
		if d.State == notify.Waiting {
			x.NextAt = &d.NextAt
		}
		for _, a := range d.Attempts {
			x.Attempts = append(x.Attempts, webhookTryJSON(a))
		}
		out.Deliveries = append(out.Deliveries, x)
	}
	return out
}

type webhookMessageQuery struct {
	Limit    string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor   string `query:"cursor" description:"next_cursor of the page before"`
	Endpoint string `query:"endpoint" description:"Only what went to this endpoint"`
	Type     string `query:"type" description:"Only this type"`
	State    string `query:"state" description:"Only what waits, is taken, dead or held"`
}

func listWebhookMessages(s *Server, r *request, q webhookMessageQuery, _ none) (page[webhookMessageJSON], error) {
	f := notify.MessageFilter{Type: message.Type(q.Type), State: notify.State(q.State)}
	var wrong []fault.Field
	if f.Type != "" && !f.Type.Known() {
		wrong = append(wrong, fault.Field{Pointer: "?type", Code: "not_one_of", Message: "There is no such message type."})
	}
	switch f.State {
	case "", notify.Waiting, notify.Taken, notify.Dead, notify.Held:
	default:
		wrong = append(wrong, fault.Field{Pointer: "?state", Code: "not_one_of", Message: "state must be one of waiting, taken, dead, held."})
	}
	if len(wrong) > 0 {
		return page[webhookMessageJSON]{}, fault.InvalidFields(wrong...)
	}
	var err error
	if f.Endpoint, err = optionalID(id.Endpoint, "webhook endpoint", q.Endpoint); err != nil {
		return page[webhookMessageJSON]{}, err
	}
	return list(s, r, listQuery{q.Limit, q.Cursor}, "webhook-messages?"+q.Endpoint+"&"+q.Type+"&"+q.State, func(after uuid.UUID, limit int) (tenants.Page[notify.Message], error) {
		return s.notify.Messages(r.ctx, r.tenant(), f, after, limit)
	}, webhookMessageOf)
}

func getWebhookMessage(s *Server, r *request, _ none, _ none) (webhookMessageJSON, error) {
	msg, err := r.path(id.Message, "webhook message")
	if err != nil {
		return webhookMessageJSON{}, err
	}
	m, err := s.notify.Message(r.ctx, r.tenant(), msg)
	return webhookMessageOf(m), err
}

type resendBody struct {
	Endpoint string `json:"endpoint,omitempty" description:"Absent: every endpoint that it went to" example:"whk_01kb0000000000000000000000"`
}

func resendWebhookMessage(s *Server, r *request, _ none, b resendBody) (webhookMessageJSON, error) {
	msg, err := r.path(id.Message, "webhook message")
	if err != nil {
		return webhookMessageJSON{}, err
	}
	endpoint, err := optionalID(id.Endpoint, "webhook endpoint", b.Endpoint)
	if err != nil {
		return webhookMessageJSON{}, missing("/endpoint", "webhook endpoint")
	}
	m, err := s.notify.Resend(r.ctx, r.tenant(), msg, endpoint)
	return webhookMessageOf(m), err
}
