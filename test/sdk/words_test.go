package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	claude "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"

	"weir/test/stack"
)

// TestTheFourthMessageOfThreeAMinuteIsRefusedInAnthropicsWords compares status,
// headers and body with what is promised, member by member.
func TestTheFourthMessageOfThreeAMinuteIsRefusedInAnthropicsWords(t *testing.T) {
	t.Parallel()
	w := serving(t, anthropicForm, stack.Limit{Dimension: "requests", Window: "minute", Amount: 3}, stack.Limit{Dimension: "output_tokens", Window: "day", Amount: 600_000})
	c, wire := anthropicAt(t, weir, w.Key)
	for range 3 {
		if _, err := c.Messages.New(t.Context(), helloClaude()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Messages.New(t.Context(), helloClaude(), claude.WithMaxRetries(0))
	e, h := claudeError(t, err), wire.last().Header
	ms, _ := strconv.Atoi(h.Get("Retry-After-Ms"))
	for name, want := range map[string]string{
		"X-Should-Retry": "true", "Retry-After": fmt.Sprint((ms + 999) / 1000), "Request-Id": e.RequestID,
		"Anthropic-Ratelimit-Requests-Limit": "3", "Anthropic-Ratelimit-Requests-Remaining": "0",
		"Anthropic-Ratelimit-Output-Tokens-Limit": "600000", "Anthropic-Ratelimit-Output-Tokens-Remaining": fmt.Sprint(600_000 - 3*6),
		"Anthropic-Ratelimit-Tokens-Limit": "1000000", "Anthropic-Ratelimit-Input-Tokens-Limit": "1000000",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
	full, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-Requests-Reset"))
	if left := time.Until(full); err != nil || left > time.Minute+time.Second || left < time.Minute-patience-20*time.Second {
		t.Errorf("requests come back at %q, in %s", h.Get("Anthropic-Ratelimit-Requests-Reset"), left)
	}
	var got struct {
		Type  string
		Error struct {
			Type, Code, Message string
			Quota               struct {
				Name, Scope, Dimension, Window string
				Limit, Used, Requested         int64
			}
		}
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(e.RawJSON()), &got); err != nil {
		t.Fatal(err)
	}
	q := got.Error.Quota
	message := fmt.Sprintf("Rate limit reached for test-small in plan Starter on requests per minute: limit 3, used 3, requested 1. Try again in %s.", time.Duration(ms)*time.Millisecond)
	if e.StatusCode != http.StatusTooManyRequests || got.Type != "error" || got.Error.Type != "rate_limit_error" || got.Error.Code != "rate_limit_exceeded" || got.Error.Message != message || got.RequestID != e.RequestID {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
	if q.Name != "requests per minute" || q.Scope != "customer" || q.Dimension != "requests" || q.Window != "minute" || q.Limit != 3 || q.Used != 3 || q.Requested != 1 {
		t.Errorf("%s", e.RawJSON())
	}
}

// TestARouteThatTheProviderLacksIsAskedOnce: only chats and messages are
// translated, and the client is told which model does not do it.
func TestARouteThatTheProviderLacksIsAskedOnce(t *testing.T) {
	t.Parallel()
	w := serving(t, anthropicForm)
	c, wire := openAI(t, w.Key)
	asks := []func() error{
		func() error { _, err := c.Responses.New(t.Context(), response()); return err },
		func() error {
			_, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "test-small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("weir")}})
			return err
		},
	}
	for i, ask := range asks {
		if e := apiError(t, ask()); e.StatusCode != http.StatusBadRequest || e.Code != "unsupported_for_model" || e.Param != "model" {
			t.Errorf("%d %s", e.StatusCode, e.RawJSON())
		}
		if wire.calls() != i+1 || len(w.up.Calls()) != 0 {
			t.Errorf("%d HTTP calls, %d at the provider", wire.calls(), len(w.up.Calls()))
		}
	}
}

// TestThePracticeProviderAnswersEveryClient, without a key of any provider.
func TestThePracticeProviderAnswersEveryClient(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: plenty})
	c, _ := openAI(t, w.Key)
	params := hello()
	params.Model = "practice-small"
	chat, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil || chat.Choices[0].Message.Content == "" || chat.Usage.CompletionTokens == 0 {
		t.Errorf("%v %v", chat, err)
	}
	ask := response()
	ask.Model = "practice-small"
	got, err := c.Responses.New(t.Context(), ask)
	if err != nil || got.OutputText() == "" || got.Usage.OutputTokens == 0 {
		t.Errorf("%v %v", got, err)
	}
	vectors, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "practice-small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("weir")}, EncodingFormat: openai.EmbeddingNewParamsEncodingFormatBase64,
	})
	if err != nil || len(vectors.Data) != 1 || len(vectors.Data[0].Embedding) == 0 {
		t.Errorf("%v %v", vectors, err)
	}
	a, _ := anthropicAt(t, weir, w.Key)
	say := helloClaude()
	say.Model = "practice-small"
	message, err := a.Messages.New(t.Context(), say)
	if err != nil || message.Content[0].Text == "" || message.Usage.OutputTokens == 0 {
		t.Errorf("%v %v", message, err)
	}
	count, err := a.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "practice-small", Messages: say.Messages})
	if err != nil || count.InputTokens == 0 {
		t.Errorf("%v %v", count, err)
	}
	if told, _ := streamed(t, a, say); told.Content[0].Text != message.Content[0].Text {
		t.Errorf("streamed %q, whole %q", told.Content[0].Text, message.Content[0].Text)
	}
}
