package limits

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Request asks for one call. Plan holds the limits of tenant, customer, key,
// client token and end user; of the candidates, in order, the first that fits is
// charged together with it. Both are filtered by their models, the plan with
// Model, a candidate with its own. Limits of a plan that count what the provider
// charges are the candidate's part.
type Request struct {
	Tenant     uuid.UUID
	ID         uuid.UUID // of the reservation; zero: a UUIDv7 made at Decision.At
	Customer   uuid.UUID // whose waiting calls are counted together
	Model      string    // as asked for
	EndUser    string    // as the caller states it; those who state none count as one
	Plan       []*Set
	Candidates []Candidate // none: the plan alone decides
	Estimate   Cost
	TTL        time.Duration // 0: 10 minutes; at most 60 minutes
	MaxWait    time.Duration // how long it may wait for room instead of being refused
	RouteWait  time.Duration // of it, for a candidate's; 0: all of it
	Renew      Renew         // nil: Plan holds however long the call waits
	DryRun     bool          // decide only: nothing is charged or kept
	Forget     bool          // keep no outcome once settled: nobody will ask again
	Once       Once
}

// Renew is asked before each decision on a call that has waited: what its Plan is
// now. An error ends the wait, and is its answer.
type Renew func(context.Context) ([]*Set, error)

// Once names a request that may come again, by hashes: the key that its caller
// gave it, and what it asks for. The zero Key names none. A key lives as long as
// its reservation is known, an hour past its end; one that was cancelled frees
// its key.
type Once struct {
	Key  uuid.UUID `json:"key,omitzero"`
	Body uuid.UUID `json:"body,omitzero"`
}

// Candidate is a provider key and the model that it would serve.
type Candidate struct {
	ProviderKey  uuid.UUID
	Model        string
	Limits       *Set
	ProviderPico int64 // what this provider would charge for the estimate
}

// Next is the next attempt of an admitted call, on another provider key.
type Next struct {
	Tenant, ID uuid.UUID
	Attempt    int        // the number of the one that has ended; the first is 0
	Ended      Settlement // what that took of its provider
	Plan       []*Set     // as for Reserve: only what counts the provider's price is looked at
	Candidates []Candidate
	EndUser    string
}

// Decision is the verdict on a Request.
//
// States are the ledgers that the call touches, after the decision: the plan's,
// then those of the candidate that was charged. Violations are the ledgers that
// refuse: the plan's, or where the plan has room, those of the candidate that
// would fit soonest. RetryAfter is the exact time until this very call would
// pass if nobody else called; it is 0 where TooLarge says that none can help.
type Decision struct {
	Admitted     bool
	Again        bool      // it stood already: this is an answer given before
	Candidate    int       // index in Request.Candidates; -1: none charged
	At           time.Time // the one instant that decides id, day and windows
	ExpiresAt    time.Time
	Reservation  Reservation // zero unless admitted and kept
	States       []State
	Violations   []State
	RetryAfter   time.Duration
	TooLarge     bool // some ledger can never hold it, such as one with the amount 0
	ProviderFull bool // the plan has room, no candidate has
}

// Binding is the refusing ledger that decides a refusal: one that can never
// admit the call, else the one with the longest wait. The decision refused.
func (d Decision) Binding() State {
	best := d.Violations[0]
	for _, v := range d.Violations {
		if v.Never && !best.Never || v.Never == best.Never && v.RetryAfter > best.RetryAfter {
			best = v
		}
	}
	return best
}

// State is one ledger at an instant. But for a gauge, Used + Held + Remaining −
// Debt is the ceiling. Spend is in micro-units, what is used rounded up.
type State struct {
	Limit         Limit
	Ledger        string
	Used          int64         // without what is held
	Held          int64         // what open calls were charged (of bucket and sliding: as far as it still counts)
	Remaining     int64         // what the next call may take, never below 0
	Debt          int64         // what settlements took beyond the ceiling
	Requested     int64         // what this call asks of it
	WindowStart   time.Time     // calendar only
	ResetAt       time.Time     // bucket and sliding: nothing is used any more; calendar: the window's end; gauge: zero
	Full          time.Duration // until ResetAt
	RetryAfter    time.Duration // until this call fits; 0: it does, or never will
	Never         bool          // this call can never fit
	Refuses       bool          // this call does not fit now
	Degraded      bool          // Redis is out: what remains is this process's part of what it last saw
	NextCallAfter time.Duration // until a call of the smallest cost fits (Live)
}

