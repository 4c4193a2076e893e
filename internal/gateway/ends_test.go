package gateway_test

import (
	"fmt"
	"runtime/debug"
	"slices"
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
			words := make([]string, 100)
			for i := range words {
				words[i] = "word "
			}
			for _, p := range list { // the first may be found well again meanwhile
				p.up.Choose(func(upstreamtest.Call) upstreamtest.Script {
					return upstreamtest.Script{Words: words, Pause: 100 * time.Millisecond}
				})
			}
			if a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(true)); !strings.Contains(string(a.Body), "word ") || !strings.Contains(string(a.Body), "upstream_timeout") {
				t.Errorf("a stream of 10 seconds where a call may take 4: %.100s … %s", a, a.Body[max(0, len(a.Body)-200):])
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

// TestAStreamLeavesItsConnectionForTheNextCall: a provider is not asked for a new
// one by each.
func TestAStreamLeavesItsConnectionForTheNextCall(t *testing.T) {
	t.Parallel()
	s := rig(t)
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	from := map[string]bool{}
	for range 8 {
		s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, body(true))
		from[up.Last().From] = true
	}
	if len(from) > 2 {
		t.Errorf("8 streams, one after the other, took %d connections", len(from))
	}
}

// TestAKeyThatIsRemovedWhileACallRunsIsNotTriedNext.
func TestAKeyThatIsRemovedWhileACallRunsIsNotTriedNext(t *testing.T) {
	t.Parallel()
	s := rig(t)
	w, list := inOrder(t, s, 3)
	alias(t, s, w, "second", list[1:2], func(int) (int, int) { return 1, 1 })
	open := make(chan struct{})
	late := upstreamtest.Failed(401)
	late.Wait = open
	list[0].up.Next(late)
	got := make(chan stack.Answer, 1)
	go func() {
		a, _ := s.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, front(false))
		got <- a
	}()
	stack.Eventually(t, 10*time.Second, func() string {
		if len(chatCalls(list[0].up)) == 0 {
			return "the call does not arrive"
		}
		return ""
	})
	s.Want(t, 204, "DELETE", "/api/v1/provider-keys/"+list[1].id, w.ManagementKey, nil)
	stack.Eventually(t, 1400*time.Millisecond, func() string {
		if a := s.Call(t, "GET", "/v1/models/second", w.Key, nil); a.Status != 404 {
			return a.String()
		}
		return ""
	})
	close(open)
	if a := <-got; a.Status != 200 || len(chatCalls(list[1].up)) != 0 || len(chatCalls(list[2].up)) != 1 {
		t.Errorf("the removed key was called %d times, the next %d; the client got %s", len(chatCalls(list[1].up)), len(chatCalls(list[2].up)), a)
	}
}

// TestACallOfATenantThatIsSuspendedEnds in the middle of its answer, says so, and
// is charged what came.
func TestACallOfATenantThatIsSuspendedEnds(t *testing.T) {
	t.Parallel()
	s := rig(t)
	up := upstreamtest.New(t)
	w := world(t, s, up)
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	up.Next(upstreamtest.Script{Words: slices.Repeat([]string{"word "}, 400), Pause: 50 * time.Millisecond})
	go func() {
		stack.Eventually(t, 10*time.Second, func() string {
			if len(chatCalls(up)) == 0 {
				return "the call does not arrive"
			}
			return ""
		})
		stack.Rows[string](t, s, `update tenants set suspended_at = now() where tenant_id = $1 returning name`, tenant.String())
	}()
	a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, body(true))
	e := entryOf(t, s, a.Header.Get("X-Request-Id"))
	if !strings.Contains(string(a.Body), "tenant_suspended") || strings.Contains(string(a.Body), "[DONE]") || e.Outcome != "aborted" || e.Tokens.Input != e.Estimate || e.Tokens.Output == 0 {
		t.Errorf("the books have %+v, the client %.300s", e, a)
	}
}

// TestAClientThatLeavesPaysForNoFailureOfItsProvider.
func TestAClientThatLeavesPaysForNoFailureOfItsProvider(t *testing.T) {
	t.Parallel()
	s := rig(t)
	up := upstreamtest.New(t)
	w := world(t, s, up)
	open := make(chan struct{})
	up.Next(upstreamtest.Script{Wait: open, Cut: 3})
	leave(t, s, w, up, body(false), 0)
	close(open)
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		got := stack.Rows[entryTotals](t, s, `select outcome, input_tokens, output_tokens from usage_events where tenant_id = $1`, tenant.String())
		if len(got) != 1 {
			return fmt.Sprintf("%d events", len(got))
		}
		if got[0] != (entryTotals{Outcome: "provider_error"}) {
			t.Errorf("the books have %+v", got[0])
		}
		return ""
	})
}

type entryTotals struct {
	Outcome       string
	Input, Output int64
}
