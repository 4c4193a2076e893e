package httpapi

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/internal/verdict"
)

type reservationBody struct {
	Customer    string            `json:"customer,omitempty" description:"For management keys; a customer key decides for its own" example:"cus_01kb0000000000000000000000"`
	Model       string            `json:"model,omitempty" description:"May be absent where only units are metered" example:"gpt-4o"`
	Estimate    *estimateBody     `json:"estimate" required:"true" nullable:"false"`
	ProviderKey string            `json:"provider_key,omitempty" description:"For management keys: also hold this provider key's limits" example:"pvk_01kb0000000000000000000000"`
	EndUser     string            `json:"end_user,omitempty" description:"Your customer's own user; at most 200 characters"`
	Tags        map[string]string `json:"tags,omitempty" description:"At most 8"`
	TTLSeconds  *int64            `json:"ttl_seconds,omitempty" minimum:"1" maximum:"3600" description:"When an unsettled reservation expires; absent: 600"`
	DryRun      bool              `json:"dry_run,omitempty" description:"Decide only; nothing is charged or kept"`
}

type estimateBody struct {
	InputTokens  int64 `json:"input_tokens,omitempty" minimum:"0" example:"1200"`
	OutputTokens int64 `json:"output_tokens,omitempty" minimum:"0" example:"800"`
	Units        int64 `json:"units,omitempty" minimum:"0" description:"Whatever you meter: bytes, pages"`
}

