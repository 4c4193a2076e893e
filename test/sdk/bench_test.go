package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// bench gives tests of another process worlds, scripts their providers, and says
// what arrived there. It does so on the goroutine of its test, which alone may
// fail it.
//
//	POST /worlds                 a plan → a world: its number, base URL and key
//	POST /worlds/{n}/next        the scripts of the next calls
//	POST /worlds/{n}/open        lets what is gated answer
//	POST /worlds/{n}/revoked     → a key that was revoked
//	POST /worlds/{n}/drain       takes so many tokens of the plan
//	POST /worlds/{n}/moderates   names OpenAI's default for moderations
//	GET  /worlds/{n}/calls       → what arrived at the provider
type bench struct {
	URL string

	t      *testing.T
	work   chan func()
	worlds []benchWorld
	out    *stack.Stack // whose limiter is out; nil: not asked for yet
	behind *stack.Stack // the installation that it belongs to
}

type benchWorld struct {
	world
	gate chan struct{}
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, work: make(chan func())}
	mux := http.NewServeMux()
	on := func(pattern string, h func(r *http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			done := make(chan any, 1)
			select {
			case b.work <- func() { done <- h(r) }:
			case <-r.Context().Done():
				return
			}
			select {
			case v := <-done:
				_ = json.NewEncoder(w).Encode(v)
			case <-t.Context().Done():
			}
		})
	}
	on("POST /worlds", b.add)
	on("POST /worlds/{n}/next", b.next)
	on("POST /worlds/{n}/open", func(r *http.Request) any { close(b.at(r).gate); return nil })
	on("POST /worlds/{n}/revoked", b.revoked)
	on("POST /worlds/{n}/drain", b.drain)
	on("POST /worlds/{n}/moderates", func(r *http.Request) any {
		weir.Want(t, 201, "POST", "/api/v1/model-aliases", b.at(r).ManagementKey, moderates)
		return nil
	})
	on("GET /worlds/{n}/calls", b.calls)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b.URL = server.URL
	return b
}

// serve does what is asked until the other process has ended, and returns how.
func (b *bench) serve(ended <-chan error) error {
	for {
		select {
		case do := <-b.work:
			do()
		case err := <-ended:
			return err
		}
	}
}

func (b *bench) read(r *http.Request, v any) {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) at(r *http.Request) benchWorld {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 || n >= len(b.worlds) {
		b.t.Fatalf("no world %q", r.PathValue("n"))
	}
	return b.worlds[n]
}

type wanted struct {
	Provider   string        `json:"provider"`
	Plan       []stack.Limit `json:"plan"`
	LimiterOut bool          `json:"limiter_out"`
}

type given struct {
	Number  int    `json:"number"`
	BaseURL string `json:"base_url"`
	Key     string `json:"key"`
}

func (b *bench) add(r *http.Request) any {
	var want wanted
	b.read(r, &want)
	made, base := weir, weir
	if want.LimiterOut {
		made, base = b.limiterOut()
	}
	w := servingAt(b.t, made, want.Provider, want.Plan...)
	b.worlds = append(b.worlds, benchWorld{w, make(chan struct{})})
	return given{len(b.worlds) - 1, base.BaseURL(), w.Key}
}

// limiterOut is an installation, and a process of it whose Redis has stopped.
func (b *bench) limiterOut() (made, base *stack.Stack) {
	if b.out == nil {
		b.behind = stack.Fresh(b.t)
		server := redistest.Start(b.t)
		b.out = b.behind.Replica(b.t, "REDIS_URL="+server.URL(), "REDIS_BUDGET=100ms")
		server.Signal(syscall.SIGSTOP)
	}
	return b.behind, b.out
}

// order is a script as the other process states it.
type order struct {
	Fails      int    `json:"fails"`
	RetryAfter string `json:"retry_after"`
	Cut        int    `json:"cut"`
	ErrorEvent bool   `json:"error_event"`
	Gated      bool   `json:"gated"`
}

func (o order) script(gate <-chan struct{}) upstreamtest.Script {
	var s upstreamtest.Script
	switch {
	case o.Fails == http.StatusUnauthorized:
		s = upstreamtest.EchoKey(o.Fails)
	case o.Fails != 0:
		s = upstreamtest.Failed(o.Fails)
	case o.ErrorEvent:
		s = upstreamtest.ErrorEvent()
	case o.Gated:
		s.Wait = gate
	default:
		s.Cut = o.Cut
	}
	if o.RetryAfter != "" {
		s.Header = http.Header{"Retry-After": {o.RetryAfter}}
	}
	return s
}

func (b *bench) next(r *http.Request) any {
	var orders []order
	b.read(r, &orders)
	w := b.at(r)
	for _, o := range orders {
		w.up.Next(o.script(w.gate))
	}
	return nil
}

func (b *bench) revoked(r *http.Request) any {
	w := b.at(r)
	key := weir.AddKey(b.t, w.World)
	weir.Want(b.t, 200, "POST", "/api/v1/api-keys/"+key.Text("id")+"/revoke", w.ManagementKey, nil)
	return key.Text("secret")
}

func (b *bench) drain(r *http.Request) any {
	var tokens int64
	b.read(r, &tokens)
	w := b.at(r)
	body := fmt.Sprintf(`{"customer": %q, "model": "test-small", "estimate": {"input_tokens": %d}}`, w.Customer, tokens)
	weir.Want(b.t, 201, "POST", "/v1/reservations", w.ManagementKey, body)
	return nil
}

type arrived struct {
	Route  string      `json:"route"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

func (b *bench) calls(r *http.Request) any {
	list := []arrived{}
	for _, c := range b.at(r).up.Calls() {
		list = append(list, arrived{c.Route(), c.Header, string(c.Body)})
	}
	return list
}
