package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// tokens are what an event says was used.
type tokens struct{ Input, Cached, CacheWrite, Output, Reasoning int64 }

// end is how one call ended: for its client, and for the books.
type end struct {
	status    int
	code      string // of the error that the client got; "": none
	outcome   string
	tokens    tokens
	estimated string
	provider  int // the status of the attempt
}

const question = "What is a weir?"

// What an expected figure is where only the gateway knows: its own estimate of
// the prompt, and some tokens for what came of an answer.
const (
	estimatedPrompt = -1
	someOutput      = -2
)

var (
	exact = tokens{Input: int64(upstreamtest.Prompt(`"` + question + `"`)), Output: 6}
	none  = tokens{}
)

// TestHoweverACallEndsItIsOneEventAndHoldsNothing is the matrix: what a provider
// and a client may do, asked for a stream and not, and what client and books
// then have. A customer may have one call at a time, so that a slot that was not
// freed shows.
func TestHoweverACallEndsItIsOneEventAndHoldsNothing(t *testing.T) {
	t.Parallel()
	s := rig(t)
	t.Run("the provider ends it", func(t *testing.T) { providerEnds(t, s) })
	t.Run("the client leaves", func(t *testing.T) { clientLeaves(t, s) })
	t.Run("the client does not read", func(t *testing.T) { clientDoesNotRead(t, s) })
	t.Run("the client reads as it comes", func(t *testing.T) { passedOnAsItComes(t, s) })
}

