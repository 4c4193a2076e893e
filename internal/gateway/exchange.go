package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/usage"
)

// serve answers a call of any form.
func (s *Server) serve(f *form) func(*caller) error {
	return func(k *caller) error {
		call, err := parse(k.echo, f)
		k.model = call.model
		if err != nil {
			return err
		}
		to, err := s.routesFor(k, call)
		if err != nil {
			return err
		}
		if to.free, err = call.prepare(to.free); err != nil {
			return err
		}
		first := to.free[0]
		asked, counter := call.counters(to.free)
		estimate, guess := call.estimate(k.limits(), s.known(k, first))
		if k.contract.Version.CapOutput {
			estimate.Tokens.Output = call.capOutput(estimate.Tokens.Output)
		}
		d, err := s.admit(k, usage.Call{
			RequestID: k.requestUUID(), Tenant: k.who.Tenant.ID, Zones: k.contract.Tenant.Zones, Customer: k.who.Key.Customer,
			Subscription: k.contract.Subscription, PlanVersion: k.contract.Version.ID, Key: k.who.Key.ID, Counter: k.who.Key.Counter,
			Kind: f.kind, Model: call.model, Stream: call.stream, EndUser: call.endUser, Tags: call.tags,
			Test:     first.Endpoint.Provider.Practice,
			Currency: k.contract.Version.Currency, Rates: billing.RatesFor(k.contract.Version.Prices, call.model),
			Plan: k.who.Plan(k.contract), Candidates: candidates(asked), Estimate: estimate, Guess: guess, TTL: heldFor,
		})
		if err != nil {
			return err
		}
		k.states = d.States
		if !d.Admitted {
			return &refused{d, call.model}
		}
		s.budgets.called(k.who.Tenant.ID, d.At)
		x := &exchange{s: s, k: k, call: call, all: to.all, left: asked, counter: counter, probe: to.probe, reservation: d.Reservation.ID, estimate: estimate, began: d.At}
		if len(asked) == 0 {
			defer x.abandon()
			return x.count(first.model)
		}
		x.take(d)
		if k.mayWait() {
			x.lookAgain()
		}
		return x.run()
	}
}

// counters parts those that count tokens themselves from others, for which they
// are counted here. Of every other call all are asked.
func (call *call) counters(list []candidate) (asked []candidate, counter bool) {
	asked = slices.DeleteFunc(slices.Clone(list), call.counts)
	return asked, len(asked) < len(list)
}

// lookAgain drops provider keys that were removed, switched off or refused while
// the call may have waited. What cools is another matter: a call that tries such
// a key was sent to it on purpose.
func (x *exchange) lookAgain() {
	fresh, _, err := x.s.usable(x.k, x.call)
	if err != nil {
		fresh = nil // none is left
	}
	gone := func(c candidate) bool {
		return !slices.ContainsFunc(fresh, func(o candidate) bool { return o.Key.ID == c.Key.ID && o.model == c.model })
	}
	x.withdrawn, x.left = gone(x.at), slices.DeleteFunc(x.left, gone)
}

// known is what is known of the calls of a caller to a candidate.
func (s *Server) known(k *caller, c candidate) (out known) {
	out.p95, out.factor, _ = s.Estimates.Of(k.who.Tenant.ID, k.who.Key.Counter, k.model)
	if k.contract.Version.CapOutput {
		out.p95 = 0 // answers that end where they usually do would never show that they have become longer
	}
	if book, err := s.Directory.Book(k.ctx, k.who.Tenant.ID); err == nil {
		m, _ := book.Model(c.Vendor.Slug, c.model, s.Now())
		out.usual, out.most = m.DefaultOutput, m.MaxOutput
	}
	return out
}

// exchange is one admitted call with its providers, one after the other. It
// belongs to one goroutine.
type exchange struct {
	s           *Server
	k           *caller
	call        *call
	at          candidate   // the one that serves it now
	left        []candidate // not tried yet, in order
	all         []candidate // those that cool included
	probe       bool        // at cools, and the call finds out whether it still has to
	reservation uuid.UUID
	estimate    limits.Cost
	began       time.Time // admitted
	counter     bool      // one that is left counts no tokens: they are counted here
	withdrawn   bool      // at is none any more: it was removed while the call waited
	full        bool      // some candidate had no room
	tried       []candidate
	retries     int // of them, after a provider failed
	settled     bool
	try         *try
}

// run sends the call to one candidate after the other until one serves it, and
// answers. When it returns, however it does, the reservation has ended and the
// call's event is written.
func (x *exchange) run() error {
	defer x.abandon()
	defer x.s.beat(x)()
	var failures []*failure
	for {
		f := x.next()
		if f == nil {
			return nil // it is answered
		}
		failures = append(failures, f)
		switch {
		case f.next != never && x.counter:
			x.move(f, nil)
			return x.count(x.at.model)
		case f.next == never || !x.moveOn(f):
			return x.give(failures)
		}
	}
}

