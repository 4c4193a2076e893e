package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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
	MaxWaitMS   int64             `json:"max_wait_ms,omitempty" minimum:"0" maximum:"60000" description:"How long the call may wait for room instead of being refused; refused at once where the wait cannot fit, and where 100 calls of the customer wait already"`
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
	why        *fault.Error
	violations []verdict.Limit
}

func (e *refused) Error() string { return e.why.Error() }
func (e *refused) Unwrap() error { return e.why }

func reserve(s *Server, r *request, _ none, b reservationBody) (reservationJSON, error) {
	key, err := requestKey(r.echo.Request())
	if err != nil {
		return reservationJSON{}, err
	}
	out, d, err := s.decide(r, b, requestUUID(r.echo), key)
	h := r.echo.Response().Header()
	verdict.Headers(h, d.States)
	if code := fault.Of(err); code != nil && (code.Code == "request_too_large" || code.Code == "daily_cap_reached") {
		h.Set("x-should-retry", "false")
	}
	if d.Again {
		h.Set(idempotentReplayed, "true")
	}
	return out, err
}

// decide reserves under a request id of its own and a key that makes it once,
// or "". A refusal is an error beside its decision.
func (s *Server) decide(r *request, b reservationBody, request uuid.UUID, key string) (reservationJSON, limits.Decision, error) {
	call, err := s.callFrom(r, b)
	if err != nil {
		return reservationJSON{}, limits.Decision{}, err
	}
	call.RequestID = request
	if call.Once, err = r.once(key, b); err != nil {
		return reservationJSON{}, limits.Decision{}, err
	}
	d, err := s.admit(r, b, call)
	if err != nil {
		return reservationJSON{}, d, mismatch(err, key)
	}
	withProviders := r.caller.Key.Kind == tenants.Management
	if !d.Admitted {
		return reservationJSON{}, d, refusal(d, call.Model, withProviders)
	}
	out := reservationJSON{Limits: verdict.All(d.States, withProviders)}
	if !call.DryRun {
		out.ID, out.ExpiresAt = id.Reservation.Format(d.Reservation.ID), &d.ExpiresAt
	}
	return out, d, nil
}

// admit decides a call, which may wait for it: then its caller is held against
// what it may do by the time that there is room. A wait ends when the process is
// about to.
func (s *Server) admit(r *request, b reservationBody, call usage.Call) (limits.Decision, error) {
	if call.MaxWait == 0 || call.DryRun {
		return s.meter.Admit(r.ctx, call)
	}
	call.Renew = func(context.Context) ([]*limits.Set, error) {
		now, err := s.authenticated(r.echo, decisionScope)
		if err != nil {
			return nil, err
		}
		renewed, err := s.callFrom(now, b)
		return renewed.Plan, err
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.halt, func() { cancel(errHalted) })()
	d, err := s.meter.Admit(ctx, call)
	if err != nil && errors.Is(context.Cause(ctx), errHalted) {
		err = fault.New(fault.Unavailable, "server_stopping", "This server is being replaced and could not wait for room any longer. Send the call again.").After(time.Second)
	}
	return d, err
}

var errHalted = errors.New("this server stops")

// once binds a key to the credential and to what is asked for.
func (r *request) once(key string, b reservationBody) (limits.Once, error) {
	if key == "" {
		return limits.Once{}, nil
	}
	body, err := json.Marshal(b)
	if err != nil {
		return limits.Once{}, err
	}
	owner := r.caller.Key.Counter
	if r.caller.Token != nil {
		owner = r.caller.Token.ID
	}
	return limits.Once{Key: hashed(owner, []byte(key)), Body: hashed(owner, body)}, nil
}

func hashed(owner uuid.UUID, text []byte) uuid.UUID {
	return uuid.NewHash(sha256.New(), owner, text, 8)
}

// mismatch says in a caller's words that a key is taken.
func mismatch(err error, key string) error {
	if key != "" && fault.Of(err).Code == "reservation_exists" {
		return fault.New(fault.Refused, "idempotency_mismatch", "This Idempotency-Key was used for another reservation.")
	}
	return err
}

func refusal(d limits.Decision, model string, withProviders bool) error {
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
	c := usage.Call{
		Tenant: r.tenant(), Zones: contract.Tenant.Zones, Customer: customer, Subscription: contract.Subscription,
		PlanVersion: contract.Version.ID, Key: r.caller.Key.ID, Counter: r.caller.Key.Counter, Kind: usage.KindDecision, Model: b.Model,
		EndUser: b.EndUser, Tags: b.Tags, Currency: contract.Version.Currency, Rates: billing.RatesFor(contract.Version.Prices, b.Model),
		Plan:     r.caller.Plan(contract),
		Estimate: limits.Cost{Requests: 1, Units: b.Estimate.Units, Tokens: limits.Tokens{Input: b.Estimate.InputTokens, Output: b.Estimate.OutputTokens}},
		MaxWait:  time.Duration(b.MaxWaitMS) * time.Millisecond,
		DryRun:   b.DryRun, Decision: true, Test: r.caller.Key.Test,
	}
	if b.TTLSeconds != nil {
		c.TTL = time.Duration(*b.TTLSeconds) * time.Second
	}
	if err := s.addProviderKey(r, b, &c); err != nil {
		return usage.Call{}, err
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
	c.Candidates = []limits.Candidate{{ProviderKey: k.ID, Model: b.Model, Limits: limits.Compile(k.LimitsFor(b.Model))}}
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
	if b.MaxWaitMS < 0 || b.MaxWaitMS > limits.MaxWait.Milliseconds() {
		wrong = append(wrong, fault.Field{Pointer: "/max_wait_ms", Code: "out_of_range", Message: "This must be from 0 to 60,000 milliseconds."})
	}
	wrong = append(wrong, usage.CheckLabels(b.EndUser, b.Tags)...)
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}
