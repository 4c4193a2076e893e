package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/usage"
)

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
	began       time.Time // admitted, by the clock of the limits: what the books say
	since       time.Time // admitted, by this process's clock: what bounds its time
	counter     bool      // one that is left counts no tokens: they are counted here
	withdrawn   bool      // at is none any more: it was removed while the call waited
	full        bool      // some candidate had no room
	tried       []candidate
	retries     int             // of them, after a provider failed
	ctx         context.Context // of the call's own: it outlives a client that left
	stop        context.CancelCauseFunc
	settled     bool
	try         *try
	took        func() usage.Result // what the answer that runs took so far; nil: there is none
}

// run sends the call to one candidate after the other until one serves it, and
// answers. When it returns, however it does, the reservation has ended and the
// call's event is written.
func (x *exchange) run() error {
	defer x.abandon()
	x.ctx, x.stop = context.WithCancelCause(context.WithoutCancel(x.k.ctx))
	defer x.stop(nil)
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

// next makes the next attempt; none for a client that has left, nor at a key that
// is gone.
func (x *exchange) next() *failure {
	switch {
	case x.k.ctx.Err() != nil:
		return &failure{err: x.k.ctx.Err(), outcome: usage.Aborted, unsent: true}
	case x.withdrawn:
		x.withdrawn = false
		return &failure{err: refusedKeys(x.call.model), outcome: usage.ProviderError, next: otherKey, unsent: true}
	}
	return x.attempt()
}

// moveOn takes the call to the next candidate that may be tried and that has
// room.
func (x *exchange) moveOn(f *failure) bool {
	if x.k.ctx.Err() != nil || x.s.Halt.Err() != nil || x.ctx.Err() != nil || x.lastBegan().Sub(x.since) > x.s.Timeouts.Again {
		return false
	}
	x.lookAgain()
	next := x.following(f)
	if len(next) == 0 {
		return false
	}
	if f.next == otherProvider {
		if x.retries == maxRetries || !x.s.budgets.spend(x.k.who.Tenant.ID, x.k.who.Key.Customer, x.s.Now()) {
			return false
		}
		x.retries++
	}
	d, ok := x.move(f, next)
	if !ok || !d.Admitted {
		x.full = x.full || ok
		return false
	}
	x.left, x.probe, x.took = next, false, nil
	x.take(d)
	return true
}

// lastBegan is when the attempt that ended began: one that hung does not use up
// the time in which another may be asked.
func (x *exchange) lastBegan() time.Time {
	if x.try == nil {
		return x.since
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
	x.s.headroom.note(key, x.at.model, d.States, x.s.Now())
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
// nil where that is not known, as of a class of service that it has no price of. The practice provider charges nothing to nobody.
func (x *exchange) cost(r usage.Result) (*money.Pico, string) {
	book, err := x.s.Directory.Book(context.WithoutCancel(x.k.ctx), x.k.who.Tenant.ID)
	if err != nil || x.at.Endpoint.Provider.Practice || x.try.apart || !x.try.tier.Usual() {
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
	out := slices.Clone(k.states)
	for i := range out {
		of := func(st limits.State) bool { return st.Ledger == out[i].Ledger }
		if at := slices.IndexFunc(after, of); at >= 0 {
			out[i] = after[at]
		}
	}
	return out
}

// abandon ends a call whose handler ends without an outcome, as in a panic: what
// came of an answer is charged, the rest given back.
func (x *exchange) abandon() {
	if x.settled {
		return
	}
	r := usage.Result{}
	if x.took != nil {
		r = x.took()
	}
	r.Outcome = usage.ProviderError
	x.settle(r)
}
