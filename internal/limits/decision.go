package limits

import (
	"time"

	"github.com/google/uuid"
)

// Request asks for one call. Plan holds the limits of tenant, customer and key;
// of the candidates, in order, the first that fits is charged together with it.
// Both are filtered by Applies, the plan with Model, a candidate with its own.
type Request struct {
	Tenant     uuid.UUID
	ID         uuid.UUID // of the reservation; zero: a UUIDv7 made at Decision.At
	Model      string    // as asked for
	Plan       []Limit
	Candidates []Candidate // none: the plan alone decides
	Estimate   Cost
	TTL        time.Duration // 0: 10 minutes; at most 60 minutes
	DryRun     bool          // decide only: nothing is charged or kept
	Forget     bool          // keep no outcome once settled: nobody will ask again
}

// Candidate is a provider key and the model that it would serve.
type Candidate struct {
	ProviderKey uuid.UUID
	Model       string
	Limits      []Limit
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

// State is one ledger at an instant. For a bucket and a calendar window
// Used + Held + Remaining − Debt is the ceiling.
type State struct {
	Limit         Limit
	Ledger        string
	Used          int64         // without what is held
	Held          int64         // what open calls were charged (of a bucket: as far as it has not refilled)
	Remaining     int64         // what the next call may take, never below 0
	Debt          int64         // what settlements took beyond the ceiling
	Requested     int64         // what this call asks of it
	WindowStart   time.Time     // calendar only
	ResetAt       time.Time     // bucket: full again; calendar: the window's end; gauge: zero
	Full          time.Duration // until ResetAt
	RetryAfter    time.Duration // until this call fits; 0: it does, or never will
	Never         bool          // this call can never fit
	NextCallAfter time.Duration // until a call of the smallest cost fits (Live)
}

// Hold is what a reservation charged to one ledger.
type Hold struct {
	Limit       Limit     `json:"limit"`
	Ledger      string    `json:"ledger"`
	Amount      int64     `json:"amount"`
	WindowStart time.Time `json:"window_start,omitzero"` // calendar only
	WindowEnd   time.Time `json:"window_end,omitzero"`   // calendar only
	Candidate   bool      `json:"candidate,omitempty"`   // the provider's part
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
}

// Charge is an amount that an event adds to a calendar window in the books.
type Charge struct {
	Ledger      string    `json:"ledger"`
	WindowStart time.Time `json:"window_start"`
	Amount      int64     `json:"amount"`
}

// Charges is what the reservation charged to calendar windows: what stays in
// the books when it expires.
func (r Reservation) Charges() []Charge {
	var charges []Charge
	for _, h := range r.Holds {
		if !h.WindowStart.IsZero() {
			charges = append(charges, Charge{h.Ledger, h.WindowStart, h.Amount})
		}
	}
	return charges
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
	State       string
	First       bool // this call decided it; false: it stood already
	Late        bool // it had expired before
	Actual      Cost
	Charges     []Charge
	States      []State // now; of ledgers that are still kept
	Reservation Reservation
}
