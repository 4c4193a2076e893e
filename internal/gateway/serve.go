package gateway

import (
	"slices"

	"weir/internal/billing"
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
		now := s.Now()
		s.budgets.called(k.who.Tenant.ID, now)
		x := &exchange{s: s, k: k, call: call, all: to.all, left: asked, counter: counter, probe: to.probe, reservation: d.Reservation.ID, estimate: estimate, began: d.At, since: now}
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
