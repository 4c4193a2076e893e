package usage

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
)

// Result is how a call ended, as the surface saw it.
type Result struct {
	Outcome      Outcome
	Tokens       limits.Tokens
	Units        int64
	Estimated    string // why Tokens are not the provider's own, or ""
	ModelServed  string
	Attempts     []Attempt // the last one; those before it are Move's
	SelfReported bool
	Cost         *money.Pico // what the provider charges; nil: not known
	CostCurrency string
	// ProviderStatus is what the caller says that its provider answered; 0: it
	// does not say. The event has it as its one attempt.
	ProviderStatus int
}

// Settled is how a call stands after Settle or Cancel.
type Settled struct {
	State  string // settled, cancelled
	First  bool   // this call decided it; otherwise it stood already
	Late   bool   // it had expired: a correction was written
	Event  Event  // its terminal event
	Actual limits.Cost
	Limits []limits.State
}

// Settle ends an admitted call: the engine's ledgers take the actual figures,
// and its terminal event is in the spool when Settle returns. The same result
// again answers alike and changes nothing; another is a Conflict
// (reservation_settled). NotFound is an id that is unknown, another tenant's or
// forgotten.
func (m *Meter) Settle(ctx context.Context, tenant, call uuid.UUID, r Result) (Settled, error) {
	return m.end(ctx, tenant, call, ending{Result: r}, func(c *metered) (limits.Outcome, error) {
		return m.limiter.Settle(ctx, tenant, call, limits.Settlement{Actual: c.admission.actual(r)})
	})
}

// Cancel ends an admitted call that never left for a provider: everything is
// given back, the request too. Otherwise it is as Settle.
func (m *Meter) Cancel(ctx context.Context, tenant, call uuid.UUID) (Settled, error) {
	return m.end(ctx, tenant, call, ending{Result: Result{Outcome: Aborted}, Cancelled: true}, func(*metered) (limits.Outcome, error) {
		return m.limiter.Cancel(ctx, tenant, call)
	})
}

func (m *Meter) end(ctx context.Context, tenant, call uuid.UUID, how ending, decide func(*metered) (limits.Outcome, error)) (Settled, error) {
	r := how.Result
	c, err := m.known(ctx, tenant, call)
	if err != nil {
		return Settled{}, err
	}
	if c, err = m.enter(c); err != nil {
		return Settled{}, err
	}
	defer c.mu.Unlock()
	if m.shared != nil && !c.admission.Decision && c.event == nil {
		_ = m.spool.ending(tenant, call, how) // Finish says what is wrong with the spool
	}
	o, err := decide(c)
	if fault.Is(err, fault.NotFound) { // the engine has forgotten it; the event has not
		if c.ended() {
			return c.again(r)
		}
		if err := m.limiter.Recall(ctx, c.admission.Reservation); err != nil {
			return Settled{}, err
		}
		o, err = decide(c)
	}
	if err != nil {
		return Settled{}, err
	}
	if !o.First && !c.ended() && m.shared != nil && c.admission.Decision {
		return m.endedElsewhere(ctx, c, o, r)
	}
	if !o.First {
		s, err := c.again(r)
		s.Limits = o.States
		return s, err
	}
	return m.ends(c, o, r), nil
}

// ends writes the event of a call that has just ended. The call is locked.
func (m *Meter) ends(c *metered, o limits.Outcome, r Result) Settled {
	if o.Late {
		m.expire(c, m.now())
	}
	e := c.terminal(o, r, m.now())
	c.state, c.late, c.actual, c.result = o.State, o.Late, o.Actual, r
	c.event = &e
	m.finish(&e)
	m.retire(c)
	return Settled{State: o.State, First: true, Late: o.Late, Event: e, Actual: o.Actual, Limits: o.States}
}

// known is a call that this process admitted, or that the books or the engine know
// of. NotFound is an id that is unknown, another tenant's, or no reservation.
func (m *Meter) known(ctx context.Context, tenant, call uuid.UUID) (*metered, error) {
	m.mu.Lock()
	c := m.calls[call]
	m.mu.Unlock()
	if c != nil && c.admission.Event.Tenant == tenant {
		return c, nil
	}
	return m.recalled(ctx, tenant, call)
}

// actual is what a call took, for the limits engine: with its price where a
// limit counts money.
func (a Admission) actual(r Result) limits.Cost {
	c := limits.Cost{Units: r.Units, Tokens: r.Tokens}
	if a.spends() {
		c.Requests = a.Reservation.Estimate.Requests
		c.ChargePico = chargePico(a.Rates, c, a.Event.Test)
	}
	return c
}

func (a Admission) spends() bool {
	return slices.ContainsFunc(a.Reservation.Holds, func(h limits.Hold) bool { return h.Limit.Dimension == limits.DimensionSpend })
}

// ended tells whether the call has an outcome of its own, not just an expiry.
func (c *metered) ended() bool { return c.state != "" }

