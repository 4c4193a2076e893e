package upstreamtest

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
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
	i := 0
	for payload := range s.events(call) {
		if s.Cut > 0 && i == s.Cut || !u.wait(r, s.Pause) {
			panic(http.ErrAbortHandler)
		}
		if s.Stall > 0 && i == s.Stall {
			u.hang(r)
			panic(http.ErrAbortHandler)
		}
		send(payload)
		i++
	}
	if !s.NoDone {
		send("[DONE]")
	}
}

// events are the payloads of the stream, made one by one.
func (s Script) events(call asked) iter.Seq[string] {
	if s.Events != nil {
		return slices.Values(s.Events)
	}
	return func(yield func(string) bool) {
		more := yield(chunk(`{"role":"assistant","content":""}`, ""))
		for _, word := range s.words() {
			content, _ := json.Marshal(word)
			more = more && yield(chunk(`{"content":`+string(content)+`}`, ""))
		}
		more = more && yield(chunk(`{}`, "stop"))
		if usage := s.usage(call); more && usage != "" && call.Options.IncludeUsage {
			yield(`{"id":"chatcmpl-test","object":"chat.completion.chunk","created":1764547200,"model":"test-small","choices":[],"usage":` + usage + `}`)
		}
	}
}

func chunk(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return fmt.Sprintf(`{"id":"chatcmpl-test","object":"chat.completion.chunk","created":1764547200,"model":"test-small","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, reason)
}
