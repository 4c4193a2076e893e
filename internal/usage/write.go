package usage

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"weir/internal/limits"
)

// The two records of every call are written by hand: a library that goes by
// reflection takes a fifth of what a whole call costs. A test holds them to what
// the library reads.

// appendAdmission appends a as JSON.
func appendAdmission(b []byte, a *Admission) []byte {
	b = appendEvent(append(b, `{"event":`...), &a.Event)
	b = appendReservation(name(b, "reservation"), &a.Reservation)
	if len(a.Rates) > 0 {
		b = list(name(b, "rates"), a.Rates, appendRate)
	}
	return append(flag(b, "decision", a.Decision), '}')
}

// appendEvent appends e as JSON.
func appendEvent(b []byte, e *Event) []byte {
	b = number(append(b, '{'), "v", int64(e.Version))
	for _, x := range [...]struct {
		name string
		id   uuid.UUID
	}{
		{"id", e.ID},
		{"request_id", e.RequestID},
		{"tenant", e.Tenant},
		{"customer", e.Customer},
		{"subscription", e.Subscription},
		{"plan_version", e.PlanVersion},
		{"key", e.Key},
		{"counter", e.Counter},
		{"provider_key", e.ProviderKey},
		{"corrects", e.Corrects},
	} {
		b = ident(b, x.name, x.id)
	}
	b = words(b, "end_user", e.EndUser)
	if len(e.Tags) > 0 {
		b = append(name(b, "tags"), '{')
		for _, tag := range slices.Sorted(maps.Keys(e.Tags)) {
			b = quote(given(b, tag), e.Tags[tag])
		}
		b = append(b, '}')
	}
	b = words(words(words(b, "model_asked", e.ModelAsked), "model_served", e.ModelServed), "kind", e.Kind)
	b = flag(b, "stream", e.Stream)
	b = instant(instant(instant(b, "started_at", e.StartedAt), "ended_at", e.EndedAt), "local_day", e.LocalDay)
	b = number(number(words(b, "outcome", string(e.Outcome)), "requests", e.Requests), "refused", e.Refused)
	b = appendTokens(name(b, "tokens"), e.Tokens)
	b = words(number(b, "units", e.Units), "estimated", e.Estimated)
	b = number(appendCost(name(b, "estimate"), e.Estimate), "guess", e.Guess)
	if len(e.Attempts) > 0 {
		b = list(name(b, "attempts"), e.Attempts, appendAttempt)
	}
	if len(e.Charges) > 0 {
		b = list(name(b, "charges"), e.Charges, appendCharge)
	}
	b = rare(b, "refusal", e.Refusal)
	b = rare(b, "unsettled", e.Unsettled)
	b = append(append(append(name(b, "charge_pico"), '"'), e.Charge.String()...), '"')
	b = words(b, "currency", e.Currency)
	if e.Cost != nil {
		b = append(append(append(name(b, "cost_pico"), '"'), e.Cost.String()...), '"')
	}
	b = words(b, "cost_currency", e.CostCurrency)
	if len(e.Prices) > 0 {
		b = list(name(b, "prices"), e.Prices, func(b []byte, id *uuid.UUID) []byte { return appendID(b, *id) })
	}
	return append(words(flag(flag(b, "test", e.Test), "self_reported", e.SelfReported), "settled", string(e.Settled)), '}')
}

// rare writes by the library what few events have.
func rare[T any](b []byte, of string, v *T) []byte {
	if v == nil {
		return b
	}
	body, err := encode(v)
	if err != nil {
		panic(err) // of types that are our own
	}
	return append(name(b, of), body...)
}

func appendReservation(b []byte, r *limits.Reservation) []byte {
	b = words(ident(ident(append(b, '{'), "id", r.ID), "tenant", r.Tenant), "model", r.Model)
	b = instant(instant(b, "at", r.At), "expires_at", r.ExpiresAt)
	b = appendCost(name(b, "estimate"), r.Estimate)
	b = list(name(b, "holds"), r.Holds, appendHold)
	b = number(b, "moves", int64(r.Moves))
	if r.Once != (limits.Once{}) {
		b = append(ident(ident(append(name(b, "once"), '{'), "key", r.Once.Key), "body", r.Once.Body), '}')
	}
	return append(b, '}')
}

func appendHold(b []byte, h *limits.Hold) []byte {
	b = words(appendLimit(append(b, `{"limit":`...), &h.Limit), "ledger", h.Ledger)
	b = number(number(b, "amount", h.Amount), "pico", h.Pico)
	b = instant(instant(b, "window_start", h.WindowStart), "window_end", h.WindowEnd)
	return append(flag(flag(b, "candidate", h.Candidate), "ended", h.Ended), '}')
}

