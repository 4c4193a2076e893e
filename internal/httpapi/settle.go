package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/internal/verdict"
)

type settleBody struct {
	Outcome string    `json:"outcome" required:"true" enum:"ok,client_error,provider_error,provider_limited,aborted"`
	Usage   usageBody `json:"usage,omitempty" description:"Disjoint classes: input without cached and cache writes, output without reasoning; absent: nothing was used"`
	Units   int64     `json:"units,omitempty" minimum:"0"`

	ProviderStatus *int   `json:"provider_status,omitempty" minimum:"100" maximum:"599" description:"Management keys: what the provider answered. Of a reservation that names a provider key it rests that key as the gateway's own calls do; absent: what the outcome says"`
	RetryAfter     string `json:"retry_after,omitempty" description:"Management keys: the provider's Retry-After, seconds or an HTTP date; what cannot be read is ignored" example:"30"`
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
	out, done, err := s.settle(r, r.echo.Param("id"), b)
	verdict.Headers(r.echo.Response().Header(), done.Limits)
	return out, err
}

func (s *Server) settle(r *request, reservation string, b settleBody) (out settledJSON, done usage.Settled, err error) {
	call, err := id.Reservation.Parse(reservation)
	if err != nil {
		return out, done, noReservation()
	}
	if err := r.mayEnd(s, call); err != nil {
		return out, done, err
	}
	res := usage.Result{Outcome: usage.Outcome(b.Outcome), Units: b.Units, Tokens: limits.Tokens{
		Input: b.Usage.InputTokens, CachedInput: b.Usage.CachedInputTokens, CacheWrite: b.Usage.CacheWriteTokens,
		Output: b.Usage.OutputTokens, Reasoning: b.Usage.ReasoningTokens,
	}}
	res.SelfReported = r.caller.Key.Kind == tenants.ForCustomer
	wrong := b.checkProvider(res.SelfReported)
	if b.ProviderStatus != nil {
		res.ProviderStatus = *b.ProviderStatus
	}
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
		return out, done, fault.InvalidFields(wrong...)
	}
	done, err = s.meter.Settle(r.ctx, r.tenant(), call, res)
	if err == nil && done.First && !res.SelfReported {
		s.showProvider(r, done.Event, b)
	}
	return r.settled(call, done), done, err
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
	verdict.Headers(r.echo.Response().Header(), done.Limits)
	return r.settled(call, done), err
}

// mayEnd lets management keys settle, and customer keys only what is their
// own, where their key allows it: otherwise a customer could bill itself
// nothing. A client token settles nothing.
func (r *request) mayEnd(s *Server, call uuid.UUID) error {
	owner, err := s.meter.Owner(r.ctx, r.tenant(), call)
	switch {
	case err != nil || r.caller.Key.Kind == tenants.Management:
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