type reservationJSON struct {
	ID        string          `json:"id,omitempty" description:"Absent for a dry run" example:"rsv_01kb0000000000000000000000"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	Limits    []verdict.Limit `json:"limits"`
}

// refused is the error of a reservation that was not admitted.
type refused struct {
	why          *fault.Error
	violations   []verdict.Limit
	retryAfterMS int64
}

func (e *refused) Error() string { return e.why.Error() }
func (e *refused) Unwrap() error { return e.why }

func reserve(s *Server, r *request, _ none, b reservationBody) (reservationJSON, error) {
	call, err := s.callFrom(r, b)
	if err != nil {
		return reservationJSON{}, err
	}
	d, err := s.meter.Admit(r.ctx, call)
	if err != nil {
		return reservationJSON{}, err
	}
	verdict.Headers(r.echo.Response().Header(), d.States)
	withProviders := r.caller.Key.Kind == tenants.Management
	if !d.Admitted {
		return reservationJSON{}, refusal(r, d, call.Model, withProviders)
	}
	out := reservationJSON{Limits: verdict.All(d.States, withProviders)}
	if !call.DryRun {
		out.ID, out.ExpiresAt = id.Reservation.Format(d.Reservation.ID), &d.ExpiresAt
	}
	return out, nil
}

func refusal(r *request, d limits.Decision, model string, withProviders bool) error {
	kind, code := fault.Limited, usage.RefusalCode(d)
	if model == "" {
		model = "this call"
	}
	switch code {
	case "request_too_large":
		kind = fault.TooLarge
	case "provider_capacity":
		kind = fault.Unavailable
	}
	e := &refused{why: fault.New(kind, code, verdict.Sentence(d, model)), violations: verdict.All(d.Violations, withProviders)}
	if !d.TooLarge {
		e.why.RetryAfter = d.RetryAfter
		e.retryAfterMS = int64((d.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	}
	if kind == fault.TooLarge || code == "daily_cap_reached" {
		r.echo.Response().Header().Set("x-should-retry", "false")
	}
	return e
}

func (s *Server) callFrom(r *request, b reservationBody) (usage.Call, error) {
	if err := b.check(); err != nil {
		return usage.Call{}, err
	}
	if only := r.caller.Key.Models; only != nil && b.Model != "" && !slices.Contains(only, b.Model) {
		return usage.Call{}, fault.New(fault.Forbidden, "model_not_allowed", "This key may not use this model.").
			With(fault.Field{Pointer: "/model", Code: "model_not_allowed", Message: "This key may not use this model."})
	}
	customer, err := r.decidesFor(b)
	if err != nil {
		return usage.Call{}, err
	}
	contract, err := s.directory.Contract(r.ctx, r.tenant(), customer)
	if err != nil {
		return usage.Call{}, err
	}
	if err := contract.RequireActive(); err != nil {
		return usage.Call{}, err
	}
	zone, err := time.LoadLocation(contract.Tenant.Zone)
	if err != nil {
		return usage.Call{}, err
	}
	c := usage.Call{
		RequestID: requestUUID(r.echo), Tenant: r.tenant(), Zone: zone, Customer: customer, Subscription: contract.Subscription,
		PlanVersion: contract.Version.ID, Key: r.caller.Key.ID, Counter: r.caller.Key.Counter, Kind: usage.KindDecision, Model: b.Model,
		EndUser: b.EndUser, Tags: b.Tags, Currency: contract.Version.Currency, Rates: billing.RatesFor(contract.Version.Prices, b.Model),
		Plan:     append(append([]limits.Limit{}, contract.Limits...), r.caller.Key.Limits...),
		Estimate: limits.Cost{Requests: 1, Units: b.Estimate.Units, Tokens: limits.Tokens{Input: b.Estimate.InputTokens, Output: b.Estimate.OutputTokens}},
		DryRun:   b.DryRun, Decision: true, Test: r.caller.Key.Test,
	}
	if b.TTLSeconds != nil {
		c.TTL = time.Duration(*b.TTLSeconds) * time.Second
	}
	if err := s.addProviderKey(r, b, &c); err != nil {
		return usage.Call{}, err
	}
	if c.Test {
		c.Plan = usage.TestPlan(c.Plan)
	}
	return c, nil
}

// decidesFor is the customer that a reservation is for.
func (r *request) decidesFor(b reservationBody) (uuid.UUID, error) {
	if r.caller.Key.Kind == tenants.ForCustomer {
		if b.Customer != "" && b.Customer != id.Customer.Format(r.caller.Key.Customer) || b.ProviderKey != "" {
			return uuid.Nil, fault.New(fault.Forbidden, "wrong_scope", "A customer key decides for its own customer, and names no provider key.")
		}
		return r.caller.Key.Customer, nil
	}
	if err := required(map[string]string{"/customer": b.Customer}); err != nil {
		return uuid.Nil, err
	}
	return optionalID(id.Customer, "customer", b.Customer)
}

func (s *Server) addProviderKey(r *request, b reservationBody, c *usage.Call) error {
	if b.ProviderKey == "" {
		return nil
	}
	key, err := id.ProviderKey.Parse(b.ProviderKey)
	if err != nil {
		return tenants.NotFound("provider key")
	}
	k, err := s.tenants.ProviderKey(r.ctx, r.tenant(), key)
	c.Candidates = []limits.Candidate{{ProviderKey: k.ID, Model: b.Model, Limits: k.Limits}}
	return err
}

func (b reservationBody) check() error {
	if b.Estimate == nil {
		return required(map[string]string{"/estimate": ""})
	}
	var wrong []fault.Field
	e := b.Estimate
	cost := limits.Cost{Units: e.Units, Tokens: limits.Tokens{Input: e.InputTokens, Output: e.OutputTokens}}
	for _, f := range cost.Check() {
		f.Pointer = "/estimate" + f.Pointer
		wrong = append(wrong, f)
	}
	switch {
	case b.Model == "" && e.Units == 0:
		wrong = append(wrong, fault.Field{Pointer: "/model", Code: "required", Message: "A model is needed, unless only units are metered."})
	case b.Model != "" && !catalogue.ValidModel(b.Model):
		wrong = append(wrong, fault.Field{Pointer: "/model", Code: "bad_model", Message: "This is not a model name."})
	}
	if b.TTLSeconds != nil && (*b.TTLSeconds < 1 || *b.TTLSeconds > 3600) {
		wrong = append(wrong, fault.Field{Pointer: "/ttl_seconds", Code: "out_of_range", Message: "This must be from 1 to 3,600 seconds."})
	}
	wrong = append(wrong, usage.CheckLabels(b.EndUser, b.Tags)...)
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

type settleBody struct {
	Outcome string    `json:"outcome" required:"true" enum:"ok,client_error,provider_error,provider_limited,aborted"`
	Usage   usageBody `json:"usage,omitempty" description:"Disjoint classes: input without cached and cache writes, output without reasoning; absent: nothing was used"`
	Units   int64     `json:"units,omitempty" minimum:"0"`
}

type usageBody struct {
	InputTokens       int64 `json:"input_tokens,omitempty" minimum:"0"`
	CachedInputTokens int64 `json:"cached_input_tokens,omitempty" minimum:"0"`
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty" minimum:"0"`
	OutputTokens      int64 `json:"output_tokens,omitempty" minimum:"0"`
	ReasoningTokens   int64 `json:"reasoning_tokens,omitempty" minimum:"0"`
}