// again is the answer to an outcome that comes after one that stands.
func (c *metered) again(r Result) (Settled, error) {
	if r.Outcome != c.result.Outcome || r.Tokens != c.result.Tokens || r.Units != c.result.Units {
		return Settled{}, alreadySettled()
	}
	return Settled{State: c.state, Late: c.late, Event: *c.event, Actual: c.actual}, nil
}

func alreadySettled() error {
	return fault.New(fault.Conflict, "reservation_settled", "This reservation has an outcome already, and it is another one.")
}

// terminal is the call's event: the draft with what was learned, or the
// correction of the event that said expired.
func (c *metered) terminal(o limits.Outcome, r Result, now time.Time) Event {
	e := c.admission.Event
	e.EndedAt, e.Outcome, e.Estimated = now.UTC().Truncate(time.Microsecond), r.Outcome, r.Estimated
	e.Requests, e.Tokens, e.Units = o.Actual.Requests, o.Actual.Tokens, o.Actual.Units
	e.Charges, e.SelfReported = o.Charges, r.SelfReported
	e.Cost, e.CostCurrency = r.Cost, r.CostCurrency
	e = e.served(r)
	e = e.Priced(c.admission.Rates)
	if o.Late {
		e = e.correcting(*c.event)
	}
	return e
}

// served takes over which provider and model answered.
func (e Event) served(r Result) Event {
	if r.ModelServed != "" {
		e.ModelServed = r.ModelServed
	}
	e.Attempts = append(slices.Clip(e.Attempts), r.Attempts...)
	if r.ProviderStatus != 0 {
		e.Attempts = []Attempt{{ProviderKey: e.ProviderKey, Model: e.ModelAsked, Status: r.ProviderStatus, StartedAt: e.StartedAt, EndedAt: e.EndedAt, Tokens: e.Tokens}}
	}
	if n := len(r.Attempts); n > 0 {
		e.ProviderKey = r.Attempts[n-1].ProviderKey
	}
	return e
}

// Priced states what the customer pays: nothing for a test call, and nothing
// for a call that the provider did not serve beyond what it used.
func (e Event) Priced(rates []Rate) Event {
	e.Charge, e.Prices = money.Pico{}, nil
	if !e.Test {
		e.Charge, e.Prices = Charge(rates, limits.Cost{Requests: e.Requests, Units: e.Units, Tokens: e.Tokens})
	}
	return e
}

// correcting turns e into the signed differences to an event that stands. Its
// id follows from that event's, so there can be only one.
func (e Event) correcting(was Event) Event {
	e.ID, e.Corrects, e.Settled, e.Outcome = correctionID(was.ID), was.ID, e.Outcome, Correction
	e.Requests -= was.Requests
	e.Units -= was.Units
	e.Tokens = limits.Tokens{
		Input: e.Tokens.Input - was.Tokens.Input, CachedInput: e.Tokens.CachedInput - was.Tokens.CachedInput,
		CacheWrite: e.Tokens.CacheWrite - was.Tokens.CacheWrite, Output: e.Tokens.Output - was.Tokens.Output,
		Reasoning: e.Tokens.Reasoning - was.Tokens.Reasoning,
	}
	e.Charge = e.Charge.Sub(was.Charge)
	return e
}

// correctionID keeps the time of the id, and so its partition.
func correctionID(of uuid.UUID) uuid.UUID {
	u := uuid.NewSHA1(of, []byte("correction"))
	copy(u[:6], of[:6])
	u[6] = u[6]&0x0f | 0x70
	return u
}

// Owner is the customer of a reservation. NotFound is an id that is unknown,
// another tenant's, or no reservation.
func (m *Meter) Owner(ctx context.Context, tenant, call uuid.UUID) (customer uuid.UUID, err error) {
	c, err := m.known(ctx, tenant, call)
	switch {
	case err != nil:
		return uuid.Nil, err
	case !c.admission.Decision: // a call of the gateway, which ends it
		return uuid.Nil, noReservation()
	}
	return c.admission.Event.Customer, nil
}

