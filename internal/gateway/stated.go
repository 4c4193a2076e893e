package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalogue"
	"weir/internal/limits"
)

// stated is what a provider's answer says of its own limits.
type stated struct {
	status  int // of a 200 with an error inside, the error's
	wait    time.Duration
	limits  []limits.Statement
	daily   limits.Daily
	message limits.Message
	detail  string // the quota that it names
}

// readStated reads the headers of an answer, and the body of one that is an
// error (nil elsewhere). A failure is classified by its status alone; the body
// counts for numbers in a form that is known, and where the status says nothing.
// Of a wait, the longest that is stated counts; a reset, which is the time until
// full, only where no wait is, and only of what is spent.
func readStated(status int, h http.Header, body []byte, q catalogue.Quirks, now time.Time) stated {
	rates := readRates(h, q, now)
	s := stated{status: status}
	for _, r := range rates {
		if r.Amount > 0 {
			s.limits = append(s.limits, r.Statement)
		}
	}
	s.daily = dailyOf(rates)
	s.wait, _ = statedWait(h, now)
	if body != nil {
		s.readBody(readError(body), q)
	}
	if s.wait == 0 && s.status == http.StatusTooManyRequests {
		s.wait = spentReset(rates, h, now)
	}
	return s
}

// rate is one family of rate-limit headers.
type rate struct {
	limits.Statement
	reset time.Duration // until full; 0: not stated
}

// dailyOf is what day counters say; a spent one decides.
func dailyOf(rates []rate) limits.Daily {
	daily := limits.DailyUnknown
	for _, r := range rates {
		switch {
		case r.Window != limits.WindowDay || r.Left < 0:
		case r.Left == 0:
			return limits.DailySpent
		default:
			daily = limits.DailyLeft
		}
	}
	return daily
}

// spentReset is the longest reset of what is spent. X-RateLimit-Reset without a
// dimension (OpenRouter, and many others) counts where nothing else does.
func spentReset(rates []rate, h http.Header, now time.Time) (wait time.Duration) {
	for _, r := range rates {
		if r.Left == 0 {
			wait = max(wait, r.reset)
		}
	}
	if wait == 0 && h.Get("X-Ratelimit-Remaining") == "0" {
		wait, _ = readReset(h.Get("X-Ratelimit-Reset"), now)
	}
	return min(wait, limits.LongestWait)
}

// The header families. OpenAI and compatible: x-ratelimit-limit-requests; Mistral
// names the window; Anthropic's are per minute (wire-formats, 1, 2 and 4).
var rateFamilies = []struct {
	limit, left, reset string
	dimension          limits.Dimension
	window             limits.Window // "": to be worked out
}{
	{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", limits.DimensionRequests, ""},
	{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", limits.DimensionTokens, ""},
	{"X-Ratelimit-Limit-Req-Minute", "X-Ratelimit-Remaining-Req-Minute", "", limits.DimensionRequests, limits.WindowMinute},
	{"X-Ratelimit-Limit-Tokens-Minute", "X-Ratelimit-Remaining-Tokens-Minute", "", limits.DimensionTokens, limits.WindowMinute},
	{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset", limits.DimensionRequests, limits.WindowMinute},
	{"Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset", limits.DimensionInputTokens, limits.WindowMinute},
	{"Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset", limits.DimensionOutputTokens, limits.WindowMinute},
	{"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset", limits.DimensionTokens, limits.WindowMinute},
}

// readRates reads every family that is there. Anthropic's combined tokens are
// whichever of the two is tighter, so they count only by themselves.
func readRates(h http.Header, q catalogue.Quirks, now time.Time) (out []rate) {
	split := h.Get("Anthropic-Ratelimit-Input-Tokens-Limit") != "" || h.Get("Anthropic-Ratelimit-Output-Tokens-Limit") != ""
	for _, f := range rateFamilies {
		if h[f.limit] == nil {
			continue
		}
		amount, ok := figure(h.Get(f.limit))
		if !ok || split && f.limit == "Anthropic-Ratelimit-Tokens-Limit" {
			continue
		}
		r := rate{Statement: limits.Statement{Dimension: f.dimension, Window: f.window, Amount: amount, Left: -1, From: limits.FromHeader, Detail: strings.ToLower(f.limit)}}
		if left, ok := figure(h.Get(f.left)); ok {
			r.Left = left
		}
		r.reset, _ = readReset(h.Get(f.reset), now)
		if r.Window == "" {
			r.Window = windowOf(r, q)
		}
		out = append(out, r)
	}
	return out
}

// windowOf works out what window a limit is for whose header does not say. A
// bucket refills the whole amount in its window, so what is missing and the time
// until full give its length; a fixed window ends within its length.
func windowOf(r rate, q catalogue.Quirks) limits.Window {
	if r.Dimension == limits.DimensionRequests && q.RequestsPerDay {
		return limits.WindowDay
	}
	if r.reset > 0 && r.Left >= 0 && r.Left < r.Amount {
		length := time.Duration(float64(r.reset) * (float64(r.Amount) / float64(r.Amount-r.Left)))
		if length > 20*time.Hour && length < 28*time.Hour {
			return limits.WindowDay
		}
	}
	if r.reset > 2*time.Minute {
		return limits.WindowDay
	}
	return limits.WindowMinute
}

// figure is a count: no sign, no fraction, at most 10^15. Azure sends −1 where it
// does not know.
func figure(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n, err == nil && n >= 0 && n <= 1e15
}

// readReset reads when something is full again, as a time from now: OpenAI's
// durations ("6m0s", "12ms", "1d2h"), seconds, RFC 3339, and an instant in
// seconds or milliseconds of the epoch. ok is false for anything else, and for
// what has passed.
func readReset(s string, now time.Time) (wait time.Duration, ok bool) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case n >= 1e12 && n < 1e14:
			wait = time.UnixMilli(int64(n)).Sub(now)
		case n >= 1e9 && n < 1e11:
			wait = time.Unix(int64(n), 0).Sub(now)
		case n > 0 && n < 1e9:
			wait = time.Duration(min(n*float64(time.Second), float64(2*limits.LongestWait)))
		}
	} else if d, err := readDuration(s); err == nil {
		wait = d
	} else if at, err := time.Parse(time.RFC3339, s); err == nil {
		wait = at.Sub(now)
	}
	return min(wait, 2*limits.LongestWait), wait > 0
}

// readDuration is time.ParseDuration with days, at most two of them.
func readDuration(s string) (time.Duration, error) {
	var days time.Duration
	if n, rest, found := strings.Cut(s, "d"); found {
		count, err := strconv.ParseUint(n, 10, 8)
		if err != nil {
			return 0, err
		}
		days = min(time.Duration(count)*24*time.Hour, 2*limits.LongestWait)
		if s = rest; s == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(s)
	return days + min(d, 2*limits.LongestWait), err
}
