package usage

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// appendDetail appends what of an event is kept as JSON, to the byte as encode
// does: queries look for members that are zero too.
func appendDetail(b []byte, d *detail) []byte {
	b = flag(flag(append(b, '{'), "stream", d.Stream), "self_reported", d.SelfReported)
	b = number(detailCost(name(b, "estimate"), d.Estimate), "guess", d.Guess)
	if d.Attempts != nil {
		b = list(name(b, "attempts"), d.Attempts, detailAttempt)
	}
	if d.Charges != nil {
		b = list(name(b, "charges"), d.Charges, detailCharge)
	}
	b = rare(b, "refusal", d.Refusal)
	if d.Prices != nil {
		b = list(name(b, "prices"), d.Prices, func(b []byte, id *uuid.UUID) []byte { return appendID(b, *id) })
	}
	return append(words(rare(b, "unsettled", d.Unsettled), "settled", string(d.Settled)), '}')
}

func detailCost(b []byte, c limits.Cost) []byte {
	b = figure(figure(append(b, '{'), "requests", c.Requests), "units", c.Units)
	b = detailTokens(name(b, "tokens"), c.Tokens)
	return append(figure(figure(b, "charge_pico", c.ChargePico), "provider_pico", c.ProviderPico), '}')
}

func detailTokens(b []byte, t limits.Tokens) []byte {
	b = figure(figure(figure(append(b, '{'), "input_tokens", t.Input), "cached_input_tokens", t.CachedInput), "cache_write_tokens", t.CacheWrite)
	return append(figure(figure(b, "output_tokens", t.Output), "reasoning_tokens", t.Reasoning), '}')
}

func detailAttempt(b []byte, a *Attempt) []byte {
	b = appendID(name(quote(name(append(b, '{'), "provider"), a.Provider), "provider_key"), a.ProviderKey)
	b = words(figure(quote(name(b, "model"), a.Model), "status", int64(a.Status)), "error", a.Error)
	b = moment(moment(b, "started_at", a.StartedAt), "ended_at", a.EndedAt)
	return append(words(detailTokens(name(b, "tokens"), a.Tokens), "reported", a.Reported), '}')
}

func detailCharge(b []byte, c *limits.Charge) []byte {
	b = moment(quote(name(append(b, '{'), "ledger"), c.Ledger), "window_start", c.WindowStart)
	return append(figure(figure(b, "amount", c.Amount), "pico", c.Pico), '}')
}

func figure(b []byte, of string, n int64) []byte { return strconv.AppendInt(name(b, of), n, 10) }

func moment(b []byte, of string, t time.Time) []byte {
	return append(t.AppendFormat(append(name(b, of), '"'), time.RFC3339Nano), '"')
}
