package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/notify"
	"weir/internal/tenants"
)

type webhookBody struct {
	URL         string   `json:"url" required:"true" example:"https://example.com/hooks/weir"`
	Description string   `json:"description,omitempty"`
	Types       []string `json:"types,omitempty" description:"Message types, or groups such as customer.*; absent or empty: every type"`
}

type webhookChangeBody struct {
	URL         *string   `json:"url,omitempty" nullable:"false"`
	Description *string   `json:"description,omitempty" description:"null or empty: none"`
	Types       *[]string `json:"types,omitempty" nullable:"false" description:"The whole new set; empty: every type"`
	Disabled    *bool     `json:"disabled,omitempty" nullable:"false" description:"true holds what happens from now on; false sends again"`
}

type webhookJSON struct {
	ID           string     `json:"id" example:"whk_01kb0000000000000000000000"`
	URL          string     `json:"url"`
	Description  string     `json:"description"`
	Types        []string   `json:"types"`
	Status       string     `json:"status" enum:"active,failing,disabled"`
	FailingSince *time.Time `json:"failing_since" description:"The first failed try since a message was last taken"`
	DisabledAt   *time.Time `json:"disabled_at"`
	DisabledWhy  string     `json:"disabled_why,omitempty" enum:"person,gone,failing" description:"gone: it answered 410; failing: it took nothing for five days"`
	Last4        string     `json:"last4" description:"Of the signing secret"`
	OldUntil     *time.Time `json:"old_secret_signs_until" description:"Until then the secret before signs too"`
	CreatedAt    time.Time  `json:"created_at"`
}

type issuedWebhookJSON struct {
	webhookJSON
	Secret string `json:"secret" description:"The signing secret, this once" example:"whsec_…"`
}

func webhookOf(e notify.Endpoint) webhookJSON {
	out := webhookJSON{
		ID: id.Endpoint.Format(e.ID), URL: e.URL, Description: e.Description, Types: e.Types, Status: "active", FailingSince: e.FailingSince,
		DisabledAt: e.DisabledAt, DisabledWhy: e.DisabledWhy, Last4: e.Last4, OldUntil: e.OldUntil, CreatedAt: e.CreatedAt,
	}
	switch {
	case e.DisabledAt != nil:
		out.Status = "disabled"
	case e.FailingSince != nil:
		out.Status = "failing"
	}
	return out
}

func addWebhook(s *Server, r *request, _ none, b webhookBody) (issuedWebhookJSON, error) {
	if err := required(map[string]string{"/url": b.URL}); err != nil {
		return issuedWebhookJSON{}, err
	}
	e, err := s.notify.AddEndpoint(r.ctx, r.tenant(), notify.NewEndpoint{URL: b.URL, Description: b.Description, Types: b.Types})
	return issuedWebhookJSON{webhookOf(e.Endpoint), e.Secret}, err
}

func listWebhooks(s *Server, r *request, q listQuery, _ none) (page[webhookJSON], error) {
	return list(s, r, q, "webhook-endpoints", func(after uuid.UUID, limit int) (tenants.Page[notify.Endpoint], error) {
		return s.notify.Endpoints(r.ctx, r.tenant(), after, limit)
	}, webhookOf)
}

func getWebhook(s *Server, r *request, _ none, _ none) (webhookJSON, error) {
	endpoint, err := r.path(id.Endpoint, "webhook endpoint")
	if err != nil {
		return webhookJSON{}, err
	}
	e, err := s.notify.Endpoint(r.ctx, r.tenant(), endpoint)
	return webhookOf(e), err
}

func changeWebhook(s *Server, r *request, _ none, b webhookChangeBody) (webhookJSON, error) {
	endpoint, err := r.path(id.Endpoint, "webhook endpoint")
	if err != nil {
		return webhookJSON{}, err
	}
	e, err := s.notify.ChangeEndpoint(r.ctx, r.tenant(), endpoint, notify.EndpointChange{URL: b.URL, Description: b.Description, Types: b.Types, Disabled: b.Disabled})
	return webhookOf(e), err
}

func removeWebhook(s *Server, r *request, _ none, _ none) (none, error) {
	endpoint, err := r.path(id.Endpoint, "webhook endpoint")
	if err != nil {
		return none{}, err
	}
	return none{}, s.notify.RemoveEndpoint(r.ctx, r.tenant(), endpoint)
}

type rotateWebhookBody struct {
	OverlapSeconds int64 `json:"overlap_seconds,omitempty" minimum:"0" maximum:"604800" description:"How long the old secret signs beside the new one; absent: it ends now"`
}

func rotateWebhook(s *Server, r *request, _ none, b rotateWebhookBody) (issuedWebhookJSON, error) {
	endpoint, err := r.path(id.Endpoint, "webhook endpoint")
	if err != nil {
		return issuedWebhookJSON{}, err
	}
	overlap := min(max(b.OverlapSeconds, -1), int64(notify.MaxOverlap/time.Second)+1)
	e, err := s.notify.RotateSecret(r.ctx, r.tenant(), endpoint, time.Duration(overlap)*time.Second)
	return issuedWebhookJSON{webhookOf(e.Endpoint), e.Secret}, err
}

func testWebhook(s *Server, r *request, _ none, _ none) (webhookMessageJSON, error) {
	endpoint, err := r.path(id.Endpoint, "webhook endpoint")
	if err != nil {
		return webhookMessageJSON{}, err
	}
	m, err := s.notify.Test(r.ctx, r.tenant(), endpoint)
	return webhookMessageOf(m), err
}

type replayBody struct {
	From *time.Time `json:"from" required:"true" nullable:"false" description:"Of when the messages were made"`
	To   *time.Time `json:"to,omitempty" description:"Before which they were made; absent: now"`
	All  bool       `json:"all,omitempty" description:"Also those that were taken"`
}

type replayJSON struct {
	Messages int64 `json:"messages" description:"How many are sent again"`
}

func replayWebhook(s *Server, r *request, _ none, b replayBody) (replayJSON, error) {
	endpoint, err := r.path(id.Endpoint, "webhook endpoint")
	if err != nil {
		return replayJSON{}, err
	}
	if b.From == nil {
		return replayJSON{}, fault.InvalidFields(fault.Field{Pointer: "/from", Code: "required", Message: "Say from when."})
	}
	span := notify.Range{From: *b.From, All: b.All}
	if b.To != nil {
		span.To = *b.To
	}
	n, err := s.notify.Replay(r.ctx, r.tenant(), endpoint, span)
	return replayJSON{n}, err
}
