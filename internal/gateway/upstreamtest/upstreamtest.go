// Package upstreamtest is an OpenAI-compatible provider that does what a test
// tells it to, over real HTTP on loopback.
//
// Without a script it is honest: it answers chat completions, streamed or not,
// counts tokens, sends the usage of a stream only where the call asks for it,
// and lists its models. A Script makes one call go wrong in one way.
package upstreamtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Models are what GET /models lists.
var Models = []string{"test-large", "test-small"}

// Upstream is a running provider. It is safe for concurrent use.
type Upstream struct {
	URL string // a base URL, as for a custom provider

	server *httptest.Server
	closed chan struct{}

	mu     sync.Mutex
	next   []Script
	choose func(Call) Script
	calls  []Call
}

// Call is one request as it arrived.
type Call struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// New starts a provider that ends with the test. Answers that still hang then
// are cut.
func New(t testing.TB) *Upstream {
	t.Helper()
	u := Start()
	t.Cleanup(u.Close)
	return u
}

// Start is New for those who end it themselves, with Close.
func Start() *Upstream {
	u := &Upstream{closed: make(chan struct{})}
	u.server = httptest.NewServer(http.HandlerFunc(u.serve))
	u.URL = u.server.URL + "/v1"
	return u
}

// Close cuts what still hangs and stops the provider.
func (u *Upstream) Close() {
	close(u.closed)
	u.server.CloseClientConnections()
	u.server.Close()
}

// Next has the next chat completions answered by these scripts, one each.
// After them the provider is as before.
func (u *Upstream) Next(scripts ...Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = append(u.next, scripts...)
}

// Choose has every chat completion for which nothing is queued answered by what
// choose returns for it.
func (u *Upstream) Choose(choose func(Call) Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.choose = choose
}

// Calls are the chat completions that arrived, in order.
func (u *Upstream) Calls() []Call {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Call(nil), u.calls...)
}

// Last is the chat completion that arrived last; the zero Call before the first.
func (u *Upstream) Last() Call {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) == 0 {
		return Call{}
	}
	return u.calls[len(u.calls)-1]
}

func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller left
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		writeModels(w)
	case "POST /v1/chat/completions":
		c := Call{r.Method, r.URL.Path, r.Header.Clone(), body}
		u.answer(w, r, c, u.take(c))
	default:
		http.NotFound(w, r)
	}
}

// take notes the call and finds its script.
func (u *Upstream) take(c Call) Script {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = append(u.calls, c)
	if len(u.next) > 0 {
		s := u.next[0]
		u.next = u.next[1:]
		return s
	}
	if u.choose != nil {
		return u.choose(c)
	}
	return Script{}
}
