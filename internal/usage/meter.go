package usage

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// Limiter is the limits engine, whatever keeps its ledgers.
type Limiter interface {
	Reserve(context.Context, limits.Request) (limits.Decision, error)
	Settle(ctx context.Context, tenant, id uuid.UUID, s limits.Settlement) (limits.Outcome, error)
	Cancel(ctx context.Context, tenant, id uuid.UUID) (limits.Outcome, error)
	Move(context.Context, limits.Next) (limits.Decision, error)
	Extend(ctx context.Context, tenant, id uuid.UUID, until time.Time) error
	Expire(now time.Time) []limits.Reservation
	Restore(context.Context, []limits.Reservation) error
	Recall(context.Context, limits.Reservation) error
}

// Meter ties the limits engine to the spool: a call that the engine admits has
// an admission record before it goes out, and exactly one terminal event after;
// whoever ends it first in the engine writes the event. It is safe for
// concurrent use.
type Meter struct {
	limiter Limiter
	shared  *limits.Redis // the limiter, where other processes share it; or nil
	spool   *Spool
	past    pastEvents
	log     *slog.Logger
	now     func() time.Time
	storms  storms

	mu      sync.Mutex
	calls   map[uuid.UUID]*metered
	tail    map[uuid.UUID]bool // ended before the start, perhaps not in the books yet
	early   []lapsed           // not known, or not yet
	backlog []*Event           // finished while the spool could not be written
}

// metered is one admitted call that is open, or whose outcome is remembered.
type metered struct {
	mu        sync.Mutex // one outcome at a time
	admission Admission
	plan      []*limits.Set // what a move looks at: of the plan, what counts money
	event     *Event        // nil while open
	result    Result
	state     string // settled or cancelled, once it has an outcome
	late      bool
	actual    limits.Cost
	until     time.Time // when it expires, as last extended
	written   bool      // its admission is in this spool
	foreign   bool      // another process admitted it
	forgetAt  time.Time // guarded by the meter's lock
	checkAt   time.Time // when to ask whether another process ended it; as forgetAt
}

// Call is what a surface asks to have admitted.
type Call struct {
	RequestID                           uuid.UUID
	Tenant                              uuid.UUID
	Zones                               limits.Zones // of the tenant's days
	Customer, Subscription, PlanVersion uuid.UUID
	Key, Counter                        uuid.UUID
	Kind                                string // chat, decision, …
	Model                               string // as asked for
	Stream                              bool
	EndUser                             string
	Tags                                map[string]string
	Test                                bool // never billed
	Currency                            string
	Rates                               []Rate
	Plan                                []*limits.Set
	Candidates                          []limits.Candidate
	Estimate                            limits.Cost
	Guess                               int64 // of the input, before what was learned corrected it
	TTL                                 time.Duration
	MaxWait                             time.Duration // for room, instead of a refusal
	RouteWait                           time.Duration // of it, for a candidate's; 0: all of it
	Renew                               limits.Renew  // what the plan is after a wait
	DryRun                              bool
	Once                                limits.Once // a request that may come again
	Decision                            bool        // of the decision API: outlives this process
}

// NewMeter makes a meter.
func NewMeter(l Limiter, s *Spool, past pastEvents, log *slog.Logger, now func() time.Time) *Meter {
	shared, _ := l.(*limits.Redis)
	return &Meter{limiter: l, shared: shared, spool: s, past: past, log: log, now: now, calls: map[uuid.UUID]*metered{}}
}

// maxBacklog is how many ended calls wait in memory for an unwritable spool
// before new calls are refused.
const maxBacklog = 10_000