type settledJSON struct {
	ID      string          `json:"id" example:"rsv_01kb0000000000000000000000"`
	State   string          `json:"state" enum:"settled,cancelled"`
	Late    bool            `json:"late,omitempty" description:"It had expired; a correction was written"`
	Charged chargedJSON     `json:"charged"`
	Limits  []verdict.Limit `json:"limits"`
}

type chargedJSON struct {
	Requests int64 `json:"requests"`
	usageBody
	Units int64 `json:"units,omitempty"`
}

// outcomes that a caller may state.
var outcomes = map[usage.Outcome]bool{usage.OK: true, usage.ClientError: true, usage.ProviderError: true, usage.ProviderLimited: true, usage.Aborted: true}

func settle(s *Server, r *request, _ none, b settleBody) (settledJSON, error) {
	call, err := r.path(id.Reservation, "reservation")
	if err != nil {
		return settledJSON{}, noReservation()
	}
	if err := r.mayEnd(s, call); err != nil {
		return settledJSON{}, err
	}
	res := usage.Result{Outcome: usage.Outcome(b.Outcome), Units: b.Units, Tokens: limits.Tokens{
		Input: b.Usage.InputTokens, CachedInput: b.Usage.CachedInputTokens, CacheWrite: b.Usage.CacheWriteTokens,
		Output: b.Usage.OutputTokens, Reasoning: b.Usage.ReasoningTokens,
	}}
	res.SelfReported = r.caller.Key.Kind == tenants.ForCustomer
	wrong := []fault.Field{}
	if !outcomes[res.Outcome] {
		wrong = append(wrong, fault.Field{Pointer: "/outcome", Code: "not_one_of", Message: "This must be ok, client_error, provider_error, provider_limited or aborted."})
	}
	for _, f := range (limits.Cost{Units: b.Units, Tokens: res.Tokens}).Check() {
		if f.Pointer != "/units" {
			f.Pointer = "/usage" + f.Pointer
		}
		wrong = append(wrong, f)
	}
	if len(wrong) > 0 {
		return settledJSON{}, fault.InvalidFields(wrong...)
	}
	done, err := s.meter.Settle(r.ctx, r.tenant(), call, res)
	return r.settled(call, done), err
}

func cancel(s *Server, r *request, _ none, _ none) (settledJSON, error) {
	call, err := r.path(id.Reservation, "reservation")
	if err != nil {
		return settledJSON{}, noReservation()
	}
	if err := r.mayEnd(s, call); err != nil {
		return settledJSON{}, err
	}
	done, err := s.meter.Cancel(r.ctx, r.tenant(), call)
	return r.settled(call, done), err
}

// mayEnd lets management keys settle, and customer keys only what is their
// own, where their key allows it: otherwise a customer could bill itself
// nothing. A client token settles nothing.
func (r *request) mayEnd(s *Server, call uuid.UUID) error {
	if r.caller.Key.Kind == tenants.Management {
		return nil
	}
	owner, err := s.meter.Owner(r.ctx, r.tenant(), call)
	switch {
	case err != nil:
		return err
	case owner != r.caller.Key.Customer:
		return noReservation()
	case r.caller.Key.MaySettle && r.caller.Token == nil:
		return nil
	}
	return fault.New(fault.Forbidden, "settle_not_allowed", "This customer key may reserve, but not settle: settle with a management key, or make the key with may_settle.")
}

