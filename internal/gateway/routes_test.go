package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/catalogue/mimic"
	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// lane is a route as a client calls it, and the route of its provider.
type lane struct {
	route, up string
	stream    bool
}

func (l lane) String() string {
	name := strings.TrimPrefix(l.route, "/")
	if l.up != l.route {
		name += " on " + strings.TrimPrefix(l.up, "/")
	}
	if l.stream {
		name += ", streamed"
	}
	return name
}

// lanes are every route, streamed where it can be, and the two translations.
func lanes() (list []lane) {
	add := func(route, up string) {
		list = append(list, lane{route, up, false})
		if mimic.Streams(route) {
			list = append(list, lane{route, up, true})
		}
	}
	for _, r := range mimic.Routes {
		add(r, r)
	}
	add(mimic.Chat, mimic.Messages)
	add(mimic.Messages, mimic.Chat)
	return list
}

func (l lane) provider() string {
	if l.up == mimic.Messages || l.up == mimic.CountTokens {
		return "custom-anthropic"
	}
	return "custom"
}

func (l lane) anthropic() bool { return l.route == mimic.Messages || l.route == mimic.CountTokens }

// body is a small call of the lane's route.
func (l lane) body() (body, contentType string) {
	said := fmt.Sprintf(`[{"role": "user", "content": %q}]`, question)
	switch l.route {
	case mimic.Transcriptions:
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		_ = form.WriteField("model", "test-small") // to memory
		file, _ := form.CreateFormFile("file", "weir.wav")
		_, _ = file.Write([]byte("RIFF"))
		_ = form.Close()
		return b.String(), form.FormDataContentType()
	case mimic.Chat, mimic.Messages:
		body = fmt.Sprintf(`{"model": "test-small", "stream": %v, "max_tokens": 200, "messages": %s}`, l.stream, said)
	case mimic.CountTokens:
		body = fmt.Sprintf(`{"model": "test-small", "messages": %s}`, said)
	case mimic.Completions, mimic.Images:
		body = fmt.Sprintf(`{"model": "test-small", "stream": %v, "prompt": %q}`, l.stream, question)
	case mimic.Speech:
		body = fmt.Sprintf(`{"model": "test-small", "voice": "alloy", "input": %q}`, question)
	case mimic.Moderations, mimic.Embeddings:
		body = fmt.Sprintf(`{"model": "test-small", "input": %q}`, question)
	default:
		body = fmt.Sprintf(`{"model": "test-small", "stream": %v, "input": %q}`, l.stream, question)
	}
	return body, "application/json"
}

// metered tells whether the route's tokens are estimated where none are stated;
// the others are metered by request.
func (l lane) metered() bool {
	switch l.route {
	case mimic.CountTokens, mimic.Images, mimic.Speech, mimic.Transcriptions, mimic.Moderations:
		return false
	}
	return true
}

// What a cell's figures may be.
const (
	stated    = "stated"    // by the provider
	zero      = "zero"      // nothing
	estimated = "estimated" // by the gateway, of an answer that came
	prompt    = "prompt"    // by the gateway, without an answer
)

// cell is one way for a call to end.
type cell struct {
	name    string
	script  upstreamtest.Script
	leave   bool
	status  int    // that the client gets
	code    string // of the error, in the answer or in the stream
	outcome string
	figures string
	reason  string // why they are estimated
	try     int    // the status of the attempt
}

