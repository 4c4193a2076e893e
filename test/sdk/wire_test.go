package sdk

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// wire is a transport that notes what went over the network, and holds every
// answer to the headers that all have.
type wire struct {
	t       testing.TB
	mu      sync.Mutex
	answers []*http.Response
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Origin", "https://app.example") // as from a page, which may read them
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.check(r, resp)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, resp)
	return resp, nil
}

// calls is how many HTTP calls were answered.
func (w *wire) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.answers)
}

func (w *wire) first() *http.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers[0]
}

func (w *wire) last() *http.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers[len(w.answers)-1]
}

// wait is how long the first answer has told the client to wait.
func (w *wire) wait() time.Duration {
	d, _ := time.ParseDuration(w.first().Header.Get("Retry-After-Ms") + "ms")
	return d
}

var requestID = regexp.MustCompile(`^req_[0-9a-z]{26}$`)

// check holds an answer to the headers that every answer of the gateway has,
// and of an answer that knows its caller to those of the plan's limits.
func (w *wire) check(r *http.Request, resp *http.Response) {
	h := resp.Header
	if !requestID.MatchString(h.Get("X-Request-Id")) {
		w.t.Errorf("%s: x-request-id %q", r.URL.Path, h.Get("X-Request-Id"))
	}
	w.once(r, h, "X-Request-Id")
	claude := strings.HasPrefix(r.URL.Path, "/v1/messages") || r.Header.Get("Anthropic-Version") != ""
	if claude {
		w.once(r, h, "Request-Id")
	}
	if claude && h.Get("Request-Id") != h.Get("X-Request-Id") {
		w.t.Errorf("%s: request-id %q, x-request-id %q", r.URL.Path, h.Get("Request-Id"), h.Get("X-Request-Id"))
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return
	}
	for _, dimension := range []string{"Requests", "Tokens"} {
		for _, what := range []string{"Limit", "Remaining", "Reset"} {
			w.once(r, h, "X-Ratelimit-"+what+"-"+dimension)
		}
	}
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
		w.once(r, h, name)
	}
	for _, word := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		for _, what := range []string{"Limit", "Remaining", "Reset"} {
			if claude {
				w.once(r, h, "Anthropic-Ratelimit-"+word+"-"+what)
			}
		}
	}
}

// once holds a header to be there once, and to be readable in a browser.
func (w *wire) once(r *http.Request, h http.Header, name string) {
	if v := h.Values(name); len(v) != 1 || v[0] == "" {
		w.t.Errorf("%s: %s %q", r.URL.Path, name, v)
	}
	if exposed := h.Get("Access-Control-Expose-Headers"); !slices.Contains(strings.Split(exposed, ", "), strings.ToLower(name)) {
		w.t.Errorf("%s: %s is not among the headers that a browser shows: %s", r.URL.Path, name, exposed)
	}
}