func providerEnds(t *testing.T, s *stack.Stack) {
	t.Parallel()
	type both struct {
		name          string
		script        upstreamtest.Script
		whole, stream end
	}
	same := func(name string, script upstreamtest.Script, e end) both { return both{name, script, e, e} }
	failed := func(status int) end { return end{502, "upstream_error", "provider_error", none, "", status} }
	auth := func(status int) end { return end{502, "upstream_auth_failed", "provider_error", none, "", status} }
	ok := func(u tokens, estimated string) end { return end{200, "", "ok", u, estimated, 200} }
	cut := func(words int64) end {
		return end{200, "upstream_cut", "provider_error", tokens{Input: estimatedPrompt, Output: words}, "stream_cut", 200}
	}
	after := func(e end, code string) end { e.code = code; return e }
	usage := func(u string) upstreamtest.Script { return upstreamtest.Script{Usage: u} }
	absent := both{"", upstreamtest.Script{}, ok(tokens{Input: estimatedPrompt, Output: someOutput}, "usage_absent"), ok(tokens{Input: estimatedPrompt, Output: 6}, "usage_absent")}
	nonsense := both{"", upstreamtest.Script{}, ok(absent.whole.tokens, "usage_nonsense"), ok(absent.stream.tokens, "usage_nonsense")}
	of := func(b both, name, u string) both { b.name, b.script = name, usage(u); return b }

	cases := []both{
		same("an honest answer", upstreamtest.Script{}, ok(exact, "")),
		same("usage with cached and reasoning tokens", usage(`{"prompt_tokens":100,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":20}}`), ok(tokens{Input: 36, Cached: 64, Output: 30, Reasoning: 20}, "")),
		same("usage that is zero", usage(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`), ok(none, "")),
		same("usage far above the estimate", usage(`{"prompt_tokens":900000,"completion_tokens":800000}`), ok(tokens{Input: 900000, Output: 800000}, "")),
		of(absent, "no usage", upstreamtest.Absent),
		of(absent, "usage null", `null`),
		of(absent, "usage with details only", `{"prompt_tokens_details":{"cached_tokens":5}}`),
		of(absent, "usage without its output", `{"prompt_tokens":5}`),
		of(nonsense, "negative usage", `{"prompt_tokens":-1,"completion_tokens":6}`),
		of(nonsense, "usage beyond reason", `{"prompt_tokens":1000000000000000000,"completion_tokens":6}`),
		of(nonsense, "usage beyond any number", `{"prompt_tokens":1e400,"completion_tokens":6}`),
		of(nonsense, "usage in words", `{"prompt_tokens":"5","completion_tokens":"6"}`),
		of(nonsense, "a part larger than its whole", `{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":9}}`),
		of(nonsense, "negative parts", `{"prompt_tokens":5,"completion_tokens":6,"completion_tokens_details":{"reasoning_tokens":-3}}`),

		same("400", upstreamtest.Fail(400, "invalid_request_error", "context_length_exceeded", "Too long"), end{400, "context_length_exceeded", "client_error", none, "", 400}),
		same("422", upstreamtest.Fail(422, "invalid_request_error", "bad", "No"), end{422, "bad", "client_error", none, "", 422}),
		same("404", upstreamtest.Fail(404, "invalid_request_error", "model_not_found", "No such model"), end{404, "model_not_found", "client_error", none, "", 404}),
		same("401", upstreamtest.EchoKey(401), auth(401)),
		same("402", upstreamtest.Fail(402, "x", "x", "Pay"), auth(402)),
		same("403", upstreamtest.Fail(403, "x", "x", "No"), auth(403)),
		same("429", upstreamtest.Limited(http.Header{"Retry-After": {"7"}}), end{503, "provider_capacity", "provider_limited", none, "", 429}),
		same("500", upstreamtest.Fail(500, "server_error", "x", "Oops"), failed(500)),
		same("503 in HTML", upstreamtest.Script{Status: 503, Body: "<html>"}, failed(503)),
		same("529", upstreamtest.Script{Status: 529, Body: "{}"}, failed(529)),
		same("a redirect", upstreamtest.Redirect("http://127.0.0.1:1/"), end{502, "upstream_redirect", "provider_error", none, "", 0}),
		same("silence", upstreamtest.Script{Hang: true}, end{504, "upstream_timeout", "provider_error", none, "", 0}),
		{"200 with an error inside", upstreamtest.ErrorInside200(), failed(200), failed(200)},
		{"200 with HTML", upstreamtest.NotJSON(), after(failed(200), "upstream_invalid_response"), after(failed(200), "upstream_invalid_response")},
		{"an answer that is cut", upstreamtest.Script{Cut: 3}, after(failed(200), "upstream_cut"), cut(2)},
		{"an answer that stops", upstreamtest.Script{Stall: 3}, end{504, "upstream_timeout", "provider_error", none, "", 200}, after(cut(2), "upstream_timeout")},
	}
	streams := []both{
		{name: "without [DONE]", script: upstreamtest.Script{NoDone: true}, stream: ok(exact, "")},
		{name: "cut before a word", script: upstreamtest.Script{Cut: 1}, stream: after(failed(200), "upstream_cut")},
		{name: "cut after the last word", script: upstreamtest.Script{Cut: 7}, stream: cut(6)},
		{name: "an error in the stream", script: upstreamtest.ErrorEvent(), stream: after(cut(1), "upstream_error")},
		{name: "a line of 2 MiB", script: upstreamtest.HugeLine(2 << 20), stream: after(failed(200), "upstream_invalid_response")},
		{name: "lines that end with CRLF", script: upstreamtest.Script{EndLine: "\r\n"}, stream: ok(exact, "")},
		{name: "lines that end with CR", script: upstreamtest.Script{EndLine: "\r"}, stream: ok(exact, "")},
		{name: "slower than a call may take", script: upstreamtest.Script{Words: slices.Repeat([]string{"word "}, 60), Pause: 120 * time.Millisecond}, stream: after(cut(someOutput), "upstream_timeout")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.whole.try(t, s, c.script, false)
		})
	}
	for _, c := range append(cases, streams...) {
		t.Run(c.name+", streamed", func(t *testing.T) {
			t.Parallel()
			c.stream.try(t, s, c.script, true)
		})
	}
}

// world is a customer with limits of every policy, who may make one call at a
// time.
func world(t *testing.T, s *stack.Stack, up *upstreamtest.Upstream) stack.World {
	t.Helper()
	return s.Setup(t, stack.Options{
		Upstream: up, Zone: stack.MiddayZone(),
		Plan:          []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1000}, {Dimension: "tokens", Window: "day", Amount: 1_000_000_000}, {Dimension: "concurrency", Window: "none", Amount: 1}},
		ProviderLimit: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: 1_000_000_000}},
		Prices:        []stack.Price{{Models: "*", Class: "input", MicrosPerMillion: 1_000_000}, {Models: "*", Class: "output", MicrosPerMillion: 3_000_000}},
	})
}

func body(stream bool) string {
	return fmt.Sprintf(`{"model": "test-small", "stream": %v, "max_tokens": 200, "messages": [{"role": "user", "content": %q}]}`, stream, question)
}

func (e end) try(t *testing.T, s *stack.Stack, script upstreamtest.Script, stream bool) {
	t.Helper()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	up.Next(script)
	a := s.Want(t, e.status, "POST", "/v1/chat/completions", w.Key, body(stream))
	for _, name := range []string{"X-Request-Id", "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", "Ratelimit", "Ratelimit-Policy"} {
		if a.Header.Get(name) == "" {
			t.Errorf("the answer has no %s", name)
		}
	}
	if stream && e.status == 200 {
		e.checkStream(t, a)
	} else if code := a.Text("error.code"); code != e.code {
		t.Errorf("the client got %s, want %s", a, e.code)
	}
	e.checkBooks(t, s, w, a.Header.Get("X-Request-Id"))
	// The one slot is free again, and the next call is an honest one, once a
	// person has cleared what its provider key rests for.
	s.Want(t, 200, "POST", "/api/v1/cooldowns/clear", w.ManagementKey, nil)
	stack.Eventually(t, 5*time.Second, func() string {
		if a := s.Call(t, "POST", "/v1/chat/completions", w.Key, body(false)); a.Status != 200 {
			return a.String()
		}
		return ""
	})
}