// cells are the outcomes of gateway.md's matrix, for one lane.
func (l lane) cells() []cell {
	answered := func(figures, reason string) cell {
		return cell{status: 200, outcome: "ok", figures: figures, reason: reason, try: 200}
	}
	failed := func(status, try int, code, outcome string) cell {
		return cell{status: status, code: code, outcome: outcome, figures: zero, try: try}
	}
	is := func(name string, s upstreamtest.Script, c cell) cell { c.name, c.script = name, s; return c }
	full := http.StatusServiceUnavailable
	if l.anthropic() {
		full = 529
	}
	silent := answered(zero, "")
	nonsense := silent
	if l.metered() {
		silent, nonsense = answered(estimated, "usage_absent"), answered(estimated, "usage_nonsense")
	}
	list := []cell{
		is("ok", upstreamtest.Script{}, answered(stated, "")),
		is("400", upstreamtest.Failed(400), cell{status: 400, code: "*", outcome: "client_error", figures: zero, try: 400}),
		is("401", upstreamtest.Failed(401), failed(502, 401, "upstream_auth_failed", "provider_error")),
		is("404", upstreamtest.Failed(404), failed(404, 404, "model_not_found", "client_error")),
		is("429", upstreamtest.Failed(429), failed(full, 429, "provider_capacity", "provider_limited")),
		is("500", upstreamtest.Failed(500), failed(502, 500, "upstream_error", "provider_error")),
		is("529", upstreamtest.Failed(529), failed(502, 529, "upstream_error", "provider_error")),
		is("silence", upstreamtest.Script{Hang: true}, failed(504, 0, "upstream_timeout", "provider_error")),
		is("an error inside a 200", upstreamtest.ErrorInside200(), failed(502, 200, "upstream_error", "provider_error")),
		is("usage absent", upstreamtest.Script{Usage: upstreamtest.Absent}, silent),
		is("usage zero", upstreamtest.Script{Usage: upstreamtest.Zero}, answered(zero, "")),
		is("usage nonsense", upstreamtest.Script{Usage: upstreamtest.Nonsense}, nonsense),
		{name: "client gone", script: upstreamtest.Script{Hang: true}, leave: true, outcome: "aborted", figures: prompt, reason: "client_gone"},
	}
	if mimic.Usage(l.up, mimic.Counts{}) == "" { // the route states none anyway
		list = list[:9]
		list[0].figures = zero
	}
	if l.stream {
		cut := cell{status: 200, code: "upstream_cut", outcome: "provider_error", figures: estimated, reason: "stream_cut", try: 200}
		said := cut
		said.code = "upstream_error"
		return append(list, is("cut", upstreamtest.Script{Cut: 3}, cut), is("an error event", upstreamtest.ErrorEvent(), said))
	}
	if l.route != mimic.Speech && l.route != mimic.Transcriptions { // of which every beginning is an answer
		list = append(list, is("cut", upstreamtest.Script{Cut: 3}, failed(502, 200, "upstream_cut", "provider_error")))
	}
	return list
}

// TestEveryRouteEndsInOneEventHoweverItEnds is the matrix of routes, streamed
// and not, by outcomes: what the client gets, and what the books have. A customer
// may have one call at a time, so that a slot that was not freed shows.
func TestEveryRouteEndsInOneEventHoweverItEnds(t *testing.T) {
	t.Parallel()
	s := rig(t)
	for _, l := range lanes() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := l.world(t, s, up)
			for _, c := range l.cells() {
				t.Run(c.name, func(t *testing.T) { c.run(t, s, w, up, l) })
			}
		})
	}
}

// world is as world, on a provider that speaks the lane's form.
func (l lane) world(t *testing.T, s *stack.Stack, up *upstreamtest.Upstream) stack.World {
	t.Helper()
	return s.Setup(t, stack.Options{
		Upstream: up, Provider: l.provider(), Zone: stack.MiddayZone(),
		Plan:          []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1000}, {Dimension: "tokens", Window: "day", Amount: 1_000_000_000}, {Dimension: "concurrency", Window: "none", Amount: 1}},
		ProviderLimit: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: 1_000_000_000}},
		Prices:        []stack.Price{{Models: "*", Class: "input", MicrosPerMillion: 1_000_000}, {Models: "*", Class: "output", MicrosPerMillion: 3_000_000}},
	})
}

func (l lane) request(ctx context.Context, t *testing.T, s *stack.Stack, key string) *http.Request {
	t.Helper()
	body, contentType := l.body()
	req, err := s.Request(ctx, "POST", "/v1"+l.route, key, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	return req
}

func (c cell) run(t *testing.T, s *stack.Stack, w stack.World, up *upstreamtest.Upstream, l lane) {
	t.Helper()
	known := len(eventsOf(t, s, w))
	up.Next(c.script)
	if c.leave {
		c.goes(t, s, w, up, l)
	} else {
		a, err := s.Send(l.request(t.Context(), t, s, w.Key))
		if err != nil {
			t.Fatal(err)
		}
		c.checkAnswer(t, a, l)
	}
	var list []entry
	stack.Eventually(t, 20*time.Second, func() string {
		if list = eventsOf(t, s, w); len(list) == known {
			return "the books have nothing of the call"
		}
		return ""
	})
	if len(list) != known+1 {
		t.Fatalf("%d events for one call", len(list)-known)
	}
	c.checkEntry(t, l, list[0], l.counts(t, up))
	s.Want(t, 200, "POST", "/api/v1/cooldowns/clear", w.ManagementKey, nil)
	stack.Eventually(t, 5*time.Second, func() string { // the slot is free, and the key known to be well
		live := s.Want(t, 200, "GET", "/v1/limits", w.Key, nil)
		if used := live.JSON("data.2.used"); live.Text("data.2.dimension") != "concurrency" || used != 0.0 {
			return fmt.Sprintf("the slot is %v: %s", used, live)
		}
		return ""
	})
}

// goes leaves once the provider has the call.
func (c cell) goes(t *testing.T, s *stack.Stack, w stack.World, up *upstreamtest.Upstream, l lane) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	before := len(up.Calls())
	go func() {
		defer cancel()
		stack.Eventually(t, 20*time.Second, func() string {
			if len(up.Calls()) == before {
				return "the call does not arrive"
			}
			return ""
		})
	}()
	if a, err := s.Send(l.request(ctx, t, s, w.Key)); err == nil {
		t.Errorf("an answer for nobody: %s", a)
	}
	<-ctx.Done()
}

