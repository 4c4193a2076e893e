package quotes

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
)

// Status is where a quote stands.
type Status string

// The states of a quote.
const (
	Draft     Status = "draft"
	Sent      Status = "sent"
	Viewed    Status = "viewed"
	Accepted  Status = "accepted"
	Declined  Status = "declined"
	Expired   Status = "expired"
	Withdrawn Status = "withdrawn"
)

// Statuses lists them in the order of a quote's life.
var Statuses = []Status{Draft, Sent, Viewed, Accepted, Declined, Expired, Withdrawn}

// Open tells whether the quote can be accepted as it stands.
func (s Status) Open() bool { return s == Sent || s == Viewed }

// Recipient is whom a quote is for.
type Recipient struct {
	Name    string
	Email   string
	Company string // "" a person
}

// Called is the name that the customer gets.
func (r Recipient) Called() string {
	if r.Company != "" {
		return r.Company
	}
	return r.Name
}

// Quote is an offer to one customer, with the version that counts: the one that
// is out, or was last; of a quote that never was sent, the draft.
type Quote struct {
	ID        uuid.UUID
	Number    string // Q-2026-041: unique in the tenant
	Status    Status // by the clock: one whose time is over reads expired
	Customer  uuid.UUID
	To        Recipient
	CreatedAt time.Time
	Version
	NextDraft int // the version that is being revised beside it; 0: none
}

// Version is what a quote offers, and what came of it.
type Version struct {
	Number     int
	Offer      Offer
	SentAt     *time.Time
	ViewedAt   *time.Time
	Views      int64
	DecidedAt  *time.Time
	DecidedBy  Recipient // who accepted or declined
	DeclinedBy string    // the reason that was given; "" none
	Result     Result    // of accepting
}

// Offer is the part that a draft may change.
type Offer struct {
	Plan         string // its name
	PlanID       uuid.UUID
	OwnTerms     bool // of this quote alone, made from the plan
	Terms        billing.Version
	Volumes      []Volume // of a month, as stated; they promise nothing
	Note         string
	ValidUntil   time.Time
	RatioPercent *int64 // what was sold in percent of what the keys could carry, when it was sent; nil: no key limits anything
	Reason       string // why it was sent over the tenant's ceiling
}

// Result is what accepting made.
type Result struct {
	Customer     uuid.UUID
	Subscription uuid.UUID
	APIKey       uuid.UUID // zero: the customer had one
}

// VersionRef is a version of a quote in its list.
type VersionRef struct {
	Number int
	State  string // draft, out, superseded
	SentAt *time.Time
}

func number(year, sequence int) string { return fmt.Sprintf("Q-%d-%03d", year, sequence) }

// statusAt is what a stored status is by the clock.
func statusAt(s Status, validUntil, now time.Time) Status {
	if s.Open() && !now.Before(validUntil) {
		return Expired
	}
	return s
}