// Admit decides a call. Where the decision is to admit, the call's admission is
// in the spool when Admit returns, and Settle or Cancel must follow. A refusal
// is recorded as an event, in a storm as part of one, and is no error. An error (limiter_unavailable,
// metering_unavailable, invalid counts) left every ledger as it was.
func (m *Meter) Admit(ctx context.Context, c Call) (limits.Decision, error) {
	if err := m.room(); err != nil {
		return limits.Decision{}, err
	}
	if c.Renew != nil || slices.ContainsFunc(c.Plan, (*limits.Set).Spends) {
		c.Estimate.ChargePico = chargePico(c.Rates, c.Estimate, c.Test)
	}
	renew, renewed := remembering(c.Renew)
	d, err := m.limiter.Reserve(ctx, limits.Request{
		Tenant: c.Tenant, Customer: c.Customer, Model: c.Model, EndUser: c.EndUser, Plan: c.Plan, Candidates: c.Candidates, Estimate: c.Estimate,
		TTL: c.TTL, MaxWait: c.MaxWait, RouteWait: c.RouteWait, Renew: renew, DryRun: c.DryRun, Forget: !c.Decision, Once: c.Once,
	})
	if err != nil || c.DryRun {
		return d, err
	}
	if d.Again {
		return m.admittedBefore(d)
	}
	if !d.Admitted {
		m.refuse(c.refused(d))
		return d, nil
	}
	admitted := &metered{
		admission: Admission{Event: c.draft(d), Reservation: d.Reservation, Rates: c.Rates, Decision: c.Decision},
		plan:      c.spending(renewed), until: d.ExpiresAt, written: true,
	}
	if err := m.spool.Admit(&admitted.admission); err != nil {
		_, _ = m.limiter.Cancel(ctx, c.Tenant, d.Reservation.ID) // it was reserved a moment ago
		return limits.Decision{}, err
	}
	m.mu.Lock()
	m.calls[d.Reservation.ID] = admitted
	m.mu.Unlock()
	m.share(ctx, admitted.admission)
	return d, nil
}

// writing is how long an admission may be between the engine and the spool.
const writing = 5 * time.Second

// admittedBefore is the decision on a request that came again: it has its
// admission already. While that is being written, the answer is a Conflict
// idempotency_in_flight.
func (m *Meter) admittedBefore(d limits.Decision) (limits.Decision, error) {
	m.mu.Lock()
	known := m.calls[d.Reservation.ID] != nil
	m.mu.Unlock()
	if !known && m.now().Sub(d.At) < writing { // later it is another process's
		return limits.Decision{}, fault.New(fault.Conflict, "idempotency_in_flight", "The same reservation is being made right now. Send it again in a second.").After(time.Second)
	}
	return d, nil
}

func (m *Meter) room() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.backlog) < maxBacklog {
		return nil
	}
	return fault.New(fault.Unavailable, "metering_unavailable", "Calls cannot be recorded right now, so none is let through. Try again in a few seconds.").After(5 * time.Second)
}

// draft is the event of an admitted call as it stands if nothing more is
// learned.
func (c Call) draft(d limits.Decision) Event {
	e := c.event(d)
	e.ID = d.Reservation.ID
	e.Outcome, e.Requests, e.Estimated = Expired, c.Estimate.Requests, "expired"
	e.Tokens, e.Units = c.Estimate.Tokens, c.Estimate.Units
	e.Charges = d.Reservation.Charges()
	if d.Candidate >= 0 {
		e.ProviderKey, e.ModelServed = c.Candidates[d.Candidate].ProviderKey, c.Candidates[d.Candidate].Model
	}
	return e
}

// refused is the event of a call that was not admitted.
func (c Call) refused(d limits.Decision) *Event {
	e := c.event(d)
	e.ID = id.At(d.At)
	e = e.Refusing(d)
	return &e
}

func (c Call) event(d limits.Decision) Event {
	at := d.At.UTC()
	day, _, _ := c.Zones.Day(at)
	return Event{
		Version: version, RequestID: c.RequestID, Tenant: c.Tenant, Customer: c.Customer, Subscription: c.Subscription,
		PlanVersion: c.PlanVersion, Key: c.Key, Counter: c.Counter, EndUser: c.EndUser, Tags: c.Tags,
		ModelAsked: c.Model, Kind: c.Kind, Stream: c.Stream, StartedAt: at, EndedAt: at, LocalDay: day,
		Estimate: c.Estimate, Guess: c.Guess, Currency: c.Currency, Test: c.Test,
	}
}

// RefusalCode is the stable code of a refusal, by the ledger that decides it:
// request_too_large, provider_capacity, concurrency_limit_exceeded,
// daily_cap_reached, spend_cap_reached, or rate_limit_exceeded.
func RefusalCode(d limits.Decision) string {
	binding := d.Binding().Limit
	switch {
	case d.TooLarge:
		return "request_too_large"
	case d.ProviderFull:
		return "provider_capacity"
	case binding.Dimension == limits.DimensionConcurrency:
		return "concurrency_limit_exceeded"
	case binding.Dimension == limits.DimensionSpend:
		return "spend_cap_reached"
	case binding.Policy == limits.PolicyCalendar:
		return "daily_cap_reached"
	}
	return "rate_limit_exceeded"
}