// checkStream: a stream ends with [DONE], or with an error and without it.
func (e end) checkStream(t *testing.T, a stack.Answer) {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(string(a.Body), "\n\n"), "\n\n")
	last := events[len(events)-1]
	done := last == "data: [DONE]"
	failure := stack.Answer{Body: []byte(strings.TrimPrefix(last, "data: "))}
	if done != (e.code == "") || strings.Contains(strings.Join(events[:len(events)-1], ""), "[DONE]") || failure.Text("error.code") != e.code {
		t.Errorf("the stream ends with %.300s, want %q", last, e.code)
	}
	if strings.Contains(string(a.Body), `"usage":{`) {
		t.Errorf("the usage frame was not asked for: %s", a.Body)
	}
}

// entry is what the books have of one call.
type entry struct {
	Outcome   string
	Requests  int64
	Tokens    tokens
	Estimated string
	Charge    int64
	Provider  int
	Charges   string
	Estimate  int64 // of the prompt
}

// like puts in what only the gateway knows, where that makes sense.
func (u tokens) like(e entry) tokens {
	if u.Input == estimatedPrompt && e.Estimate > 5 && e.Estimate < 30 {
		u.Input = e.Estimate
	}
	if u.Output == someOutput && e.Tokens.Output > 5 && e.Tokens.Output < 60 {
		u.Output = e.Tokens.Output
	}
	return u
}

// checkBooks waits for the call's event: one, with what was used, on every
// limit and in the bill.
func (e end) checkBooks(t *testing.T, s *stack.Stack, w stack.World, request string) {
	t.Helper()
	u, err := id.Request.Parse(request)
	if err != nil {
		t.Fatal(err)
	}
	var got []entry
	stack.Eventually(t, 20*time.Second, func() string {
		got = readEntries(t, s, u.String())
		if len(got) == 0 {
			return "the books have nothing of the call"
		}
		return ""
	})
	g := got[0]
	e.tokens = e.tokens.like(g)
	u5 := e.tokens
	sum := u5.Input + u5.Cached + u5.CacheWrite + u5.Output + u5.Reasoning
	want := entry{
		Outcome: e.outcome, Requests: 1, Tokens: e.tokens, Estimated: e.estimated, Provider: e.provider,
		Charge: (u5.Input+u5.Cached)*1_000_000 + (u5.Output+u5.Reasoning)*3_000_000, Charges: fmt.Sprintf("customer/requests 1, customer/tokens %d, provider_key/tokens %d", sum, sum), Estimate: g.Estimate,
	}
	if len(got) != 1 || g != want {
		t.Errorf("the books have %+v, want %+v", got, want)
	}
	live := s.Want(t, 200, "GET", "/v1/limits", w.Key, nil)
	for i := range 3 {
		at := fmt.Sprintf("data.%d.", i)
		wantUsed := map[string]float64{"requests": 1, "tokens": float64(sum), "concurrency": 0}[live.Text(at+"dimension")]
		if used := live.JSON(at + "used"); used != wantUsed {
			t.Errorf("%s: %v used, want %v", live.Text(at+"dimension"), used, wantUsed)
		}
	}
}

func readEntries(t *testing.T, s *stack.Stack, request string) (out []entry) {
	t.Helper()
	type row struct {
		Outcome                                      string
		Requests                                     int64
		Input, Cached, CacheWrite, Output, Reasoning int64
		Estimated                                    string
		Charge                                       int64
		Attempts, Provider                           int
		Charges                                      string
		Estimate                                     int64
	}
	for _, r := range stack.Rows[row](t, s, `
		select outcome, requests, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated, charge_pico::bigint,
		       json_array_length(detail -> 'attempts'), coalesce((detail #>> '{attempts,0,status}')::int, 0),
		       (select string_agg(split_part(c ->> 'ledger', ':', 1) || '/' || split_part(c ->> 'ledger', '/', 2) || ' ' || (c ->> 'amount'), ', ' order by c ->> 'ledger')
		        from json_array_elements(detail -> 'charges') c),
		       coalesce((detail #>> '{estimate,tokens,input_tokens}')::bigint, 0)
		from usage_events where request_id = $1`, request) {
		if r.Attempts != 1 {
			t.Errorf("%d attempts are in the books", r.Attempts)
		}
		out = append(out, entry{r.Outcome, r.Requests, tokens{r.Input, r.Cached, r.CacheWrite, r.Output, r.Reasoning}, r.Estimated, r.Charge, r.Provider, r.Charges, r.Estimate})
	}
	return out
}