func appendLimit(b []byte, l *limits.Limit) []byte {
	b = ident(append(b, '{'), "id", l.ID)
	if l.Scope != (limits.Scope{}) {
		b = append(name(b, "scope"), '{')
		b = append(words(ident(words(b, "kind", string(l.Scope.Kind)), "id", l.Scope.ID), "name", l.Scope.Name), '}')
	}
	b = words(words(words(b, "dimension", string(l.Dimension)), "window", string(l.Window)), "policy", string(l.Policy))
	b = number(number(b, "amount", l.Amount), "burst", l.Burst)
	if len(l.Models) > 0 {
		b = list(name(b, "models"), l.Models, func(b []byte, s *string) []byte { return quote(b, *s) })
	}
	b = flag(b, "each_model", l.EachModel)
	if len(l.Weights) > 0 {
		b = append(name(b, "weights"), '{')
		for _, class := range slices.Sorted(maps.Keys(l.Weights)) {
			b = strconv.AppendInt(given(b, string(class)), l.Weights[class], 10)
		}
		b = append(b, '}')
	}
	b = words(words(words(b, "mode", string(l.Mode)), "outage", string(l.Outage)), "zone", l.Zone)
	if len(l.PastZones) > 0 {
		b = list(name(b, "past_zones"), l.PastZones, func(b []byte, z *limits.PastZone) []byte {
			return append(number(words(append(b, '{'), "zone", z.Zone), "until_ms", z.UntilMS), '}')
		})
	}
	return append(b, '}')
}

func appendCost(b []byte, c limits.Cost) []byte {
	b = number(number(append(b, '{'), "requests", c.Requests), "units", c.Units)
	b = appendTokens(name(b, "tokens"), c.Tokens)
	return append(number(number(b, "charge_pico", c.ChargePico), "provider_pico", c.ProviderPico), '}')
}

func appendTokens(b []byte, t limits.Tokens) []byte {
	b = number(number(number(append(b, '{'), "input_tokens", t.Input), "cached_input_tokens", t.CachedInput), "cache_write_tokens", t.CacheWrite)
	return append(number(number(b, "output_tokens", t.Output), "reasoning_tokens", t.Reasoning), '}')
}

func appendAttempt(b []byte, a *Attempt) []byte {
	b = words(ident(words(append(b, '{'), "provider", a.Provider), "provider_key", a.ProviderKey), "model", a.Model)
	b = words(number(b, "status", int64(a.Status)), "error", a.Error)
	b = instant(instant(b, "started_at", a.StartedAt), "ended_at", a.EndedAt)
	return append(words(appendTokens(name(b, "tokens"), a.Tokens), "reported", a.Reported), '}')
}

func appendCharge(b []byte, c *limits.Charge) []byte {
	b = instant(words(append(b, '{'), "ledger", c.Ledger), "window_start", c.WindowStart)
	return append(number(number(b, "amount", c.Amount), "pico", c.Pico), '}')
}

func appendRate(b []byte, r *Rate) []byte {
	b = words(ident(append(b, '{'), "price", r.Price), "class", string(r.Class))
	return append(number(b, "micros_per_million", r.MicrosPerMillion), '}')
}

// name begins a member of an object.
func name(b []byte, s string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), s...), '"', ':')
}

// given is name for one that is not ours.
func given(b []byte, s string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(quote(b, s), ':')
}

// The members below are left out where they are zero, as they are read.

func number(b []byte, of string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(name(b, of), n, 10)
}

func words(b []byte, of, s string) []byte {
	if s == "" {
		return b
	}
	return quote(name(b, of), s)
}

func flag(b []byte, of string, on bool) []byte {
	if !on {
		return b
	}
	return append(name(b, of), "true"...)
}

func instant(b []byte, of string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return append(t.AppendFormat(append(name(b, of), '"'), time.RFC3339Nano), '"')
}

func ident(b []byte, of string, id uuid.UUID) []byte {
	if id == uuid.Nil {
		return b
	}
	return appendID(name(b, of), id)
}

func appendID(b []byte, id uuid.UUID) []byte {
	b = hex.AppendEncode(append(b, '"'), id[:4])
	b = hex.AppendEncode(append(b, '-'), id[4:6])
	b = hex.AppendEncode(append(b, '-'), id[6:8])
	b = hex.AppendEncode(append(b, '-'), id[8:10])
	return append(hex.AppendEncode(append(b, '-'), id[10:]), '"')
}

// quote replaces what is no UTF-8. Nearly every text needs no look at what it
// means.
func quote(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func list[T any](b []byte, items []T, one func([]byte, *T) []byte) []byte {
	if items == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, &items[i])
	}
	return append(b, ']')
}
