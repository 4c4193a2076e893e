// Package upstreamtest is a provider that does what a test tells it to, over real
// HTTP on loopback, on every route of OpenAI's and of Anthropic's form.
//
// Without a script it is honest: it answers calls, streamed or not, counts tokens,
// sends the usage of a chat stream only where the call asks for it, calls the tool
// that a call demands, and lists its models. A Script makes one call go wrong in
// one way, on whichever route it comes.
package upstreamtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/catalogue/mimic"
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
	From         string // the address of the connection that it came over
}

// Route is the path as it follows the base URL.
func (c Call) Route() string { return strings.TrimPrefix(c.Path, "/v1") }

// key is the credential that came, however it came.
func (c Call) key() string {
	for _, name := range []string{"X-Api-Key", "Api-Key"} {
		if k := c.Header.Get(name); k != "" {
			return k
		}
	}
	return strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer ")
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

// Next has the next calls answered by these scripts, one each. After them the
// provider is as before.
func (u *Upstream) Next(scripts ...Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = append(u.next, scripts...)
}

// Choose has every call for which nothing is queued answered by what choose
// returns for it.
func (u *Upstream) Choose(choose func(Call) Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.choose = choose
}

// Calls are the calls that arrived, in order, of all routes but the lists of
// models.
func (u *Upstream) Calls() []Call {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Call(nil), u.calls...)
}

// Last is the call that arrived last; the zero Call before the first.
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
	c := Call{r.Method, r.URL.Path, r.Header.Clone(), body, r.RemoteAddr}
	name, isModel := strings.CutPrefix(c.Path, "/v1/models/")
	anthropic := c.Header.Get("Anthropic-Version") != ""
	switch {
	case c.Method == http.MethodGet && c.Path == "/v1/models":
		write(w, http.StatusOK, mimic.ModelList(anthropic, "upstreamtest", Models...))
	case c.Method == http.MethodGet && isModel && slices.Contains(Models, name):
		write(w, http.StatusOK, mimic.Model(anthropic, "upstreamtest", name))
	case c.Method == http.MethodPost && strings.HasPrefix(c.Path, "/v1/") && slices.Contains(mimic.Routes, c.Route()):
		u.answer(w, r, c, u.take(c))
	default:
		write(w, http.StatusNotFound, mimic.Error(c.Route(), http.StatusNotFound, "There is no such address."))
	}
}

func write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
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
