package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/catalogue/mimic"
	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// TestOddAnswersAreChargedOnceAndSpoilNoKey: what providers and clients do beside
// the matrix is charged as it was, sent once, and harms nobody else's calls.
func TestOddAnswersAreChargedOnceAndSpoilNoKey(t *testing.T) {
	t.Parallel()
	s := rig(t)
	t.Run("tokens are counted by who counts, else here", func(t *testing.T) { oddCount(t, s) })
	t.Run("a limit that a stream's first event states is a limit", func(t *testing.T) { oddStreamLimited(t, s) })
	t.Run("a limit that a response's event states is a limit", func(t *testing.T) { oddResponseLimited(t, s) })
	t.Run("a prompt that a provider moderates benches no key", func(t *testing.T) { oddModerated(t, s) })
	t.Run("a call larger than a provider's limit benches no key", func(t *testing.T) { oddTooLarge(t, s) })
	t.Run("a message whose end states no usage is estimated", func(t *testing.T) { oddNoFinalUsage(t, s) })
	t.Run("a chat cut after an early statement is estimated", func(t *testing.T) { oddEarlyUsage(t, s) })
	t.Run("a key that is removed while a call waits is not called", func(t *testing.T) { oddStaleRoute(t, s) })
	t.Run("no transcription streams for the provider only", func(t *testing.T) { oddTrue(t, s) })
	t.Run("while another key rests the client is told to wait", func(t *testing.T) { oddRefusedAndResting(t, s) })
	t.Run("an answer that is no stream is bought once", func(t *testing.T) { oddNoStream(t, s) })
	t.Run("the largest batch of vectors is bought once", func(t *testing.T) { oddVectors(t, s) })
	t.Run("a translated answer states what is charged", func(t *testing.T) { oddTranslatedUsage(t, s) })
	t.Run("a provider that gives up is followed by another", func(t *testing.T) { oddGivesUp(t, s) })
	t.Run("practice answers nothing beside a real provider", func(t *testing.T) { oddPractice(t, s) })
}

func oddCount(t *testing.T, s *stack.Stack) {
	t.Parallel()
	claude, other := upstreamtest.New(t), upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: claude, Provider: "custom-anthropic"})
	second := s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, fmt.Sprintf(`{"provider": "custom", "name": "other", "secret": "sk-other", "base_url": %q}`, other.URL)).Text("id")
	alias(t, s, w, "front", []provider{{claude, w.ProviderKey}, {other, second}}, func(i int) (int, int) { return i + 1, 1 })
	claude.Choose(func(c upstreamtest.Call) upstreamtest.Script {
		if c.Route() == mimic.CountTokens {
			return upstreamtest.Failed(500)
		}
		return upstreamtest.Script{}
	})
	a := s.Call(t, "POST", "/v1/messages/count_tokens", w.Key, `{"model": "front", "messages": [{"role": "user", "content": "What is a weir?"}]}`)
	for _, c := range other.Calls() {
		if c.Route() == mimic.CountTokens {
			t.Errorf("a provider of chat completions was asked %s %s; the client got %s", c.Method, c.Path, a)
		}
	}
	if a.Status != 200 {
		t.Errorf("the client got %s", a)
	}
}

const statedLimit = `{"error":{"message":"Rate limit reached for gpt-4o in organization org-abcdefghijkl on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`

func oddStreamLimited(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 1)
	list[0].up.Next(upstreamtest.Script{Events: []string{statedLimit}, NoDone: true})
	a := s.Call(t, "POST", "/v1/chat/completions", w.Key, front(true))
	if strings.Contains(string(a.Body), "30000") || a.Status != 503 || told(t, s, a).Outcome != "provider_limited" {
		t.Errorf("the client is told of the provider's own limit: %s, and the books have %+v", a, told(t, s, a))
	}
	if n := len(cooldowns(t, s, w, list[0].id)); n != 1 {
		t.Errorf("the key that is at its limit has %d cooldowns", n)
	}
}

