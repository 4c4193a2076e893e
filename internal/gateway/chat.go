package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/outbound"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// chat serves POST /v1/chat/completions.
func (s *Server) chat(k *caller) error {
	call, err := parseChat(k.echo)
	k.model = call.model
	if err != nil {
		return err
	}
	to, err := s.routesFor(k, call.model)
	if err != nil {
		return err
	}
	estimate := call.estimate(k.limits())
	d, err := s.admit(k, usage.Call{
		RequestID: k.requestUUID(), Tenant: k.who.Tenant.ID, Zones: k.contract.Tenant.Zones, Customer: k.who.Key.Customer,
		Subscription: k.contract.Subscription, PlanVersion: k.contract.Version.ID, Key: k.who.Key.ID, Counter: k.who.Key.Counter,
		Kind: "chat", Model: call.model, Stream: call.stream, EndUser: call.endUser, Tags: call.tags,
		Test:     to.free[0].Endpoint.Provider.Practice,
		Currency: k.contract.Version.Currency, Rates: billing.RatesFor(k.contract.Version.Prices, call.model),
		Plan: k.who.Plan(k.contract), Candidates: candidates(to.free, call.model), Estimate: estimate, TTL: s.Timeouts.Total + reservationMargin,
	})
	if err != nil {
		return err
	}
	k.states = d.States
	if !d.Admitted {
		return &refused{d, call.model}
	}
	x := &exchange{s: s, k: k, call: call, route: to.free[d.Candidate], all: to.all, probe: to.probe, reservation: d.Reservation.ID, estimate: estimate, started: d.At}
	return x.run()
}

// exchange is one admitted call with its provider. It belongs to one goroutine.
type exchange struct {
	s           *Server
	k           *caller
	call        chatCall
	route       tenants.Route
	all         []tenants.Route // that serve the model, those that cool included
	probe       bool            // the route cools, and the call finds out whether it still has to
	reservation uuid.UUID
	estimate    limits.Cost
	started     time.Time
	status      int // the provider's; 0: no answer
	settled     bool
	watch       *watchdog
}

// run sends the call and answers. When it returns, however it does, the
// reservation has ended and the call's event is written.
func (x *exchange) run() error {
	defer x.abandon()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.k.ctx))
	defer cancel(nil)
	x.watch = watch(cancel, x.s.Timeouts)
	defer x.watch.stop()
	defer context.AfterFunc(x.k.ctx, x.watch.clientLeft)()
	defer context.AfterFunc(x.s.Halt, func() { cancel(errHalted) })()

	resp, err := x.s.Client.Do(ctx, x.route.Endpoint, http.MethodPost, "/chat/completions", upstreamHeaders(x.call.stream), newBody(x.call.forward()))
	if err != nil {
		return x.lost(ctx, err)
	}
	defer resp.Body.Close()
	x.status = resp.StatusCode
	x.watch.progress()
	if resp.StatusCode != http.StatusOK {
		return x.rejected(resp)
	}
	if x.call.stream {
		return x.stream(ctx, resp)
	}
	return x.whole(ctx, resp)
}

// settle ends the reservation, once; what cannot be settled is logged, since
// the call itself is over.
func (x *exchange) settle(r usage.Result) {
	if x.settled {
		return
	}
	x.settled = true
	now := x.s.Now().UTC().Truncate(time.Microsecond)
	attempt := usage.Attempt{
		Provider: x.route.Key.Provider, ProviderKey: x.route.Key.ID, Model: x.call.model, Status: x.status,
		StartedAt: x.started, EndedAt: now, Tokens: r.Tokens,
	}
	if r.Outcome != usage.OK {
		attempt.Error = string(r.Outcome)
	}
	r.Attempts, r.ModelServed = []usage.Attempt{attempt}, x.call.model
	done, err := x.s.Meter.Settle(context.WithoutCancel(x.k.ctx), x.k.who.Tenant.ID, x.reservation, r)
	if err != nil {
		x.s.Log.ErrorContext(x.k.ctx, "call not settled", "request_id", x.k.requestID(), "error", err)
		return
	}
	x.k.states = x.k.shown(done.Limits)
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

// lost ends a call that got no answer, or not all of it: the client left, or
// the provider failed.
func (x *exchange) lost(ctx context.Context, err error) error {
	if x.k.ctx.Err() != nil {
		x.settle(usage.Result{Outcome: usage.Aborted, Tokens: limits.Tokens{Input: x.estimate.Tokens.Input}, Estimated: "client_gone"})
		return x.k.ctx.Err()
	}
	if errors.Is(context.Cause(ctx), errHalted) {
		x.settle(usage.Result{Outcome: usage.Aborted})
		return halted()
	}
	x.settle(usage.Result{Outcome: usage.ProviderError})
	x.failed(0, nil, nil)
	var late *timeoutError
	if errors.As(context.Cause(ctx), &late) {
		return outbound.Fault(context.DeadlineExceeded)
	}
	return err
}

func halted() error {
	return fault.New(fault.Unavailable, "server_stopping", "This server is being replaced and could not wait for the provider any longer. Send the call again.").After(time.Second)
}
