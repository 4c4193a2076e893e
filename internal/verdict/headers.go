// Package verdict tells a decision of the limits engine over HTTP, alike on
// every surface: the rate-limit headers, the refusing limit as an object, and
// the sentence that a person reads.
package verdict

import (
	"net/http"
	"strconv"
	"time"

	"weir/internal/limits"
)

// Headers sets, on an answer of any status, OpenAI's six x-ratelimit headers
// and the two of draft-ietf-httpapi-ratelimit-headers. They describe the
// caller's own binding limits: in each dimension the one with the smallest share
// left, and no limit in shadow mode. Limits of provider keys and pools are never
// shown. Where there is no limit, its headers are absent.
func Headers(h http.Header, states []limits.State) {
	var binding, named []*limits.State
	for i := range states {
		if s := &states[i]; shown(s) {
			binding = bind(binding, s, sameDimension)
			named = bind(named, s, sameName)
		}
	}
	values := make([]string, 0, 8) // one piece of memory for all of them
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	for _, s := range binding {
		if names, known := perDimension[s.Limit.Dimension]; known {
			set(names.limit, strconv.FormatInt(ceiling(s), 10))
			set(names.remaining, strconv.FormatInt(s.Remaining, 10))
			set(names.reset, Duration(s.Full))
		}
	}
	if len(named) == 0 {
		return
	}
	var policy, left [256]byte
	p, l := policy[:0], left[:0]
	for i, s := range named {
		if i > 0 {
			p, l = append(p, ", "...), append(l, ", "...)
		}
		p, l = appendPolicy(p, s), appendLeft(l, s)
	}
	set("Ratelimit-Policy", string(p))
	set("Ratelimit", string(l))
}

// perDimension are OpenAI's headers, as net/http spells them.
var perDimension = map[limits.Dimension]struct{ limit, remaining, reset string }{
	limits.DimensionRequests: {"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	limits.DimensionTokens:   {"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
}

// RetryAfter sets how long to wait: whole seconds rounded up, at least one, and
// the exact milliseconds.
func RetryAfter(h http.Header, wait time.Duration) {
	ms := max((wait+time.Millisecond-1)/time.Millisecond, 1)
	h.Set("Retry-After", strconv.FormatInt(seconds(wait), 10))
	h.Set("retry-after-ms", strconv.FormatInt(int64(ms), 10))
}

func seconds(d time.Duration) int64 { return int64(max((d+time.Second-1)/time.Second, 1)) }

// shown tells whether a limit is told to the caller: its own, of those that
// refuse and have a window.
func shown(s *limits.State) bool {
	k := s.Limit.Scope.Kind
	return k != limits.ScopeProviderKey && k != limits.ScopePool && s.Limit.Policy != limits.PolicyGauge && s.Limit.Mode != limits.ModeShadow
}

// bind keeps, of the limits that are the same to a reader, the one with the
// smallest share left.
func bind(list []*limits.State, s *limits.State, same func(a, b *limits.State) bool) []*limits.State {
	for i, x := range list {
		if same(x, s) {
			if tighter(s, x) {
				list[i] = s
			}
			return list
		}
	}
	return append(list, s)
}

func sameDimension(a, b *limits.State) bool { return a.Limit.Dimension == b.Limit.Dimension }

func sameName(a, b *limits.State) bool {
	return sameDimension(a, b) && a.Limit.Window == b.Limit.Window
}

// tighter compares shares by cross multiplication in floating point: an order
// for display, not a figure. Nothing is tighter than a limit that admits nothing.
func tighter(a, b *limits.State) bool {
	if ceiling(a) == 0 || ceiling(b) == 0 {
		return ceiling(b) != 0
	}
	return float64(a.Remaining)*float64(ceiling(b)) < float64(b.Remaining)*float64(ceiling(a))
}

func ceiling(s *limits.State) int64 {
	if s.Limit.Policy == limits.PolicyBucket && s.Limit.Burst > 0 {
		return s.Limit.Burst
	}
	return s.Limit.Amount
}

// short are the names of limits in the IETF headers: requests, tokens, input,
// output, units or spend per minute, day, month or 24 hours.
var (
	shortDimension = map[limits.Dimension]string{
		limits.DimensionRequests: "rp", limits.DimensionTokens: "tp", limits.DimensionInputTokens: "itp",
		limits.DimensionOutputTokens: "otp", limits.DimensionUnits: "up", limits.DimensionSpend: "sp",
	}
	shortWindow = map[limits.Window]string{limits.WindowMinute: "m", limits.WindowDay: "d", limits.WindowMonth: "mo", limits.WindowRollingDay: "24h"}
)

func appendShort(b []byte, s *limits.State) []byte {
	b = append(append(b, '"'), shortDimension[s.Limit.Dimension]...)
	return append(append(b, shortWindow[s.Limit.Window]...), '"')
}

func appendMember(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(append(append(b, ';'), name...), '='), n, 10)
}

func appendPolicy(b []byte, s *limits.State) []byte {
	b = appendMember(appendShort(b, s), "q", ceiling(s))
	if s.Limit.Dimension != limits.DimensionRequests {
		b = append(append(append(b, `;qu="`...), s.Limit.Dimension...), '"')
	}
	w := int64(60)
	switch {
	case s.Limit.Window == limits.WindowRollingDay:
		w = 86400
	case !s.WindowStart.IsZero():
		w = int64(s.ResetAt.Sub(s.WindowStart) / time.Second)
	}
	return appendMember(b, "w", w)
}

// appendLeft says in t when there is more: for a refusing limit when the call
// fits, for a bucket when the next permit comes, for a calendar window its end.
func appendLeft(b []byte, s *limits.State) []byte {
	b = appendMember(appendShort(b, s), "r", s.Remaining)
	switch {
	case s.RetryAfter > 0:
		return appendMember(b, "t", seconds(s.RetryAfter))
	case s.Limit.Policy == limits.PolicyBucket && s.Full > 0 && s.Limit.Amount > 0:
		return appendMember(b, "t", seconds(min(s.Full, permits(s.Debt+1, s.Limit.Amount))))
	case s.Full > 0:
		return appendMember(b, "t", seconds(s.Full))
	}
	return b
}

// permits is how long n of them take at so many a minute, at most: in floating
// point, since it is told in whole seconds.
func permits(n, perMinute int64) time.Duration {
	return time.Duration(float64(n) / float64(perMinute) * float64(time.Minute))
}

// Duration writes a reset as OpenAI does: 6m0s, 1s, 230ms, rounded up to the
// millisecond.
func Duration(d time.Duration) string {
	d = (d + time.Millisecond - 1).Truncate(time.Millisecond)
	return d.String()
}