// Hold is what a reservation charged to one ledger.
type Hold struct {
	Limit       Limit     `json:"limit"`
	Ledger      string    `json:"ledger"`
	Amount      int64     `json:"amount"`
	Pico        int64     `json:"pico,omitempty"`        // of money, beyond the micro-units of Amount
	WindowStart time.Time `json:"window_start,omitzero"` // calendar only
	WindowEnd   time.Time `json:"window_end,omitzero"`   // calendar only
	Candidate   bool      `json:"candidate,omitempty"`   // the provider's part
	Ended       bool      `json:"ended,omitempty"`       // of an attempt that is over: the amount is what it was
}

// Reservation is an admitted call: every ledger charged, the outcome not yet
// known. It is what Restore takes back.
type Reservation struct {
	ID        uuid.UUID `json:"id"`
	Tenant    uuid.UUID `json:"tenant"`
	Model     string    `json:"model,omitempty"`
	At        time.Time `json:"at"`
	ExpiresAt time.Time `json:"expires_at"`
	Estimate  Cost      `json:"estimate"`
	Holds     []Hold    `json:"holds"`
	Moves     int       `json:"moves,omitempty"` // attempts that have ended
	Once      Once      `json:"once,omitzero"`
}

// Charge is an amount that an event adds to a calendar window in the books:
// of money in micro-units, and the pico-units beyond them.
type Charge struct {
	Ledger      string    `json:"ledger"`
	WindowStart time.Time `json:"window_start"`
	Amount      int64     `json:"amount"`
	Pico        int64     `json:"pico,omitempty"`
}

// Charges is what the reservation charged to calendar windows: what stays in
// the books when it expires.
func (r Reservation) Charges() []Charge {
	var charges []Charge
	for _, h := range r.Holds {
		if !h.WindowStart.IsZero() {
			charges = append(charges, Charge{h.Ledger, h.WindowStart, h.Amount, h.Pico})
		}
	}
	return charges
}

// ChargesAt is Charges had the call been what c says from the start.
func (r Reservation) ChargesAt(c Cost) []Charge {
	charges := r.Charges()
	i := 0
	for _, h := range r.Holds {
		if h.WindowStart.IsZero() {
			continue
		}
		if !h.Ended {
			charges[i].Amount, charges[i].Pico = h.Limit.Cost(c), h.Limit.Pico(c)
		}
		i++
	}
	return charges
}

// EndAttempt is the reservation after a move to no candidate: its attempt has
// ended, and what that took stays charged.
func (r Reservation) EndAttempt(s Settlement) Reservation {
	s.Actual.Requests = r.Estimate.Requests
	if s.GiveBackRequest {
		s.Actual.Requests = 0
	}
	r.Holds = slices.Clone(r.Holds)
	for i := range r.Holds {
		if h := &r.Holds[i]; h.Candidate && !h.Ended {
			h.Amount, h.Pico, h.Ended = h.Limit.Cost(s.Actual), h.Limit.Pico(s.Actual), true
		}
	}
	r.Moves++
	return r
}

// Settlement is what a call really was. Its requests stay as reserved, whatever
// Actual.Requests says, unless GiveBackRequest.
type Settlement struct {
	Actual          Cost
	GiveBackRequest bool
}

// The states that an outcome can be in.
const (
	StateSettled   = "settled"
	StateCancelled = "cancelled"
	StateExpired   = "expired"
)

// Outcome is how a reservation ended. Charges are what its event adds to the
// books: the actual amounts, or where Late, the signed differences from what
// stayed charged when it expired.
type Outcome struct {
	State   string
	First   bool // this call decided it; false: it stood already
	Late    bool // it had expired before
	Actual  Cost
	Charges []Charge
	States  []State // now; of ledgers that are still kept
}
