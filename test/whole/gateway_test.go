package whole

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// sse is a stream that says exactly this and ends.
func sse(body string) upstreamtest.Script {
	return upstreamtest.Script{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
}

func streamed(model string) string { return strings.Replace(chat(model), "{", `{"stream": true, `, 1) }

func chunkOf(choice int, text, finish string) string {
	return fmt.Sprintf("data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":%d,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", choice, text, finish)
}

func TestNoProviderErrorTellsTheCustomerTheProvidersKey(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	for name, tail := range map[string]string{
		"an error event in another form": "event: error\ndata: {\"message\":\"Incorrect API key provided: " + w.ProviderSecret + "\",\"code\":401}\n\n",
		"an error event that is no JSON": "event: error\ndata: Incorrect API key provided: " + w.ProviderSecret + "\n\n",
		"a comment":                      ": tried " + w.ProviderSecret + "\n\n",
		"an error told twice":            "data: {\"error\":{\"message\":\"key " + w.ProviderSecret + "\"},\"error\":{}}\n\n",
	} {
		up.Next(sse(chunkOf(0, "Hi", "null") + tail))
		if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, streamed("test-small")); strings.Contains(string(a.Body), w.ProviderSecret) {
			t.Errorf("%s, streamed: the customer reads the tenant's provider key: %s", name, a)
		}
	}
	for name, body := range map[string]string{
		"a warning":     `{"id":"x","object":"chat.completion","choices":[],"warning":"key ` + w.ProviderSecret + ` expires","usage":{"prompt_tokens":1,"completion_tokens":1}}`,
		"another error": `{"detail":"Incorrect API key provided: ` + w.ProviderSecret + `"}`,
	} {
		up.Next(upstreamtest.Script{Body: body})
		if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, chat("test-small")); strings.Contains(string(a.Body), w.ProviderSecret) {
			t.Errorf("%s, whole: the customer reads the tenant's provider key: %s", name, a)
		}
	}
}

func TestAStreamCutWhileAChoiceStillRunsSaysSo(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	up.Next(sse(chunkOf(0, "done", `"stop"`) + chunkOf(1, "half of it", "null")))
	a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, strings.Replace(streamed("test-small"), "{", `{"n": 2, `, 1))
	if strings.Contains(string(a.Body), "[DONE]") || !strings.Contains(string(a.Body), "upstream_cut") {
		t.Fatalf("one of two choices was cut, and the stream ends as if it were whole: %s", a)
	}
}

func TestAnAnswerThatEndsInHalfAnEmojiIsPassedOnAndCounted(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	up.Next(upstreamtest.Script{Body: `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"cut \ud83d"},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`})
	if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, chat("test-small")); a.Status != 200 {
		t.Fatalf("what every JSON encoder writes for a text cut between two halves of a rune, and every SDK reads: %s", a)
	}
}

func TestACapThatRefusesBesideAMinuteLimitIsToldAsTheCap(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{
		{Dimension: "requests", Window: "minute", Amount: 2}, {Dimension: "requests", Window: "day", Amount: 2},
	}})
	for range 2 {
		weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("practice-small"))
	}
	a := weir.Want(t, 429, "POST", "/v1/chat/completions", w.Key, chat("practice-small"))
	if a.Text("error.code") != "insufficient_quota" || a.Header.Get("x-should-retry") != "false" {
		t.Errorf("the wait is %s s, and SDKs are told to try again (x-should-retry %s): %s", a.Header.Get("Retry-After"), a.Header.Get("x-should-retry"), a)
	}
	r := weir.Want(t, 429, "POST", "/v1/reservations", w.Key, `{"model": "practice-small", "estimate": {"input_tokens": 1}}`)
	if r.Text("code") != "daily_cap_reached" {
		t.Errorf("the decision API: %s", r)
	}
}

func TestACallThatNoProviderKeyCouldEverTakeIsTooLarge(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{ProviderLimit: []stack.Limit{{Dimension: "tokens", Window: "minute", Amount: 20}}})
	body := strings.Replace(chat("practice-small"), "{", `{"max_tokens": 500, `, 1)
	a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, body)
	if a.Status != 413 || a.Header.Get("x-should-retry") != "false" {
		t.Fatalf("no wait can help, and the answer is: %s, x-should-retry %s", a, a.Header.Get("x-should-retry"))
	}
}