// clientLeaves: a provider that ends within a moment states the exact usage; one
// that does not is cut, and the call charged its prompt and what was streamed.
func clientLeaves(t *testing.T, s *stack.Stack) {
	t.Parallel()
	long := slices.Repeat([]string{"word "}, 400)
	cases := []struct {
		name   string
		stream bool
		script upstreamtest.Script
		read   int // events that the client reads before it leaves
		want   func(entry) bool
	}{
		{"before a late answer", false, upstreamtest.Script{Hang: true}, 0, func(e entry) bool {
			return e.Outcome == "aborted" && e.Tokens == (tokens{Input: e.Estimate}) && e.Estimated == "client_gone"
		}},
		{"before an answer that comes", false, upstreamtest.Script{Delay: 150 * time.Millisecond}, 0, func(e entry) bool {
			return e.Outcome == "aborted" && e.Tokens == exact && e.Estimated == ""
		}},
		{"in a stream that ends", true, upstreamtest.Script{Pause: 20 * time.Millisecond}, 2, func(e entry) bool {
			return e.Outcome == "aborted" && e.Tokens == exact && e.Estimated == ""
		}},
		{"in a stream that goes on", true, upstreamtest.Script{Words: long, Pause: 10 * time.Millisecond}, 2, func(e entry) bool {
			return e.Outcome == "aborted" && e.Estimated == "client_gone" && e.Tokens.Input == e.Estimate && e.Tokens.Output >= 1 && e.Tokens.Output < 400
		}},
		{"in a stream that stops", true, upstreamtest.Script{Stall: 4}, 3, func(e entry) bool {
			return e.Outcome == "aborted" && e.Estimated == "client_gone" && e.Tokens == (tokens{Input: e.Estimate, Output: 3})
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := world(t, s, up)
			up.Next(c.script)
			leave(t, s, w, up, body(c.stream), c.read)
			tenant, err := id.Tenant.Parse(w.Tenant)
			if err != nil {
				t.Fatal(err)
			}
			var request string
			stack.Eventually(t, 20*time.Second, func() string {
				found := stack.Rows[string](t, s, `select request_id::text from usage_events where tenant_id = $1`, tenant.String())
				if len(found) != 1 {
					return fmt.Sprintf("%d events in the books", len(found))
				}
				request = found[0]
				return ""
			})
			if e := readEntries(t, s, request)[0]; !c.want(e) || e.Requests != 1 {
				t.Errorf("the books have %+v", e)
			}
			s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, body(false))
		})
	}
}

// hangUp sends a request on a connection of its own, which is closed when its
// context ends, and waits until the process has had time to see that: it answers
// what was sent after it.
func hangUp(t *testing.T, s *stack.Stack, req *http.Request) {
	t.Helper()
	conns := make(chan net.Conn, 1)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			conns <- c
		}
		return c, err
	}}}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("an answer for nobody: %s", resp.Status)
	}
	_ = (<-conns).Close() // the transport does so by and by
	for range 3 {
		s.Want(t, 200, "GET", "/livez", "", nil)
	}
}

// leave makes a call and drops it: once the provider has it, or after so many
// events of its answer.
func leave(t *testing.T, s *stack.Stack, w stack.World, up *upstreamtest.Upstream, body string, read int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := s.Request(ctx, "POST", "/v1/chat/completions", w.Key, body)
	if err != nil {
		t.Fatal(err)
	}
	if read == 0 {
		go func() {
			stack.Eventually(t, 20*time.Second, func() string {
				if len(up.Calls()) == 0 {
					return "the call does not arrive"
				}
				return ""
			})
			cancel()
		}()
		hangUp(t, s, req)
		return
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got strings.Builder
	for buffer := make([]byte, 256); strings.Count(got.String(), "\n\n") < read; {
		n, err := resp.Body.Read(buffer)
		got.Write(buffer[:n])
		if err != nil {
			t.Fatalf("after %q: %v", got.String(), err)
		}
	}
}

// passedOnAsItComes: a client has the first events of a stream while the
// provider still holds the next one back.
func passedOnAsItComes(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	up.Next(upstreamtest.Script{Stall: 3})
	leave(t, s, w, up, body(true), 3)
}

// clientDoesNotRead: what it does not take is not kept for it.
func clientDoesNotRead(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	up.Next(upstreamtest.Script{Words: slices.Repeat([]string{strings.Repeat("x", 500_000)}, 60)})
	req, err := s.Request(t.Context(), "POST", "/v1/chat/completions", w.Key, body(true))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		a := s.Call(t, "POST", "/v1/chat/completions", w.Key, body(false))
		if a.Status != 200 {
			return a.String()
		}
		return ""
	})
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("the stream was kept to its end: %d bytes", n)
	}
}
