package demo

import (
	"math/rand/v2"
	"strings"
	"time"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/usage"
)

// answer says how the providers took a call: nearly always well.
func (w *walk) answer(e *usage.Event, input, most int64, r *rand.Rand) {
	key := w.providers[e.ModelAsked]
	e.ProviderKey, e.ModelServed = key.ID, e.ModelAsked
	took := time.Duration(around(r, 900, 0.5)) * time.Millisecond
	try := usage.Attempt{Provider: key.Provider, ProviderKey: key.ID, Model: e.ModelAsked, Status: 200, StartedAt: e.StartedAt.Add(time.Millisecond)}
	x := r.Float64()
	if w.incident(e.StartedAt) {
		x /= 12
	}
	switch {
	case x < 0.004:
		e.Outcome, try.Status, try.Error, took = usage.ProviderError, 503, "upstream_unavailable", took/3
	case x < 0.006:
		e.Outcome, try.Status, try.Error, took = usage.ProviderLimited, 429, "rate_limited", took/6
	case x < 0.009:
		e.Outcome, try.Status, try.Error, took = usage.ClientError, 400, "invalid_request", took/8
	default:
		e.Outcome = usage.OK
		e.Tokens = tokens(e.ModelAsked, input, most, r)
		if x > 0.996 {
			e.Outcome = usage.Aborted
			e.Tokens.Output /= 3
		}
		if x > 0.985 && x < 0.992 {
			first := try
			first.Status, first.Error, first.EndedAt = 429, "rate_limited", first.StartedAt.Add(180*time.Millisecond)
			e.Attempts = append(e.Attempts, first)
			try.StartedAt = first.EndedAt.Add(40 * time.Millisecond)
		}
	}
	e.EndedAt = try.StartedAt.Add(took).Truncate(time.Microsecond)
	try.EndedAt, try.Tokens = e.EndedAt, e.Tokens
	e.Attempts = append(e.Attempts, try)
}

// incident tells whether a provider had a bad hour then.
func (w *walk) incident(at time.Time) bool {
	local := at.In(w.zone)
	return local.Day()%11 == 6 && local.Hour() == 15
}

func tokens(model string, input, most int64, r *rand.Rand) limits.Tokens {
	t := limits.Tokens{Input: input, Output: min(around(r, 320, 0.7), most)}
	if r.Float64() < 0.4 && !strings.HasPrefix(model, "llama") {
		t.CachedInput = input * int64(30+r.IntN(50)) / 100
		t.Input -= t.CachedInput
	}
	if prices[model].reasons {
		t.Reasoning = around(r, 400, 0.5)
	}
	return t
}

// price states what the customer pays and what the provider charges.
func (w *walk) price(e *usage.Event) {
	if e.Test {
		return
	}
	used := limits.Cost{Requests: e.Requests, Tokens: e.Tokens}
	e.Charge, e.Prices = usage.Charge(billing.RatesFor(w.version.Prices, e.ModelAsked), used)
	l := prices[e.ModelAsked]
	cost, _ := usage.Charge([]usage.Rate{
		{Class: usage.Input, MicrosPerMillion: l.input},
		{Class: usage.CachedInput, MicrosPerMillion: l.cached},
		{Class: usage.Output, MicrosPerMillion: l.output},
		{Class: usage.Reasoning, MicrosPerMillion: l.output},
	}, used)
	e.Cost, e.CostCurrency = &cost, w.tenant.Currency
}
