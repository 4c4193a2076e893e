package httpapi

import (
	"time"

	"weir/internal/id"
)

type portalLinkBody struct {
	Send *bool `json:"send,omitempty" description:"false: no mail goes out, and the answer has the link, for you to hand over; whoever has it becomes the customer. Absent: true"`
}

type portalLinkJSON struct {
	SentTo    string     `json:"sent_to,omitempty" description:"The customer's address"`
	SignInURL string     `json:"sign_in_url,omitempty" description:"In this answer only; works once"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

func portalLink(s *Server, r *request, _ none, b portalLinkBody) (portalLinkJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return portalLinkJSON{}, err
	}
	if b.Send == nil || *b.Send {
		to, err := s.portal.SendLink(r.ctx, r.tenant(), customer)
		return portalLinkJSON{SentTo: to}, err
	}
	link, err := s.portal.MakeLink(r.ctx, r.tenant(), customer)
	return portalLinkJSON{SignInURL: link.URL, ExpiresAt: &link.ExpiresAt}, err
}

type portalSessionsJSON struct {
	Ended int64 `json:"ended" description:"Sessions that worked until now"`
}

func endPortalSessions(s *Server, r *request, _ none, _ none) (portalSessionsJSON, error) {
	customer, err := r.path(id.Customer, "customer")
	if err != nil {
		return portalSessionsJSON{}, err
	}
	ended, err := s.portal.EndSessions(r.ctx, r.tenant(), customer)
	return portalSessionsJSON{Ended: ended}, err
}