func oddResponseLimited(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	up.Next(upstreamtest.Script{NoDone: true, Events: []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"test-small","usage":null,"error":null}}`,
		`{"type":"response.failed","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"failed","usage":null,"error":{"code":"rate_limit_exceeded","message":"Rate limit reached for gpt-4o in organization org-abcdefghijkl on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s."}}}`,
	}})
	a := s.Call(t, "POST", "/v1/responses", w.Key, `{"model": "test-small", "stream": true, "input": "What is a weir?"}`)
	if strings.Contains(string(a.Body), "30000") {
		t.Errorf("the client is told of the provider's own limit: %s", a)
	}
	if n := len(cooldowns(t, s, w, w.ProviderKey)); n != 1 {
		t.Errorf("the key that is at its limit has %d cooldowns", n)
	}
}

func oddModerated(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	up.Next(upstreamtest.Script{Status: 403, Body: `{"error":{"code":403,"message":"test-small requires moderation on Test. Your input was flagged for \"violence\". No credits were charged.","metadata":{"reasons":["violence"],"flagged_input":"how to","provider_name":"Test","model_slug":"test-small"}}}`})
	a := s.Call(t, "POST", "/v1/chat/completions", w.Key, body(false))
	b := s.Call(t, "POST", "/v1/chat/completions", w.Key, body(false))
	if b.Status != 200 {
		t.Errorf("one flagged prompt (%s) and the next call gets %s; cooldowns: %v", a, b, cooldowns(t, s, w, w.ProviderKey))
	}
}

func oddTooLarge(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	large := upstreamtest.Fail(429, "tokens", "rate_limit_exceeded", "Request too large for gpt-4o in organization org-abcdefghijkl on tokens per min (TPM): Limit 30000, Requested 90000. The input or output tokens must be reduced in order to run successfully.")
	list[0].up.Next(large)
	list[1].up.Next(large)
	a := s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false))
	b := s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false))
	if b.Status != 200 {
		t.Errorf("one call too large for the provider (%s), and a small one gets %s", a, b)
	}
	if a.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("a call that can never fit is told to come again: %s, x-should-retry %q", a, a.Header.Get("X-Should-Retry"))
	}
}