// next makes the next attempt; none at a key that is gone.
func (x *exchange) next() *failure {
	if !x.withdrawn {
		return x.attempt()
	}
	x.withdrawn = false
	return &failure{err: refusedKeys(x.call.model), outcome: usage.ProviderError, next: otherKey, unsent: true}
}

// moveOn takes the call to the next candidate that may be tried and that has
// room.
func (x *exchange) moveOn(f *failure) bool {
	if x.k.ctx.Err() != nil || x.s.Halt.Err() != nil || x.lastBegan().Sub(x.began) > x.s.Timeouts.Again {
		return false
	}
	next := x.following(f)
	if len(next) == 0 {
		return false
	}
	if f.next == otherProvider {
		if x.retries == maxRetries || !x.s.budgets.spend(x.k.who.Tenant.ID, x.s.Now()) {
			return false
		}
		x.retries++
	}
	d, ok := x.move(f, next)
	if !ok || !d.Admitted {
		x.full = x.full || ok
		return false
	}
	x.left, x.probe = next, false
	x.take(d)
	return true
}

// lastBegan is when the attempt that ended began: one that hung does not use up
// the time in which another may be asked.
func (x *exchange) lastBegan() time.Time {
	if x.try == nil {
		return x.began
	}
	return x.try.sent
}

// maxRetries is how often one call is tried again after a provider failed.
const maxRetries = 2

// following are the candidates to try after a failure: each key once, none that
// cools by now, after a 429 none of its pool, and after a failing provider the
// others before other keys of the same.
func (x *exchange) following(f *failure) []candidate {
	now := x.s.Now()
	next := slices.DeleteFunc(slices.Clone(x.left), func(c candidate) bool {
		_, cools := x.s.health.of(c.Key, c.model).Cools(c.model, now)
		pooled := f.status == http.StatusTooManyRequests && c.Pool.ID != uuid.Nil && c.Pool.ID == x.at.Pool.ID
		return cools || pooled
	})
	if f.next == otherProvider {
		slices.SortStableFunc(next, func(a, b candidate) int { return x.sameAddress(a) - x.sameAddress(b) })
	}
	return next
}

func (x *exchange) sameAddress(c candidate) int {
	if c.Endpoint.BaseURL == x.at.Endpoint.BaseURL {
		return 1
	}
	return 0
}

// take notes which candidate a decision charged.
func (x *exchange) take(d limits.Decision) {
	x.at = x.left[d.Candidate]
	x.tried = append(x.tried, x.at)
	key := x.at.Key.ID
	x.left = slices.DeleteFunc(slices.Clone(x.left), func(c candidate) bool { return c.Key.ID == key && c.model == x.at.model })
	x.s.headroom.note(key, x.at.model, d.States, d.At)
}

// move notes in the books that an attempt ended, and charges the next. Where
// that fails, the call ends with what it has.
func (x *exchange) move(f *failure, next []candidate) (limits.Decision, bool) {
	d, err := x.s.Meter.Move(context.WithoutCancel(x.k.ctx), x.k.who.Tenant.ID, x.reservation, usage.Next{
		Ended: x.attempted(f.outcome, limits.Tokens{}), GiveBackRequest: f.unsent || !x.at.Vendor.FailuresCount,
		Candidates: candidates(next), EndUser: x.call.endUser,
	})
	if err != nil {
		x.s.Log.ErrorContext(x.k.ctx, "attempt not recorded", "request_id", x.k.requestID(), "error", err)
		return d, false
	}
	x.try = nil
	return d, true
}

// give ends a call that nobody served, and says what its client is told.
func (x *exchange) give(failures []*failure) error {
	last := failures[len(failures)-1]
	if last.unsent || x.try != nil && !x.at.Vendor.FailuresCount && last.outcome != usage.Aborted && last.outcome != usage.ClientError {
		x.move(last, nil)
	}
	x.settle(usage.Result{Outcome: last.outcome, Tokens: last.tokens, Estimated: last.estimated})
	return x.told(failures)
}

// told is what a client is told: of limits of providers before other failures,
// that its call is too large only where it was everywhere, and that keys are
// refused, or a model is unknown, only where no key rests or is full.
func (x *exchange) told(failures []*failure) error {
	last := failures[len(failures)-1]
	if last.next == never {
		return last.err
	}
	large := false
	for _, f := range failures {
		if large = large || f.err == errTooLargeThere; f.outcome == usage.ProviderLimited && f.err != errTooLargeThere { //nolint:errorlint // the one
			return x.s.capacity(x.all, x.call.model)
		}
	}
	if i := slices.IndexFunc(failures, func(f *failure) bool { return f.next == otherProvider }); i >= 0 {
		return failures[i].err
	}
	switch {
	case large:
		return errTooLargeThere
	case x.full || x.resting():
		return x.s.capacity(x.all, x.call.model)
	}
	return last.err
}

