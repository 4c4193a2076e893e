// Package verdict tells a decision of the limits engine over HTTP, alike on
// every surface: the rate-limit headers, the refusing limit as an object, and
// the sentence that a person reads.
package verdict

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/limits"
)

// Headers sets, on an answer of any status, OpenAI's six x-ratelimit headers
// and the two of draft-ietf-httpapi-ratelimit-headers. They describe the
// caller's own binding limits: in each dimension the one with the smallest share
// left, and no limit in shadow mode. Limits of provider keys and pools are never shown. Where there is no
// limit, its headers are absent.
func Headers(h http.Header, states []limits.State) {
	own := callers(states)
	for _, d := range []limits.Dimension{limits.DimensionRequests, limits.DimensionTokens} {
		if s, found := binding(own, func(s limits.State) bool { return s.Limit.Dimension == d }); found {
			h.Set("x-ratelimit-limit-"+string(d), strconv.FormatInt(ceiling(s), 10))
			h.Set("x-ratelimit-remaining-"+string(d), strconv.FormatInt(s.Remaining, 10))
			h.Set("x-ratelimit-reset-"+string(d), Duration(s.Full))
		}
	}
	var policy, left []string
	for _, name := range names(own) {
		s, _ := binding(own, func(s limits.State) bool { return short(s.Limit) == name })
		policy = append(policy, policyItem(name, s))
		left = append(left, leftItem(name, s))
	}
	if len(policy) > 0 {
		h.Set("RateLimit-Policy", strings.Join(policy, ", "))
		h.Set("RateLimit", strings.Join(left, ", "))
	}
}

// RetryAfter sets how long to wait: whole seconds rounded up, at least one, and
// the exact milliseconds.
func RetryAfter(h http.Header, wait time.Duration) {
	ms := max((wait+time.Millisecond-1)/time.Millisecond, 1)
	h.Set("Retry-After", strconv.FormatInt(seconds(wait), 10))
	h.Set("retry-after-ms", strconv.FormatInt(int64(ms), 10))
}

func seconds(d time.Duration) int64 { return int64(max((d+time.Second-1)/time.Second, 1)) }

func callers(states []limits.State) []limits.State {
	var out []limits.State
	for _, s := range states {
		k := s.Limit.Scope.Kind
		if k != limits.ScopeProviderKey && k != limits.ScopePool && s.Limit.Policy != limits.PolicyGauge && s.Limit.Mode != limits.ModeShadow {
			out = append(out, s)
		}
	}
	return out
}

// binding is the state with the smallest share left among those that match.
func binding(states []limits.State, match func(limits.State) bool) (best limits.State, found bool) {
	for _, s := range states {
		if match(s) && (!found || tighter(s, best)) {
			best, found = s, true
		}
	}
	return best, found
}

// tighter compares shares by cross multiplication in floating point: an order
// for display, not a figure. Nothing is tighter than a limit that admits nothing.
func tighter(a, b limits.State) bool {
	if ceiling(a) == 0 || ceiling(b) == 0 {
		return ceiling(b) != 0
	}
	return float64(a.Remaining)*float64(ceiling(b)) < float64(b.Remaining)*float64(ceiling(a))
}

func ceiling(s limits.State) int64 {
	if s.Limit.Policy == limits.PolicyBucket && s.Limit.Burst > 0 {
		return s.Limit.Burst
	}
	return s.Limit.Amount
}

// short is a limit's name in the IETF headers: requests, tokens, input, output, units or
// spend per minute, day, month or 24 hours.
func short(l limits.Limit) string {
	d := map[limits.Dimension]string{
		limits.DimensionRequests: "rp", limits.DimensionTokens: "tp", limits.DimensionInputTokens: "itp",
		limits.DimensionOutputTokens: "otp", limits.DimensionUnits: "up", limits.DimensionSpend: "sp",
	}[l.Dimension]
	return d + map[limits.Window]string{limits.WindowMinute: "m", limits.WindowDay: "d", limits.WindowMonth: "mo", limits.WindowRollingDay: "24h"}[l.Window]
}

func names(states []limits.State) (out []string) {
	seen := map[string]bool{}
	for _, s := range states {
		if n := short(s.Limit); !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

func policyItem(name string, s limits.State) string {
	item := fmt.Sprintf("%q;q=%d", name, ceiling(s))
	if s.Limit.Dimension != limits.DimensionRequests {
		item += fmt.Sprintf(";qu=%q", s.Limit.Dimension)
	}
	w := int64(60)
	switch {
	case s.Limit.Window == limits.WindowRollingDay:
		w = 86400
	case !s.WindowStart.IsZero():
		w = int64(s.ResetAt.Sub(s.WindowStart) / time.Second)
	}
	return item + fmt.Sprintf(";w=%d", w)
}

// leftItem says in t when there is more: for a refusing limit when the call
// fits, for a bucket when the next permit comes, for a calendar window its end.
func leftItem(name string, s limits.State) string {
	item := fmt.Sprintf("%q;r=%d", name, s.Remaining)
	switch {
	case s.RetryAfter > 0:
		return item + fmt.Sprintf(";t=%d", seconds(s.RetryAfter))
	case s.Limit.Policy == limits.PolicyBucket && s.Full > 0 && s.Limit.Amount > 0:
		return item + fmt.Sprintf(";t=%d", seconds(min(s.Full, permits(s.Debt+1, s.Limit.Amount))))
	case s.Full > 0:
		return item + fmt.Sprintf(";t=%d", seconds(s.Full))
	}
	return item
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
