package web

import (
	"net/http"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
)

// refusalStory is a refusal as its caller read it, explained.
type refusalStory struct {
	At      time.Time // in the tenant's zone
	Status  int
	Lines   []headerLine
	Message string
	Code    string
	Href    string // the call's own page
}

// headerLine is a header of an answer, with what it means.
type headerLine struct {
	Name, Value, Says string
	Hot               bool
}

// refusalHeaders are the headers of a refusal, in the order to read them.
var refusalHeaders = []headerLine{
	{Name: "retry-after-ms", Says: "The exact wait for this very call. The official SDKs sleep just that long.", Hot: true},
	{Name: "retry-after", Says: "The same in whole seconds, for everyone else."},
	{Name: "x-should-retry", Hot: true},
	{Name: "x-ratelimit-limit-requests", Says: "The caller’s closest limit on requests: the most that it lets through at once."},
	{Name: "x-ratelimit-remaining-requests", Says: "What is left of it for the next call."},
	{Name: "x-ratelimit-reset-requests", Says: "How long until it is full again, if nobody calls."},
	{Name: "x-ratelimit-limit-tokens", Says: "The caller’s closest limit on tokens: the most that it lets through at once."},
	{Name: "x-ratelimit-remaining-tokens", Says: "What is left of it for the next call."},
	{Name: "x-ratelimit-reset-tokens", Says: "How long until it is full again, if nobody calls."},
	{Name: "ratelimit-policy", Says: "The limits as the IETF’s draft writes them: q is what one admits, w its window in seconds, qu what it counts."},
	{Name: "ratelimit", Says: "The same limits as they stand: r is what is left, t the seconds until there is more."},
	{Name: "x-request-id", Says: "Leads to the page of this call, with every limit that it touched."},
}

// headerLines explains the headers of an answer that are there.
func headerLines(h http.Header, code string) (out []headerLine) {
	for _, line := range refusalHeaders {
		if line.Value = h.Get(line.Name); line.Value == "" {
			continue
		}
		if line.Name == "x-should-retry" {
			line.Says = retrySays(code)
		}
		out = append(out, line)
	}
	return out
}

func retrySays(code string) string {
	switch code {
	case "request_too_large":
		return "Waiting does not help: a call of this size never fits."
	case "insufficient_quota":
		return "Waiting a moment does not help: the cap starts anew with the next day or month. SDKs stop."
	}
	return "Waiting helps. At a day’s cap or a limit of 0 it says false, and SDKs stop."
}

// refusalOf writes a stored refusal as the gateway answered it: the figures and
// headers of the limits that refused. Those of the caller's other limits came
// with the answer and are not kept.
func refusalOf(e usage.Event, now time.Time) *refusalStory {
	request := id.Request.Format(e.RequestID)
	s := &refusalStory{At: e.StartedAt.In(now.Location()), Status: http.StatusTooManyRequests, Href: "/requests/" + request}
	h := http.Header{}
	h.Set("x-request-id", request)
	if e.Refusal != nil && len(e.Refusal.Limits) > 0 {
		s.tell(h, *e.Refusal, e)
	}
	s.Lines = headerLines(h, s.Code)
	return s
}

func (s *refusalStory) tell(h http.Header, r usage.Refusal, e usage.Event) {
	d := limits.Decision{RetryAfter: r.RetryAfter, TooLarge: r.Code == "request_too_large", ProviderFull: r.Code == "provider_capacity"}
	for _, l := range r.Limits {
		v := limits.State{
			Limit: l.Limit, Used: l.Used, Remaining: l.Remaining, Requested: l.Requested, ResetAt: l.ResetAt,
			WindowStart: l.WindowStart, Full: l.Full, RetryAfter: l.RetryAfter, Never: d.TooLarge,
		}
		if v.Full == 0 && !v.ResetAt.IsZero() {
			v.Full = max(v.ResetAt.Sub(e.StartedAt), 0)
		}
		d.Violations = append(d.Violations, v)
	}
	s.Message, s.Code = verdict.Sentence(d, e.ModelAsked), r.Code
	retry := "true"
	switch r.Code {
	case "request_too_large":
		s.Status, retry = http.StatusRequestEntityTooLarge, "false"
	case "daily_cap_reached", "spend_cap_reached":
		s.Code, retry = "insufficient_quota", "false"
	case "provider_capacity":
		s.Status = http.StatusServiceUnavailable
	}
	if !d.TooLarge {
		verdict.RetryAfter(h, r.RetryAfter)
	}
	h.Set("x-should-retry", retry)
	verdict.Headers(h, d.Violations)
}