func oddNoFinalUsage(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := lane{mimic.Messages, mimic.Messages, true}.world(t, s, up)
	events := []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"test-small","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	}
	for range 200 {
		events = append(events, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" four more words of it"}}`)
	}
	up.Next(upstreamtest.Script{Events: append(events, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)})
	s.Want(t, 200, "POST", "/v1/messages", w.Key, strings.Replace(body(true), "200", "2000", 1))
	oddBooked(t, s, w, 200)
}

// oddBooked: the world's one call has at least so much output in the books.
func oddBooked(t *testing.T, s *stack.Stack, w stack.World, least int64) {
	t.Helper()
	var got []entry
	stack.Eventually(t, 20*time.Second, func() string {
		if got = eventsOf(t, s, w); len(got) != 1 {
			return fmt.Sprintf("%d events", len(got))
		}
		return ""
	})
	if got[0].Tokens.Output < least {
		t.Errorf("the client got %d pieces, and the books have %+v", least, got[0])
	}
}

func oddEarlyUsage(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := lane{mimic.Chat, mimic.Chat, true}.world(t, s, up)
	events := []string{`{"id":"c","object":"chat.completion.chunk","created":1,"model":"test-small","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":12,"completion_tokens":0,"total_tokens":12}}`}
	for range 200 {
		events = append(events, `{"id":"c","object":"chat.completion.chunk","created":1,"model":"test-small","choices":[{"index":0,"delta":{"content":" four more words of it"},"finish_reason":null}]}`)
	}
	up.Next(upstreamtest.Script{Events: events, Cut: 200})
	s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, body(true))
	oddBooked(t, s, w, 150)
}

func oddStaleRoute(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	open := make(chan struct{})
	up.Next(upstreamtest.Script{Wait: open})
	first := patient(t.Context(), t, s, w.Key, "first", "0")
	stack.Eventually(t, 10*time.Second, func() string {
		if len(chatCalls(up)) != 1 {
			return "it does not arrive"
		}
		return ""
	})
	second := patient(t.Context(), t, s, w.Key, "second", "20000")
	s.Want(t, 204, "DELETE", "/api/v1/provider-keys/"+w.ProviderKey, w.ManagementKey, nil)
	stack.Eventually(t, 10*time.Second, func() string {
		if a := s.Call(t, "GET", "/v1/models/test-small", w.Key, nil); a.Status != 404 {
			return a.String()
		}
		return ""
	})
	close(open)
	<-first
	a := <-second
	if n := len(chatCalls(up)); n > 1 {
		t.Errorf("the removed credential was used %d times after a wait; the client got %s", n-1, a)
	}
}

func chatCalls(up *upstreamtest.Upstream) (list []upstreamtest.Call) {
	for _, c := range up.Calls() {
		if c.Method == http.MethodPost && c.Route() == mimic.Chat {
			list = append(list, c)
		}
	}
	return list
}

func oddTrue(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	l := lane{mimic.Transcriptions, mimic.Transcriptions, false}
	w := l.world(t, s, up)
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	up.Choose(func(c upstreamtest.Call) upstreamtest.Script {
		if strings.Contains(string(c.Body), "True") { // as pydantic reads a form
			return upstreamtest.Script{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: "data: {\"type\":\"transcript.text.done\",\"text\":\"hi\"}\n\n"}
		}
		return upstreamtest.Script{}
	})
	send := func(value string) stack.Answer {
		body := part("model", "test-small") + part("stream", value) + "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--b--\r\n"
		req := l.request(t.Context(), t, s, w.Key)
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		a, err := s.Send(req)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := send("True"); a.Status != 200 && a.Status != 400 {
		t.Errorf("the client got %s of an answer that the provider gave and charges", a)
	}
	if b := send("false"); b.Status != 200 {
		t.Errorf("and the next call gets %s", b)
	}
}

func oddTranslatedUsage(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := lane{mimic.Messages, mimic.Chat, false}.world(t, s, up)
	up.Next(upstreamtest.Script{Usage: upstreamtest.Absent})
	a := s.Want(t, 200, "POST", "/v1/messages", w.Key, body(false))
	var got []entry
	stack.Eventually(t, 20*time.Second, func() string {
		if got = eventsOf(t, s, w); len(got) != 1 {
			return fmt.Sprintf("%d events", len(got))
		}
		return ""
	})
	if told := a.JSON("usage.output_tokens"); told != float64(got[0].Tokens.Output) {
		t.Errorf("the client is told %v output tokens, and is charged %+v", told, got[0])
	}
}

// oddGivesUp: 408 is a timeout of the provider's (OpenRouter, Anthropic), 498
// is Groq's word for no capacity.
func oddGivesUp(t *testing.T, s *stack.Stack) {
	t.Parallel()
	for _, status := range []int{408, 498} {
		w, list := inOrder(t, s, 2)
		list[0].up.Next(upstreamtest.Fail(status, "server_error", "x", "Timed out"))
		if a := s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false)); a.Status != 200 {
			t.Errorf("%d: another provider is well, and the client gets %s", status, a)
		}
	}
}

func oddPractice(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up, Provider: "custom-anthropic"})
	practice := s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, `{"provider": "practice", "name": "practice"}`).Text("id")
	s.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, fmt.Sprintf(
		`{"name": "front", "candidates": [{"model": "test-small", "provider_key": %q, "priority": 1, "weight": 1}, {"model": "practice-small", "provider_key": %q, "priority": 2, "weight": 1}]}`, w.ProviderKey, practice))
	stack.Eventually(t, 10*time.Second, func() string {
		if a := s.Call(t, "GET", "/v1/models/front", w.Key, nil); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	if a := s.Call(t, "POST", "/v1/embeddings", w.Key, `{"model": "front", "input": "What is a weir?"}`); a.Status == 200 {
		t.Errorf("a live key of a tenant with a real provider gets made-up vectors: %.200s", a)
	}
}

// oddVectors: 1,600 inputs of 1,536 dimensions, each written as OpenAI does where
// no encoding_format is stated: on a line of its own.
func oddVectors(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	one := `{"object":"embedding","index":0,"embedding":[` + strings.TrimSuffix(strings.Repeat("\n        -0.006929283495992422,", 1536), ",") + "]}"
	large := upstreamtest.Script{Body: `{"object":"list","data":[` + strings.TrimSuffix(strings.Repeat(one+",", 1600), ",") + `],"model":"test-small","usage":{"prompt_tokens":9000,"total_tokens":9000}}`}
	for _, p := range list {
		p.up.Choose(func(c upstreamtest.Call) upstreamtest.Script {
			if c.Route() == mimic.Embeddings {
				return large
			}
			return upstreamtest.Script{}
		})
	}
	a := s.Call(t, "POST", "/v1/embeddings", w.Key, `{"model": "front", "input": "as many as one call may have"}`)
	asked := 0
	for _, p := range list {
		for _, c := range p.up.Calls() {
			if c.Route() == mimic.Embeddings {
				asked++
			}
		}
	}
	if a.Status != 200 || asked != 1 {
		t.Errorf("an answer of %d MB was bought %d times, and the client got %.200s; the books have %+v", len(large.Body)>>20, asked, a, told(t, s, a))
	}
}

// oddRefusedAndResting: keys are refused only where all were.
func oddRefusedAndResting(t *testing.T, s *stack.Stack) {
	t.Parallel()
	for _, status := range []int{401, 404} {
		w, list := inOrder(t, s, 2)
		list[0].up.Next(limited("60"))
		list[1].up.Next(limited("60"))
		s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false)) // both rest now
		s.Want(t, 200, "POST", "/api/v1/provider-keys/"+list[0].id+"/cooldowns/clear", w.ManagementKey, "{}")
		asked := len(chatCalls(list[0].up))
		list[0].up.Choose(func(upstreamtest.Call) upstreamtest.Script { return upstreamtest.Failed(status) })
		var a stack.Answer
		stack.Eventually(t, 10*time.Second, func() string {
			if a = s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false)); len(chatCalls(list[0].up)) == asked {
				return "it still rests: " + a.String()
			}
			return ""
		})
		if a.Text("error.code") != "provider_capacity" {
			t.Errorf("%d from one key while the other rests for a minute: the client is told %s, x-should-retry %q", status, a, a.Header.Get("X-Should-Retry"))
		}
	}
}

// oddNoStream: what is bought is a stream for its client, and not bought again.
func oddNoStream(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 3)
	for _, p := range list {
		p.up.Choose(func(c upstreamtest.Call) upstreamtest.Script {
			if c.Route() != mimic.Chat {
				return upstreamtest.Script{}
			}
			return upstreamtest.Script{Body: `{"id":"c","object":"chat.completion","created":1,"model":"test-small","choices":[{"index":0,"message":{"role":"assistant","content":"A weir."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":1000,"total_tokens":2000}}`}
		})
	}
	for path, last := range map[string]string{"/v1/chat/completions": "data: [DONE]\n\n", "/v1/messages": "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"} {
		a := s.Call(t, "POST", path, w.Key, front(true))
		if !strings.HasSuffix(string(a.Body), last) || !strings.Contains(string(a.Body), "A weir.") || a.Header.Get("Content-Type") != "text/event-stream" || strings.Contains(string(a.Body), `"usage":{"prompt`) {
			t.Errorf("%s: the client got %s", path, a)
		}
		if e := entryOf(t, s, a.Header.Get("X-Request-Id")); e.Outcome != "ok" || e.Tokens != (tokens{Input: 1000, Output: 1000}) {
			t.Errorf("%s: the books have %+v", path, e)
		}
	}
	asked := 0
	for _, p := range list {
		asked += len(chatCalls(p.up))
	}
	if asked != 2 {
		t.Errorf("two calls were bought %d times", asked)
	}
}
