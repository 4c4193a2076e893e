package web

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/usage"
	"weir/web/ui"
)

// step is one moment of a call.
type step struct {
	When  string
	Tone  ui.Tone
	Title string
	Text  string
}

func (r requestPage) lastError() string {
	if n := len(r.Call.Attempts); n > 0 {
		return attemptWords(r.Call.Attempts[n-1])
	}
	return "no answer is kept"
}

func attemptWords(a usage.Attempt) string {
	words := "no answer"
	if a.Status > 0 {
		words = "status " + ui.Count(int64(a.Status))
	}
	if a.Error != "" {
		words += ", " + strings.ReplaceAll(a.Error, "_", " ")
	}
	return words
}

// steps are the call's story: reserved, tried, settled.
func (r requestPage) steps() []step {
	e := r.Call.Event
	after := func(t time.Time) string {
		if !t.After(e.StartedAt) {
			return "at once"
		}
		return "+" + ui.Wait(t.Sub(e.StartedAt).Round(10*time.Microsecond))
	}
	out := []step{{When: r.Call.At.Format("15:04:05.000"), Title: "Arrived", Text: r.arrived()}}
	if e.Outcome.Refused() {
		text := "Nothing was charged on any limit. No provider was asked."
		if e.Refusal == nil {
			return append(out, step{When: "at once", Tone: ui.Bad, Title: "Refused by " + limitWords(e.Outcome), Text: text})
		}
		out = append(out, step{When: "at once", Tone: ui.Bad, Title: "Refused by " + ui.Of(int64(len(e.Refusal.Limits)), "limit", "limits"), Text: text})
		status := "429"
		if e.Refusal.Code == "request_too_large" {
			status = "413"
		}
		if e.Refusal.Code == "provider_capacity" {
			status = "503"
		}
		answered := step{When: after(e.EndedAt), Title: "Answered " + status, Text: e.Refusal.Code}
		if e.Refusal.RetryAfter > 0 {
			answered.Text += ", retry after " + ui.Wait(e.Refusal.RetryAfter)
		}
		return append(out, answered)
	}
	est := e.Estimate.Tokens
	out = append(out, step{
		When: "at once", Title: "Reserved " + ui.Of(est.Total(), "token", "tokens"),
		Text: ui.Count(est.Input+est.CachedInput+est.CacheWrite) + " input, " + ui.Count(est.Output+est.Reasoning) + " output at most, on every limit in one step",
	})
	for i, a := range e.Attempts {
		out = append(out, r.attempt(i, a, after))
	}
	return append(out, r.ends(after)...)
}

func (r requestPage) arrived() string {
	e := r.Call.Event
	words := []string{e.Kind + " for " + e.ModelAsked}
	if e.Stream {
		words = append(words, "streamed")
	}
	if r.Call.Customer != "" {
		words = append(words, r.Call.Customer)
	}
	if r.Call.Key != "" {
		words = append(words, "key "+r.Call.Key)
	}
	if e.EndUser != "" {
		words = append(words, "end user "+e.EndUser)
	}
	return strings.Join(words, ", ")
}

func (r requestPage) attempt(i int, a usage.Attempt, after func(time.Time) string) step {
	s := step{When: after(a.StartedAt), Tone: ui.OK, Title: ordinal(i+1) + " attempt: " + attemptWords(a)}
	if len(r.Call.Attempts) == 1 {
		s.Title = "Attempt: " + attemptWords(a)
	}
	if a.Status < 200 || a.Status > 299 {
		s.Tone = ui.Bad
	}
	by := a.Model
	if a.Provider != "" { // else the caller's own call, as it says
		by += " at " + a.Provider
	}
	if r.May(seeProviderKeys) && a.ProviderKey != uuid.Nil {
		by += " with " + r.Names.name(id.ProviderKey, a.ProviderKey)
	}
	s.Text = by + ", " + ui.Wait(max(0, a.EndedAt.Sub(a.StartedAt)).Round(time.Millisecond))
	if a.Reported != "" {
		s.Tone, s.Text = ui.Warn, s.Text+". The provider says that it served "+a.Reported+"."
	}
	return s
}

// ends are how the call was closed in the books.
func (r requestPage) ends(after func(time.Time) string) []step {
	e := r.Call.Event
	last := step{When: after(e.EndedAt), Tone: ui.OK, Title: "Settled at " + ui.Of(e.Tokens.Total(), "token", "tokens")}
	switch {
	case e.Outcome == usage.Expired:
		last.Tone, last.Title, last.Text = ui.Warn, "Ran out", "Nobody said how it ended, so what was reserved stays charged."
	case e.Outcome != usage.OK:
		last.Tone = r.Call.Tone
		last.Text = outcomeWords(e.Outcome)
	}
	if given := e.Estimate.Tokens.Total() - e.Tokens.Total(); given > 0 && e.Outcome != usage.Expired {
		last.Text = strings.TrimPrefix(last.Text+", ", ", ") + ui.Of(given, "token", "tokens") + " given back"
	} else if given < 0 {
		last.Text = strings.TrimPrefix(last.Text+", ", ", ") + ui.Of(-given, "token", "tokens") + " above the estimate, carried as debt"
	}
	if e.Estimated != "" && e.Outcome != usage.Expired {
		last.Text = strings.TrimPrefix(last.Text+"; ", "; ") + "the tokens are estimated: " + strings.ReplaceAll(e.Estimated, "_", " ")
	}
	out := []step{last}
	for _, c := range r.Corrections {
		out = append(out, step{
			When: after(c.EndedAt), Tone: ui.Idle, Title: "Corrected by " + signed(c.Tokens.Total()) + " tokens",
			Text: "The outcome came after the reservation had run out. Sums are over both.",
		})
	}
	return out
}

func signed(n int64) string {
	if n > 0 {
		return "+" + ui.Count(n)
	}
	return ui.Count(n)
}
