package usage

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/money"
)

// Outcome says how a call ended. Refusals are "refused_<dimension>_<window>".
type Outcome string

// The outcomes of a call that was not refused.
const (
	OK              Outcome = "ok"
	ClientError     Outcome = "client_error"     // the provider says that the request was wrong
	ProviderError   Outcome = "provider_error"   // 5xx, timeout, cut connection
	ProviderLimited Outcome = "provider_limited" // the provider's own 429
	Aborted         Outcome = "aborted"          // the client left, or cancelled
	Expired         Outcome = "expired"          // nobody settled in time
	Correction      Outcome = "correction"       // signed differences to an expired call
)

const refusedPrefix = "refused_"

// Refused tells whether the call was not admitted.
func (o Outcome) Refused() bool { return strings.HasPrefix(string(o), refusedPrefix) }

// Known tells whether a call can have ended so.
func (o Outcome) Known() bool {
	switch o {
	case OK, ClientError, ProviderError, ProviderLimited, Aborted, Expired, Correction:
		return true
	}
	return o.Refused()
}

// Event is the immutable fact of one call that ended. Its id is minted at
// admission and equals the reservation's; a correction has an id derived from
// the event that it corrects.
//
// Every sum anywhere is a sum of events. Token classes are disjoint (input
// excludes cached and cache writes, output excludes reasoning).
type Event struct {
	Version      int       `json:"v"`
	ID           uuid.UUID `json:"id"`
	RequestID    uuid.UUID `json:"request_id"`
	Tenant       uuid.UUID `json:"tenant"`
	Customer     uuid.UUID `json:"customer,omitzero"`
	Subscription uuid.UUID `json:"subscription,omitzero"`
	PlanVersion  uuid.UUID `json:"plan_version,omitzero"`
	Key          uuid.UUID `json:"key,omitzero"`
	Counter      uuid.UUID `json:"counter,omitzero"` // what a rotated pair of keys shares
	ProviderKey  uuid.UUID `json:"provider_key,omitzero"`

	EndUser string            `json:"end_user,omitzero"`
	Tags    map[string]string `json:"tags,omitzero"`

	ModelAsked  string `json:"model_asked"`
	ModelServed string `json:"model_served,omitzero"`
	Kind        string `json:"kind"` // chat, decision, …
	Stream      bool   `json:"stream,omitzero"`

	StartedAt time.Time `json:"started_at"` // the instant of admission
	EndedAt   time.Time `json:"ended_at"`
	LocalDay  time.Time `json:"local_day"` // first instant of the tenant's day of admission

	Outcome   Outcome       `json:"outcome"`
	Requests  int64         `json:"requests"`         // 1; 0 for refusals and corrections
	Refused   int64         `json:"refused,omitzero"` // how many refusals the row stands for; 0 for every other outcome
	Tokens    limits.Tokens `json:"tokens"`
	Units     int64         `json:"units,omitzero"`
	Estimated string        `json:"estimated,omitzero"` // why the tokens are estimated, or ""
	Estimate  limits.Cost   `json:"estimate"`           // what was reserved
	Guess     int64         `json:"guess,omitzero"`     // of its input, before what was learned corrected it; 0: none was made

	Attempts []Attempt       `json:"attempts,omitzero"`
	Charges  []limits.Charge `json:"charges,omitzero"` // of calendar ledgers, every scope
	Refusal  *Refusal        `json:"refusal,omitzero"`
	// Unsettled is what a late settlement of an expired reservation needs.
	Unsettled *Unsettled `json:"unsettled,omitzero"`

	Charge       money.Pico  `json:"charge_pico"` // what the customer pays
	Currency     string      `json:"currency"`
	Cost         *money.Pico `json:"cost_pico,omitempty"` // what the provider charges; absent: unpriced
	CostCurrency string      `json:"cost_currency,omitzero"`
	Prices       []uuid.UUID `json:"prices,omitzero"` // the price lines that counted

	Test         bool      `json:"test,omitzero"` // practice provider or test key: never billed
	SelfReported bool      `json:"self_reported,omitzero"`
	Corrects     uuid.UUID `json:"corrects,omitzero"`
	Settled      Outcome   `json:"settled,omitzero"` // of a correction: how the call ended

	// Where the event comes from. Finish sets them; they travel beside the body
	// (in the record, in the message), so that a body is the same however often
	// it is sent.
	Instance uuid.UUID `json:"-"`
	Shard    int       `json:"-"`
	Number   int64     `json:"-"` // 1, 2, 3 … per instance and shard
}

// Attempt is one try at a provider.
type Attempt struct {
	Provider    string        `json:"provider"`
	ProviderKey uuid.UUID     `json:"provider_key"`
	Model       string        `json:"model"`
	Status      int           `json:"status"` // 0: no answer
	Error       string        `json:"error,omitzero"`
	StartedAt   time.Time     `json:"started_at"`
	EndedAt     time.Time     `json:"ended_at"`
	Tokens      limits.Tokens `json:"tokens"`
	// Reported is the model that the provider says it served, where that is
	// another one than it was asked for.
	Reported string `json:"reported,omitzero"`
}

// Refusal is why a call was not admitted: the limits that refused it.
type Refusal struct {
	Code       string        `json:"code"`
	RetryAfter time.Duration `json:"retry_after_ns,omitzero"`
	Limits     []Refusing    `json:"limits"`
}

// Refusing is one limit that said no, with the figures of that instant.
type Refusing struct {
	Limit     limits.Limit `json:"limit"`
	Used      int64        `json:"used"`
	Remaining int64        `json:"remaining"`
	Requested int64        `json:"requested"`
	ResetAt   time.Time    `json:"reset_at,omitzero"`
	// What the rate headers say of it beside the figures.
	WindowStart time.Time     `json:"window_start,omitzero"` // calendar
	Full        time.Duration `json:"full_ns,omitzero"`
	RetryAfter  time.Duration `json:"retry_after_ns,omitzero"`
}

// Unsettled is an expired reservation that may still be settled.
type Unsettled struct {
	Reservation limits.Reservation `json:"reservation"`
	Rates       []Rate             `json:"rates,omitzero"`
}

// Admission is what the spool keeps of a call from before it goes out: enough
// to write its terminal event if the process dies.
type Admission struct {
	// Event is the event as it will be when nothing more is learned: expired,
	// with the charges of the estimate.
	Event       Event              `json:"event"`
	Reservation limits.Reservation `json:"reservation"`
	Rates       []Rate             `json:"rates,omitzero"`
	// Decision reservations live on in another process until they expire;
	// a gateway call dies with its process.
	Decision bool `json:"decision,omitzero"`
}

// Shards is how many runs of numbers an instance keeps; a tenant's events all
// go to one.
const Shards = 8

// ShardOf is the shard of a tenant, the same for ever.
func ShardOf(tenant uuid.UUID) int {
	h := uint32(2166136261) // FNV-1a
	for _, b := range tenant {
		h = (h ^ uint32(b)) * 16777619
	}
	return int(h % Shards)
}
