package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
	"weir/web/ui"
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

// refusalOf writes a stored refusal as the gateway answered it: the same
// figures, and of the headers those that the figures decide.
func refusalOf(e usage.Event, now time.Time) *refusalStory {
	request := id.Request.Format(e.RequestID)
	s := &refusalStory{At: e.StartedAt.In(now.Location()), Status: http.StatusTooManyRequests, Href: "/requests/" + request}
	if e.Refusal != nil && len(e.Refusal.Limits) > 0 {
		s.tell(*e.Refusal, e.ModelAsked)
	}
	s.Lines = append(s.Lines, headerLine{Name: "x-request-id", Value: request, Says: "Leads to the page of this call, with every limit that it touched."})
	return s
}

func (s *refusalStory) tell(r usage.Refusal, model string) {
	d := limits.Decision{RetryAfter: r.RetryAfter, TooLarge: r.Code == "request_too_large", ProviderFull: r.Code == "provider_capacity"}
	for _, l := range r.Limits {
		d.Violations = append(d.Violations, limits.State{Limit: l.Limit, Used: l.Used, Remaining: l.Remaining, Requested: l.Requested, ResetAt: l.ResetAt, Never: d.TooLarge})
	}
	s.Message, s.Code = verdict.Sentence(d, model), r.Code
	retry, says := "true", "Waiting helps. At a day’s cap or a limit of 0 it says false, and SDKs stop."
	switch r.Code {
	case "request_too_large":
		s.Status, retry, says = http.StatusRequestEntityTooLarge, "false", "Waiting does not help: a call of this size never fits."
	case "daily_cap_reached", "spend_cap_reached":
		s.Code, retry, says = "insufficient_quota", "false", "Waiting a moment does not help: the cap starts anew with the next day or month. SDKs stop."
	case "provider_capacity":
		s.Status = http.StatusServiceUnavailable
	}
	if !d.TooLarge {
		h := http.Header{}
		verdict.RetryAfter(h, r.RetryAfter)
		s.Lines = append(s.Lines,
			headerLine{"retry-after-ms", h.Get("retry-after-ms"), "The exact wait for this very call. The official SDKs sleep just that long.", true},
			headerLine{"retry-after", h.Get("Retry-After"), "The same in whole seconds, for everyone else.", false})
	}
	s.Lines = append(s.Lines, headerLine{"x-should-retry", retry, says, true})
	s.room(r.Limits)
}

// room tells what was left of the first limit on requests or tokens that
// refused.
func (s *refusalStory) room(list []usage.Refusing) {
	for _, l := range list {
		d := l.Limit.Dimension
		if d != limits.DimensionRequests && d != limits.DimensionTokens || l.Limit.Policy == limits.PolicyGauge {
			continue
		}
		ceiling := max(l.Limit.Amount, l.Limit.Burst)
		s.Lines = append(s.Lines,
			headerLine{Name: "x-ratelimit-limit-" + string(d), Value: strconv.FormatInt(ceiling, 10), Says: "The limit that was closest: " + l.Limit.Label() + ", of the " + strings.ReplaceAll(string(l.Limit.Scope.Kind), "_", " ") + "."},
			headerLine{Name: "x-ratelimit-remaining-" + string(d), Value: strconv.FormatInt(l.Remaining, 10), Says: "What was left of it. The call asked for " + ui.Count(l.Requested) + "."})
		return
	}
}