func noReservation() error {
	return fault.New(fault.NotFound, "reservation_not_found", "There is no such reservation.")
}

func (r *request) settled(call uuid.UUID, done usage.Settled) settledJSON {
	verdict.Headers(r.echo.Response().Header(), done.Limits)
	t := done.Actual.Tokens
	return settledJSON{
		ID: id.Reservation.Format(call), State: done.State, Late: done.Late,
		Charged: chargedJSON{Requests: done.Actual.Requests, Units: done.Actual.Units, usageBody: usageBody{
			InputTokens: t.Input, CachedInputTokens: t.CachedInput, CacheWriteTokens: t.CacheWrite, OutputTokens: t.Output, ReasoningTokens: t.Reasoning,
		}},
		Limits: verdict.All(done.Limits, r.caller.Key.Kind == tenants.Management),
	}
}

type extendBody struct {
	TTLSeconds *int64 `json:"ttl_seconds" required:"true" nullable:"false" minimum:"1" maximum:"3600" description:"From now"`
}

type extendedJSON struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
}

func extend(s *Server, r *request, _ none, b extendBody) (extendedJSON, error) {
	call, err := r.path(id.Reservation, "reservation")
	if err != nil {
		return extendedJSON{}, noReservation()
	}
	if owner, err := s.meter.Owner(r.ctx, r.tenant(), call); err != nil {
		return extendedJSON{}, err
	} else if r.caller.Key.Kind == tenants.ForCustomer && owner != r.caller.Key.Customer {
		return extendedJSON{}, noReservation()
	}
	if b.TTLSeconds == nil || *b.TTLSeconds < 1 || *b.TTLSeconds > 3600 {
		return extendedJSON{}, fault.InvalidFields(fault.Field{Pointer: "/ttl_seconds", Code: "out_of_range", Message: "This must be from 1 to 3,600 seconds."})
	}
	until := s.now().Add(time.Duration(*b.TTLSeconds) * time.Second).UTC().Truncate(time.Microsecond)
	ends, err := s.meter.Extend(r.ctx, r.tenant(), call, until)
	return extendedJSON{ID: id.Reservation.Format(call), ExpiresAt: ends}, err
}

type liveQuery struct {
	Model    string `query:"model" description:"Only limits that a call for this model touches"`
	Customer string `query:"customer" description:"For management keys"`
}

type liveLimit struct {
	verdict.Limit
	NextCallAfterMS int64 `json:"next_call_after_ms" description:"Until a call of the smallest cost fits"`
}

type liveJSON struct {
	Data []liveLimit `json:"data"`
	AsOf time.Time   `json:"as_of"`
}

func liveLimits(s *Server, r *request, q liveQuery, _ none) (liveJSON, error) {
	customer, err := r.decidesFor(reservationBody{Customer: q.Customer})
	if err != nil {
		return liveJSON{}, err
	}
	contract, err := s.directory.Contract(r.ctx, r.tenant(), customer)
	if err != nil {
		return liveJSON{}, err
	}
	list := append([]limits.Limit{}, contract.Limits...)
	if r.caller.Key.Kind == tenants.ForCustomer {
		list = append(list, r.caller.Key.Limits...)
	}
	if r.caller.Key.Test {
		list = usage.TestPlan(list)
	}
	states, err := s.limits.Live(r.ctx, r.tenant(), list, q.Model)
	if err != nil {
		return liveJSON{}, err
	}
	out := liveJSON{Data: []liveLimit{}, AsOf: s.now().UTC().Truncate(time.Millisecond)}
	for _, st := range states {
		out.Data = append(out.Data, liveLimit{Limit: verdict.Of(st), NextCallAfterMS: int64((st.NextCallAfter + time.Millisecond - 1) / time.Millisecond)})
	}
	r.echo.Response().Header().Set("Cache-Control", "no-store")
	return out, nil
}
