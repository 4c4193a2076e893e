package upstreamtest

import (
	"encoding/json"
	"io"
	"iter"
	"net/http"

	"weir/internal/catalogue/mimic"
)

// stream sends the steps of a script. A cut breaks the connection in the middle
// of the answer's framing, as a dying provider does.
func (u *Upstream) stream(w http.ResponseWriter, r *http.Request, s Script, c mimic.Call, reply mimic.Reply) {
	end := s.EndLine
	if end == "" {
		end = "\n"
	}
	begin(w, s, "text/event-stream")
	control := http.NewResponseController(w)
	i := 0
	for step := range s.steps(c, reply) {
		if step.Last && s.NoDone {
			continue
		}
		if !step.Last && (s.Cut > 0 && i == s.Cut || !u.wait(r, s.Pause)) {
			panic(http.ErrAbortHandler)
		}
		if !step.Last && s.Stall > 0 && i == s.Stall {
			u.hang(r)
			panic(http.ErrAbortHandler)
		}
		for _, e := range step.Events {
			_, _ = io.WriteString(w, e.Text(end))
			_ = control.Flush() // a caller that left is noticed at the next pause
		}
		i++
	}
}

// steps are those of an honest stream, or the payloads of the script.
func (s Script) steps(c mimic.Call, reply mimic.Reply) iter.Seq[mimic.Step] {
	if s.Events == nil {
		return c.Steps(reply)
	}
	return func(yield func(mimic.Step) bool) {
		for _, payload := range s.Events {
			if !yield(mimic.Step{Events: []mimic.Event{{Name: named(c.Route, payload), Data: payload}}}) {
				return
			}
		}
		if c.Route == mimic.Chat || c.Route == mimic.Completions {
			yield(mimic.Step{Events: []mimic.Event{{Data: "[DONE]"}}, Last: true})
		}
	}
}

// named is the name of an event on routes whose events have names: their type.
func named(route, payload string) string {
	if route != mimic.Messages && route != mimic.Responses {
		return ""
	}
	var e struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(payload), &e) // else it has no name
	return e.Type
}