// counts are the figures that the provider states of the call that came last.
func (l lane) counts(t *testing.T, up *upstreamtest.Upstream) tokens {
	t.Helper()
	last := up.Last()
	call, err := mimic.Read(l.up, last.Header.Get("Content-Type"), last.Body)
	if err != nil {
		t.Fatalf("the provider got %s: %v", last.Body, err)
	}
	n := call.Counts(6)
	return tokens{int64(n.Input), int64(n.Cached), int64(n.CacheWrite), int64(n.Output), int64(n.Reasoning)}
}

func (c cell) checkAnswer(t *testing.T, a stack.Answer, l lane) {
	t.Helper()
	names := []string{"X-Request-Id", "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", "Ratelimit", "Ratelimit-Policy"}
	if l.anthropic() {
		names = append(names, "Request-Id")
		for _, of := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
			names = append(names, "Anthropic-Ratelimit-"+of+"-Limit", "Anthropic-Ratelimit-"+of+"-Remaining", "Anthropic-Ratelimit-"+of+"-Reset")
		}
	}
	for _, name := range names {
		if a.Header.Get(name) == "" {
			t.Errorf("the answer has no %s", name)
		}
	}
	if a.Status != c.status {
		t.Fatalf("the client got %s, want %d", a, c.status)
	}
	failure := a
	if l.stream && c.status == 200 {
		failure = l.lastEvent(t, a, c.code != "")
	}
	if c.code == "" {
		return
	}
	if l.anthropic() && (failure.Text("type") != "error" || failure.Text("error.type") == "" || failure.Text("request_id") != a.Header.Get("X-Request-Id")) {
		t.Errorf("%s is no error in Anthropic's form", failure)
	}
	code, message := failure.Text("error.code"), failure.Text("error.message")
	if l.route == mimic.Responses && failure.Text("type") == "error" { // an event
		code, message = failure.Text("code"), failure.Text("message")
	}
	if code != c.code && c.code != "*" || message == "" {
		t.Errorf("the error is %s, want %s", failure, c.code)
	}
}

// lastEvent is the last payload of a stream, which ends as its form says, or
// with an error and without that.
func (l lane) lastEvent(t *testing.T, a stack.Answer, fails bool) stack.Answer {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(string(a.Body), "\n\n"), "\n\n")
	_, payload, _ := strings.Cut(events[len(events)-1], "data: ")
	end := map[string]string{mimic.Chat: "[DONE]", mimic.Completions: "[DONE]", mimic.Messages: `"message_stop"`, mimic.Responses: `"response.completed"`}[l.route]
	if ends := strings.Contains(payload, end); ends == fails || strings.Contains(strings.Join(events[:len(events)-1], ""), end) {
		t.Errorf("the stream ends with %.200s", events[len(events)-1])
	}
	return stack.Answer{Status: a.Status, Body: []byte(payload)}
}

func (c cell) checkEntry(t *testing.T, l lane, got entry, exact tokens) {
	t.Helper()
	want := entry{Outcome: c.outcome, Requests: 1, Estimated: c.reason, Provider: c.try, Estimate: got.Estimate, Charges: got.Charges}
	switch c.figures {
	case stated:
		want.Tokens = exact
	case estimated:
		want.Tokens = tokens{Input: got.Estimate, Output: got.Tokens.Output}
		if c.reason == "stream_cut" && l.up == mimic.Messages { // which states the prompt at the beginning
			want.Tokens.Input = exact.Input
		}
		if got.Tokens.Output < 0 || got.Tokens.Output > 60 || got.Estimate < 3 || got.Estimate > 40 {
			t.Errorf("estimated at %+v of a prompt of %d", got.Tokens, got.Estimate)
		}
	case prompt:
		want.Tokens = tokens{Input: got.Estimate}
	}
	sum := want.Tokens.Input + want.Tokens.Cached + want.Tokens.CacheWrite + want.Tokens.Output + want.Tokens.Reasoning
	want.Charge = (want.Tokens.Input+want.Tokens.Cached)*1_000_000 + (want.Tokens.Output+want.Tokens.Reasoning)*3_000_000
	want.Charges = fmt.Sprintf("customer/requests 1, customer/tokens %d, provider_key/tokens %d", sum, sum)
	if got != want {
		t.Errorf("the books have %+v, want %+v", got, want)
	}
}

// eventsOf are a tenant's calls in the books, the newest first.
func eventsOf(t *testing.T, s *stack.Stack, w stack.World) (out []entry) {
	t.Helper()
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range stack.Rows[string](t, s, `select request_id::text from usage_events where tenant_id = $1 order by event_id desc`, tenant.String()) {
		out = append(out, readEntries(t, s, request)...)
	}
	return out
}
