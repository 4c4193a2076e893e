package upstreamtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

var someWords = []string{"A", " weir", " holds", " a", " flow", "."}

// asked is what matters of a chat completion.
type asked struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Options struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func (u *Upstream) answer(w http.ResponseWriter, r *http.Request, c Call, s Script) {
	if s.Hang {
		u.hang(r)
	}
	if s.Hang || !u.wait(r, s.Delay) || !u.gate(r, s.Wait) {
		panic(http.ErrAbortHandler)
	}
	var call asked
	if err := json.Unmarshal(c.Body, &call); err != nil {
		s = Fail(http.StatusBadRequest, "invalid_request_error", "bad_json", "The body is not JSON.")
	}
	for name, values := range s.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	switch {
	case s.Body != "":
		u.plain(w, s, strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer "))
	case call.Stream:
		u.stream(w, r, s, call)
	default:
		u.whole(w, r, s, call)
	}
}

// wait pauses, and tells whether anybody still waits for the answer.
func (u *Upstream) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-u.closed:
	}
	return false
}

func (u *Upstream) gate(r *http.Request, open <-chan struct{}) bool {
	if open == nil {
		return true
	}
	select {
	case <-open:
		return true
	case <-r.Context().Done():
	case <-u.closed:
	}
	return false
}

func (u *Upstream) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-u.closed:
	}
}

func (u *Upstream) plain(w http.ResponseWriter, s Script, key string) {
	body := s.Body
	if s.echo != "" {
		body = strings.ReplaceAll(body, s.echo, key)
	}
	begin(w, s, "application/json")
	_, _ = w.Write([]byte(body))
}

func begin(w http.ResponseWriter, s Script, contentType string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", contentType)
	}
	if s.Status == 0 {
		s.Status = http.StatusOK
	}
	w.WriteHeader(s.Status)
}

func (s Script) words() []string {
	if s.Words == nil {
		return someWords
	}
	return s.Words
}

// usage is the object that the answer states; "" for none.
func (s Script) usage(call asked) string {
	switch s.Usage {
	case "":
		prompt := Prompt(call.contents()...)
		return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, prompt, len(s.words()), prompt+len(s.words()))
	case Absent:
		return ""
	}
	return s.Usage
}

func (a asked) contents() (out []string) {
	for _, m := range a.Messages {
		out = append(out, string(m.Content))
	}
	return out
}

// Prompt is what the honest provider counts for messages with these contents
// (as JSON): a token for each started four bytes, and three around each message.
func Prompt(contents ...string) int {
	n := 0
	for _, c := range contents {
		n += 3 + (len(c)+3)/4
	}
	return n
}

func (u *Upstream) whole(w http.ResponseWriter, r *http.Request, s Script, call asked) {
	content, _ := json.Marshal(strings.Join(s.words(), ""))
	usage := ""
	if v := s.usage(call); v != "" {
		usage = `,"usage":` + v
	}
	body := fmt.Sprintf(`{"id":"chatcmpl-test","object":"chat.completion","created":1764547200,"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]%s}`,
		call.Model, content, usage)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	begin(w, s, "application/json")
	if s.Cut+s.Stall > 0 {
		_, _ = io.WriteString(w, body[:len(body)/2])
		_ = http.NewResponseController(w).Flush() // a caller that left is noticed below
		if s.Stall > 0 {
			u.hang(r)
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, body)
}

func writeModels(w http.ResponseWriter) {
	var list []string
	for _, m := range Models {
		list = append(list, fmt.Sprintf(`{"id":%q,"object":"model","created":1764547200,"owned_by":"upstreamtest"}`, m))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s]}`, strings.Join(list, ","))
}