// Extend moves the end of an open reservation to until, never nearer, and
// returns when it ends now.
func (m *Meter) Extend(ctx context.Context, tenant, call uuid.UUID, until time.Time) (time.Time, error) {
	c, err := m.known(ctx, tenant, call)
	if err != nil {
		return time.Time{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := m.limiter.Extend(ctx, tenant, call, until); err != nil {
		return time.Time{}, err
	}
	if !until.After(c.until) {
		return c.until, nil
	}
	if c.until = until; !c.written {
		return until, nil
	}
	return until, m.spool.Extend(call, until)
}

// retire forgets a call that nobody will ask about; a reservation of the
// decision API is remembered for a while.
func (m *Meter) retire(c *metered) {
	if c.admission.Decision {
		m.forgetLater(c)
		return
	}
	m.mu.Lock()
	delete(m.calls, c.admission.Event.ID)
	m.mu.Unlock()
}

// forgetLater keeps an outcome as long as the engine does: an hour past the
// latest expiry that Extend can have set.
func (m *Meter) forgetLater(c *metered) {
	m.mu.Lock()
	c.forgetAt = c.admission.Reservation.ExpiresAt.Add(limits.MaxTTL + time.Hour)
	m.mu.Unlock()
}

// finish puts an event into the spool; while that cannot be written, the event
// waits in memory. An event that the spool refuses for itself is a defect.
func (m *Meter) finish(e *Event) {
	err := m.spool.Finish(e)
	switch {
	case err == nil:
	case fault.Is(err, fault.Unavailable):
		m.mu.Lock()
		m.backlog = append(m.backlog, e)
		m.mu.Unlock()
	default:
		m.log.Error("event not written", "event", e.ID, "outcome", e.Outcome, "error", err)
	}
}

// pastEvents finds the terminal event of a call that this process has
// forgotten, or never knew.
type pastEvents interface {
	EventByID(ctx context.Context, tenant, event uuid.UUID) (Event, error)
}

// recalled is a reservation that this process does not know, from the books:
// with its outcome, or expired, so that a late one still corrects it. NotFound
// is an id that is unknown, another tenant's, or no reservation.
func (m *Meter) recalled(ctx context.Context, tenant, call uuid.UUID) (*metered, error) {
	e, err := m.past.EventByID(ctx, tenant, call)
	if fault.Is(err, fault.NotFound) {
		return m.elsewhere(ctx, tenant, call)
	}
	if err != nil {
		return nil, err
	}
	if e.Kind != KindDecision {
		return nil, noReservation()
	}
	c := &metered{admission: Admission{Event: e, Decision: true}, event: &e}
	if e.Outcome != Expired {
		c.remember(e, false)
		return c, nil
	}
	correction, err := m.past.EventByID(ctx, tenant, correctionID(e.ID))
	switch {
	case err == nil:
		c.event = &correction
		c.remember(e.plus(correction), true)
		return c, nil
	case !fault.Is(err, fault.NotFound):
		return nil, err
	case m.endedBefore(correctionID(e.ID)): // in the spool, and not in the books yet
		return nil, beingStored()
	case e.Unsettled == nil || !m.now().Before(e.Unsettled.Reservation.ExpiresAt.Add(limits.MaxTTL+time.Hour)):
		return nil, fault.New(fault.Conflict, "reservation_expired", "This reservation expired too long ago to be settled.")
	}
	return m.recall(ctx, c)
}

// endedBefore tells whether an earlier life of this process wrote an event.
func (m *Meter) endedBefore(event uuid.UUID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tail[event]
}

// recall makes an expired reservation of an earlier life known again, to the
// engine and here.
func (m *Meter) recall(ctx context.Context, c *metered) (*metered, error) {
	c.admission.Reservation, c.admission.Rates = c.event.Unsettled.Reservation, c.event.Unsettled.Rates
	c.admission.Event.Unsettled = nil
	if err := m.limiter.Recall(ctx, c.admission.Reservation); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.calls[c.admission.Event.ID]; known != nil {
		return known, nil // two at once
	}
	c.forgetAt = c.admission.Reservation.ExpiresAt.Add(limits.MaxTTL + time.Hour)
	m.calls[c.admission.Event.ID] = c
	return c, nil
}

// remember fills in the outcome that an event states.
func (c *metered) remember(e Event, late bool) {
	c.state, c.late = limits.StateSettled, late
	if e.Requests == 0 {
		c.state = limits.StateCancelled
	}
	c.actual = limits.Cost{Requests: e.Requests, Units: e.Units, Tokens: e.Tokens}
	c.result = Result{Outcome: e.Outcome, Tokens: e.Tokens, Units: e.Units}
}

// plus is an event with its correction: what really happened. The correction
// says how the call ended.
func (e Event) plus(c Event) Event {
	e.Requests += c.Requests
	e.Units += c.Units
	e.Tokens = limits.Tokens{
		Input: e.Tokens.Input + c.Tokens.Input, CachedInput: e.Tokens.CachedInput + c.Tokens.CachedInput,
		CacheWrite: e.Tokens.CacheWrite + c.Tokens.CacheWrite, Output: e.Tokens.Output + c.Tokens.Output,
		Reasoning: e.Tokens.Reasoning + c.Tokens.Reasoning,
	}
	e.Outcome = c.Settled
	return e
}

// unknown is the answer to an id that is in no books. One that ended just before
// a restart will be there in a moment.
func (m *Meter) unknown(call uuid.UUID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tail[call] {
		return beingStored()
	}
	return noReservation()
}

func noReservation() error {
	return fault.New(fault.NotFound, "reservation_not_found", "There is no such reservation.")
}