// resting tells whether a key that its provider accepts was not tried because it
// rests.
func (x *exchange) resting() bool {
	now := x.s.Now()
	return slices.ContainsFunc(x.all, func(c candidate) bool {
		b, cools := x.s.health.of(c.Key, c.model).Cools(c.model, now)
		tried := slices.ContainsFunc(x.tried, func(t candidate) bool { return t.Key.ID == c.Key.ID && t.model == c.model })
		return cools && !tried && b.Source != limits.BenchAuth && b.Source != limits.BenchCredit
	})
}

// attempted is the attempt that runs, as it ended.
func (x *exchange) attempted(o usage.Outcome, t limits.Tokens) usage.Attempt {
	a := usage.Attempt{
		Provider: x.at.Key.Provider, ProviderKey: x.at.Key.ID, Model: x.at.model,
		StartedAt: x.began, EndedAt: x.s.Now().UTC().Truncate(time.Microsecond), Tokens: t,
	}
	if x.try != nil {
		a.StartedAt, a.Status, a.Reported = x.try.sent, x.try.status, another(x.at.model, x.try.model)
	}
	if o != usage.OK {
		a.Error = string(o)
	}
	return a
}

// settle ends the reservation, once; what cannot be settled is logged, since
// the call itself is over.
func (x *exchange) settle(r usage.Result) {
	if x.settled {
		return
	}
	x.settled = true
	if x.try != nil {
		r.Attempts = []usage.Attempt{x.attempted(r.Outcome, r.Tokens)}
	}
	r.ModelServed = x.at.model // "" where it was answered here
	if x.try != nil {
		r.Cost, r.CostCurrency = x.cost(r)
	}
	done, err := x.s.Meter.Settle(context.WithoutCancel(x.k.ctx), x.k.who.Tenant.ID, x.reservation, r)
	if err != nil {
		x.s.Log.ErrorContext(x.k.ctx, "call not settled", "request_id", x.k.requestID(), "error", err)
		return
	}
	if x.at.Route != nil { // else it was answered here
		x.s.headroom.note(x.at.Key.ID, x.at.model, done.Limits, x.s.Now())
	}
	x.k.states = x.k.shown(done.Limits)
}

// cost is what the provider charges for the attempt that runs, by the catalogue;
// nil where that is not known. The practice provider charges nothing to nobody.
func (x *exchange) cost(r usage.Result) (*money.Pico, string) {
	book, err := x.s.Directory.Book(context.WithoutCancel(x.k.ctx), x.k.who.Tenant.ID)
	if err != nil || x.at.Endpoint.Provider.Practice {
		return nil, ""
	}
	requests := int64(0) // of what was not served nothing is charged
	if r.Outcome == usage.OK || r.Tokens != (limits.Tokens{}) {
		requests = 1
	}
	cost, currency, priced := book.Costs.Of(x.at.Vendor.Slug, x.at.model, x.began, r.Tokens, requests)
	if !priced {
		return nil, ""
	}
	return &cost, currency
}

// shown keeps, of the settled states, those that the headers had before: a
// limit without any ledger left keeps what it said.
func (k *caller) shown(after []limits.State) []limits.State {
	now := map[string]limits.State{}
	for _, st := range after {
		now[st.Ledger] = st
	}
	out := make([]limits.State, len(k.states))
	for i, st := range k.states {
		out[i] = st
		if fresh, found := now[st.Ledger]; found {
			out[i] = fresh
		}
	}
	return out
}

// abandon gives the tokens back when the handler ends without an outcome, as
// in a panic.
func (x *exchange) abandon() { x.settle(usage.Result{Outcome: usage.ProviderError}) }

// heldFor is how long a reservation lives by itself; a call that runs on extends
// it every beat, so that one whose process died is free again soon.
const (
	heldFor = 2 * time.Minute
	beatAt  = 30 * time.Second
)

// beat keeps the reservation of a running call alive until the returned stop.
func (s *Server) beat(x *exchange) (stop func()) {
	b := &pulse{s: s, x: x}
	b.timer.Store(time.AfterFunc(beatAt, b.beat))
	return b.stop
}

// pulse is what keeps one call's reservation alive.
type pulse struct {
	s     *Server
	x     *exchange
	timer atomic.Pointer[time.Timer]
	over  atomic.Bool
}

func (b *pulse) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), beatAt)
	defer cancel()
	_, err := b.s.Meter.Extend(ctx, b.x.k.who.Tenant.ID, b.x.reservation, b.s.Now().Add(heldFor))
	if err != nil && !b.over.Load() && !fault.Is(err, fault.Conflict) {
		b.s.Log.WarnContext(ctx, "reservation not extended", "request_id", b.x.k.requestID(), "error", err)
	}
	if !b.over.Load() {
		b.timer.Store(time.AfterFunc(beatAt, b.beat))
	}
}

func (b *pulse) stop() {
	b.over.Store(true)
	b.timer.Load().Stop()
}
