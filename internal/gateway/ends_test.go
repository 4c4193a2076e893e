package gateway_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// TestAClockThatDiffersFromTheLimitStoresChangesNoCall: what is admitted is
// dated by Redis; how long it may take and be tried again goes by this process.
func TestAClockThatDiffersFromTheLimitStoresChangesNoCall(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{30 * time.Second, -30 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			s := rigOf(t, rigged{env: []string{"REDIS_URL=" + redistest.Start(t).URL()}, now: func() time.Time { return time.Now().Add(skew) }}).Stack
			w, list := inOrderOf(t, s, 2, func(t *testing.T, s *stack.Stack, up *upstreamtest.Upstream) stack.World {
				t.Helper()
				return s.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1000}}})
			})
			list[0].up.Next(upstreamtest.Fail(401, "x", "x", "No"))
			s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(false))
			words := make([]string, 50)
			for i := range words {
				words[i] = "word "
			}
			list[1].up.Choose(func(upstreamtest.Call) upstreamtest.Script {
				return upstreamtest.Script{Words: words, Pause: 100 * time.Millisecond}
			})
			if a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(true)); !strings.Contains(string(a.Body), "word ") || !strings.Contains(string(a.Body), "upstream_timeout") {
				t.Errorf("a stream of 5 seconds where a call may take 4: %.200s", a)
			}
		})
	}
}

// TestACallThatBreaksInTheMiddleIsChargedWhatCame: a fault of our own in a
// stream, here a clock that fails, settles what the client was sent.
func TestACallThatBreaksInTheMiddleIsChargedWhatCame(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	var events atomic.Int64
	s := rigOf(t, rigged{falls: true, now: func() time.Time {
		if armed.Load() && strings.Contains(string(debug.Stack()), "(*flow).note") && events.Add(1) == 4 {
			panic("the clock stands still")
		}
		return time.Now()
	}}).Stack
	up := upstreamtest.New(t)
	w := world(t, s, up)
	armed.Store(true)
	a, _ := s.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, body(true))
	armed.Store(false)
	e := entryOf(t, s, a.Header.Get("X-Request-Id"))
	if e.Outcome != "provider_error" || e.Tokens.Input != e.Estimate || e.Tokens.Output != 3 || e.Estimated == "" {
		t.Errorf("after three words the books have %+v; the client got %s", e, a.Body)
	}
}

func entryOf(t *testing.T, s *stack.Stack, request string) (e entry) {
	t.Helper()
	u, err := id.Request.Parse(request)
	if err != nil {
		t.Fatal(err)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		got := readEntries(t, s, u.String())
		if len(got) != 1 {
			return fmt.Sprintf("%d events", len(got))
		}
		e = got[0]
		return ""
	})
	return e
}

// TestACallThatAStopCutsIsChargedItsPrompt, as one that a kill cuts is: its
// provider had it.
func TestACallThatAStopCutsIsChargedItsPrompt(t *testing.T) {
	t.Parallel()
	s := rigOf(t, rigged{env: []string{"DRAIN=200ms"}})
	up := upstreamtest.New(t)
	w := world(t, s.Stack, up)
	up.Next(upstreamtest.Script{Hang: true})
	got := make(chan stack.Answer, 1)
	go func() {
		a, _ := s.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, body(false))
		got <- a
	}()
	stack.Eventually(t, 10*time.Second, func() string {
		if len(chatCalls(up)) == 0 {
			return "the provider has no call"
		}
		return ""
	})
	s.stop()
	a := <-got
	if a.Status != 503 || a.Text("error.code") != "server_stopping" {
		t.Errorf("the client got %s", a)
	}
	if e := entryOf(t, s.Stack, a.Header.Get("X-Request-Id")); e.Outcome != "aborted" || e.Tokens != (tokens{Input: e.Estimate}) || e.Estimated != "server_stopping" {
		t.Errorf("the books have %+v", e)
	}
}

// TestAnAnswerOfNothingIsNone: a stream that ends before it begins, and JSON
// that says nothing, are failures of their provider, and another serves the call.
func TestAnAnswerOfNothingIsNone(t *testing.T) {
	t.Parallel()
	s := rig(t)
	for name, c := range map[string]struct {
		script upstreamtest.Script
		stream bool
	}{
		"[DONE] alone":         {upstreamtest.Script{Events: []string{}}, true},
		"a comment and [DONE]": {upstreamtest.Script{Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Body: ": hello\n\ndata: [DONE]\n\n"}, true},
		"an empty object":      {upstreamtest.Script{Body: "{}"}, false},
		"null choices":         {upstreamtest.Script{Body: `{"id":"x","object":"chat.completion","choices":null}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, list := inOrder(t, s, 2)
			list[0].up.Next(c.script)
			a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(c.stream))
			if got := told(t, s, a); got.Statuses != "200 200" || got.Outcome != "ok" || !strings.Contains(string(a.Body), "weir") {
				t.Errorf("the books have %+v, the client %s", got, a)
			}
		})
	}
}

// TestAProviderThatCannotBeToldACallIsPassedOver and is charged nothing.
func TestAProviderThatCannotBeToldACallIsPassedOver(t *testing.T) {
	t.Parallel()
	s := rig(t)
	ups := []*upstreamtest.Upstream{upstreamtest.New(t), upstreamtest.New(t), upstreamtest.New(t)}
	w := s.Setup(t, stack.Options{Upstream: ups[0], Provider: "custom-anthropic", Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1000}}})
	models := []string{"claude-2.1", "claude-sonnet-4-5", "claude-2.1"}
	lines := ""
	for i, up := range ups {
		key := s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, fmt.Sprintf(
			`{"provider": "custom-anthropic", "name": "key %d", "secret": "sk-%d", "base_url": %q, "models": [%q], "limits": [{"dimension": "requests", "window": "day", "amount": 1000}]}`, i, i, up.URL, models[i])).Text("id")
		lines += fmt.Sprintf(`,{"model": %q, "provider_key": %q, "priority": %d, "weight": 1}`, models[i], key, i+1)
	}
	s.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, `{"name": "front", "candidates": [`+lines[1:]+`]}`)
	stack.Eventually(t, 10*time.Second, func() string {
		if a := s.Call(t, "GET", "/v1/models/front", w.Key, nil); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	ups[0].Next(upstreamtest.Failed(401))
	a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, `{"model": "front", "reasoning_effort": "turbo", "messages": [{"role": "user", "content": "Hi"}]}`)
	if got := told(t, s, a); got.Statuses != "401 0 200" || strings.Count(got.Charges, "provider_key/requests 1") != 2 || strings.Count(got.Charges, "provider_key/requests 0") != 1 {
		t.Errorf("the books have %+v", got)
	}
}
