package upstreamtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// stream sends the events of a script. A cut breaks the connection in the
// middle of the answer's framing, as a dying provider does.
func (u *Upstream) stream(w http.ResponseWriter, r *http.Request, s Script, call asked) {
	end := s.EndLine
	if end == "" {
		end = "\n"
	}
	begin(w, s, "text/event-stream")
	control := http.NewResponseController(w)
	send := func(payload string) {
		_, _ = io.WriteString(w, "data: "+payload+end+end)
		_ = control.Flush() // a caller that left is noticed at the next pause
	}
	for i, payload := range s.events(call) {
		if s.Cut > 0 && i == s.Cut || !u.wait(r, s.Pause) {
			panic(http.ErrAbortHandler)
		}
		if s.Stall > 0 && i == s.Stall {
			u.hang(r)
			panic(http.ErrAbortHandler)
		}
		send(payload)
	}
	if !s.NoDone {
		send("[DONE]")
	}
}

func (s Script) events(call asked) []string {
	if s.Events != nil {
		return s.Events
	}
	out := []string{chunk(`{"role":"assistant","content":""}`, "")}
	for _, word := range s.words() {
		content, _ := json.Marshal(word)
		out = append(out, chunk(`{"content":`+string(content)+`}`, ""))
	}
	out = append(out, chunk(`{}`, "stop"))
	if usage := s.usage(call); usage != "" && call.Options.IncludeUsage {
		out = append(out, `{"id":"chatcmpl-test","object":"chat.completion.chunk","created":1764547200,"model":"test-small","choices":[],"usage":`+usage+`}`)
	}
	return out
}

func chunk(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return fmt.Sprintf(`{"id":"chatcmpl-test","object":"chat.completion.chunk","created":1764547200,"model":"test-small","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, reason)
}
