package gateway

import (
	"slices"

	"weir/internal/billing"
	"weir/internal/fault"
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
		known := s.known(k, to.free)
		first := to.free[0]
		rates := billing.RatesFor(k.contract.Version.Prices, call.model)
		asked, counter := call.counters(to.free)
		estimate, guess := call.estimate(k.limits(), rates, known)
		if k.contract.Version.CapOutput {
			estimate.Tokens.Output = call.capOutput(estimate.Tokens.Output)
		}
		d, err := s.admit(k, usage.Call{
			RequestID: k.requestUUID(), Tenant: k.who.Tenant.ID, Zones: k.contract.Tenant.Zones, Customer: k.who.Key.Customer,
			Subscription: k.contract.Subscription, PlanVersion: k.contract.Version.ID, Key: k.who.Key.ID, Counter: k.who.Key.Counter,
			Kind: f.kind, Model: call.model, Stream: call.stream, EndUser: call.endUser, Tags: call.tags,
			Test:     first.Endpoint.Provider.Practice,
			Currency: k.contract.Version.Currency, Rates: rates,
			Plan: k.who.Plan(k.contract), Candidates: candidates(asked), Estimate: estimate, Guess: guess, TTL: heldFor,
		}, call.size())
		if err != nil {
			return err
		}
		k.states = d.States
		if !d.Admitted {
			return &refused{d, call.model}
		}
		now := s.Now()
		s.budgets.called(k.who.Key.Customer)
		x := &exchange{s: s, k: k, call: call, all: to.all, left: asked, counter: counter, probe: to.probe, reservation: d.Reservation.ID, estimate: estimate, began: d.At, since: now}
		if len(asked) == 0 {
			defer x.abandon()
			return x.count(first.model)
		}
		x.take(d)
		if k.mayWait() {
			x.withdrawn = x.lookAgain()
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
// the call waited, for room or for a provider, and tells whether the one that it is
// at was. What cools is another matter: a call that tries such a key was sent to
// it on purpose. Where nobody knows, it goes by what it knew.
func (x *exchange) lookAgain() (withdrawn bool) {
	fresh, _, err := x.s.usable(x.k, x.call)
	if fault.Is(err, fault.Unavailable) {
		return false
	}
	gone := func(c candidate) bool {
		return !slices.ContainsFunc(fresh, func(o candidate) bool { return o.Key.ID == c.Key.ID && o.model == c.model })
	}
	x.left = slices.DeleteFunc(x.left, gone)
	return gone(x.at)
}

// known is what is known of the calls of a caller to the candidates, each of which
// may serve it: how much a model can write is noted with each. The usual output
// is that of the first.
func (s *Server) known(k *caller, list []candidate) (out known) {
	out.p95, out.factor, _ = s.Estimates.Of(k.who.Tenant.ID, k.who.Key.Counter, k.model)
	if k.contract.Version.CapOutput {
		out.p95 = 0 // answers that end where they usually do would never show that they have become longer
	}
	book, err := s.Directory.Book(k.ctx, k.who.Tenant.ID)
	if err != nil {
		return out
	}
	limited := true
	for i := range list {
		c := &list[i]
		m, _ := book.Model(c.Vendor.Slug, c.model, s.Now())
		if c.most = m.MaxOutput; i == 0 {
			out.usual = m.DefaultOutput
		}
		out.most, limited = max(out.most, c.most), limited && c.most > 0
	}
	if !limited {
		out.most = 0
	}
	return out
}
