package billing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// previewFor is how long a preview can be carried out.
const previewFor = 15 * time.Minute

// pinned is what the token of a preview holds: the change, and the subscription
// that it is of as it stood.
type pinned struct {
	Tenant       uuid.UUID `json:"t"`
	Subscription uuid.UUID `json:"s"`
	Revision     int       `json:"r"`
	From         uuid.UUID `json:"f"`
	To           uuid.UUID `json:"v"`
	Pending      uuid.UUID `json:"p"`
	Status       Status    `json:"u"`
	PeriodEnd    time.Time `json:"e"`
	When         When      `json:"w"`
	At           time.Time `json:"a"`
	Expires      time.Time `json:"x"`
}

func (s *Service) pin(c Change, now time.Time) (token string, expires time.Time) {
	sub := c.Subscription
	expires = now.Add(previewFor)
	return s.seal(pinned{
		sub.tenant, sub.ID, sub.Revision, sub.PlanVersion, c.To.Version.ID, sub.Pending, sub.Status, sub.Current.End, c.When, now, expires,
	}), expires
}

// holds tells whether a locked subscription is as it was when the preview was
// made.
func (t pinned) holds(sub Subscription, now time.Time) error {
	switch {
	case sub.Status == Ended:
		return hasEnded()
	case sub.Revision == t.Revision && now.Before(t.Expires):
		return nil
	case sub.Revision == t.Revision:
		return stale("It is more than 15 minutes old.")
	case sub.PlanVersion != t.From:
		return stale("The customer went to another plan version meanwhile.")
	case !sub.Current.End.Equal(t.PeriodEnd):
		return stale("A new period has begun meanwhile.")
	case sub.Pending != t.Pending && sub.Pending == uuid.Nil:
		return stale("The change that waited for the period's end was taken back meanwhile.")
	case sub.Pending != t.Pending:
		return stale("Another change was put down for the period's end meanwhile.")
	case sub.Status != t.Status:
		return stale("The subscription was " + string(t.Status) + " and is " + string(sub.Status) + " now.")
	}
	return stale("The subscription was changed meanwhile.")
}

func stale(why string) error {
	return fault.New(fault.Conflict, "preview_stale", "This preview does not hold any more. "+why+" Nothing was changed; look at a new preview.")
}

// seal makes a token of what it holds: anybody can read it, only this service
// can have made it.
func (s *Service) seal(what any) string {
	body, err := json.Marshal(what)
	if err != nil {
		panic(err) // plain values always marshal
	}
	return base64.RawURLEncoding.EncodeToString(append(s.sign(body), body...))
}

func (s *Service) sign(body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write(body)
	return m.Sum(nil)
}

// open reads what a token of seal holds; false: it is none.
func (s *Service) open(token string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) <= sha256.Size {
		return false
	}
	body := raw[sha256.Size:]
	return hmac.Equal(raw[:sha256.Size], s.sign(body)) && json.Unmarshal(body, into) == nil
}

func badToken() error {
	return fault.InvalidFields(fault.Field{Pointer: "/preview_token", Code: "bad_token", Message: "This is not the token of a preview of this."})
}

func (s *Service) readToken(tenant, subscription uuid.UUID, token string) (pinned, error) {
	var t pinned
	if !s.open(token, &t) || t.Tenant != tenant || t.Subscription != subscription {
		return t, badToken()
	}
	return t, nil
}
