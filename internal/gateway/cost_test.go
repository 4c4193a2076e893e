package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// costOf is what the books have as a call's cost.
func costOf(t *testing.T, s *stack.Stack, a stack.Answer) (out string) {
	t.Helper()
	u, err := id.Request.Parse(a.Header.Get("X-Request-Id"))
	if err != nil {
		t.Fatal(err)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		got := stack.Rows[string](t, s, `select coalesce(cost_pico::text, 'unknown') from usage_events where request_id = $1`, u.String())
		if len(got) != 1 {
			return fmt.Sprintf("%d events", len(got))
		}
		out = got[0]
		return ""
	})
	return out
}

// TestACallThatItsProviderRefusedCostNothing, where a request has a price, as
// pictures have.
func TestACallThatItsProviderRefusedCostNothing(t *testing.T) {
	t.Parallel()
	s, up := rig(t), upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	s.Want(t, 200, "POST", "/api/v1/catalogue/prices", w.ManagementKey, `{"csv": "provider,model,class,above,micros_per_million,currency,valid_from,source\ncustom,test-small,request,0,40000000000,EUR,2020-11-01,our own server\n", "dry_run": false}`)
	var one string
	stack.Eventually(t, 10*time.Second, func() string {
		one = costOf(t, s, s.Want(t, 200, "POST", "/v1/images/generations", w.Key, `{"model": "test-small", "prompt": "a weir"}`))
		if one == "unknown" || one == "0" {
			return "no price yet"
		}
		return ""
	})
	up.Next(upstreamtest.Failed(400))
	if refused := costOf(t, s, s.Call(t, "POST", "/v1/images/generations", w.Key, `{"model": "test-small", "prompt": "a weir"}`)); refused == one {
		t.Errorf("a call that the provider refused with 400 is booked to have cost %s, as one that it served", refused)
	}
}

// TestACostIsUnknownRatherThanWrong, where a call is not served at the price that
// is known: in another tier than the usual one, or with what tokens do not pay.
func TestACostIsUnknownRatherThanWrong(t *testing.T) {
	t.Parallel()
	s := rig(t)
	chat := func(members string) string {
		return `{"id":"c","object":"chat.completion","model":"test-small"` + members + `,"choices":[{"index":0,"message":{"role":"assistant","content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`
	}
	message := func(usage string) string {
		return `{"id":"m","type":"message","role":"assistant","model":"test-small","content":[{"type":"text","text":"A"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":1` + usage + `}}`
	}
	for name, c := range map[string]struct {
		asks   string // members of the call
		script upstreamtest.Script
		claude bool
		known  bool
	}{
		"usual":                        {"", upstreamtest.Script{Body: chat("")}, false, true},
		"usual, stated":                {"", upstreamtest.Script{Body: chat(`,"service_tier":"default"`)}, false, true},
		"asked for, not stated":        {`"service_tier":"flex",`, upstreamtest.Script{Body: chat("")}, false, false},
		"asked for, not given":         {`"service_tier":"priority",`, upstreamtest.Script{Body: chat(`,"service_tier":"default"`)}, false, true},
		"given unasked":                {"", upstreamtest.Script{Body: chat(`,"service_tier":"priority"`)}, false, false},
		"a stream":                     {`"stream":true,`, upstreamtest.Script{Events: []string{`{"service_tier":"flex","choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`}}, false, false},
		"sound":                        {"", upstreamtest.Script{Usage: `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"audio_tokens":5}}`}, false, false},
		"Anthropic's usual":            {"", upstreamtest.Script{Body: message(`,"service_tier":"standard","cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"inference_geo":"not_available"`)}, true, true},
		"Anthropic's priority":         {"", upstreamtest.Script{Body: message(`,"service_tier":"priority"`)}, true, false},
		"a cache of an hour":           {"", upstreamtest.Script{Body: message(`,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":5}`)}, true, false},
		"searches":                     {"", upstreamtest.Script{Body: message(`,"server_tool_use":{"web_search_requests":2}`)}, true, false},
		"a region":                     {`"inference_geo":"us",`, upstreamtest.Script{Body: message("")}, true, false},
		"a tier that is not passed on": {`"service_tier":"flex",`, upstreamtest.Script{}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			provider, path := "custom", "/v1/chat/completions"
			if c.claude {
				provider, path = "custom-anthropic", "/v1/messages"
			}
			if name == "a tier that is not passed on" {
				path = "/v1/chat/completions"
			}
			w := s.Setup(t, stack.Options{Upstream: up, Provider: provider})
			s.Want(t, 200, "POST", "/api/v1/catalogue/prices", w.ManagementKey, fmt.Sprintf(`{"csv": "provider,model,class,above,micros_per_million,currency,valid_from,source\n%[1]s,test-small,input,0,1000000,EUR,2020-11-01,ours\n%[1]s,test-small,output,0,2000000,EUR,2020-11-01,ours\n", "dry_run": false}`, provider))
			call := `{` + c.asks + `"model": "test-small", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}`
			stack.Eventually(t, 10*time.Second, func() string {
				if known := costOf(t, s, s.Want(t, 200, "POST", path, w.Key, `{"model": "test-small", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}`)); known == "unknown" {
					return "no price yet"
				}
				return ""
			})
			up.Next(c.script)
			if cost := costOf(t, s, s.Want(t, 200, "POST", path, w.Key, call)); (cost != "unknown") != c.known {
				t.Errorf("the cost is %s", cost)
			}
		})
	}
}
