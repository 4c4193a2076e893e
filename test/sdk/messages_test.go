package sdk

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

func TestAMessageIsAnswered(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, wire := anthropicAt(t, weir, w.Key)
		got, err := c.Messages.New(t.Context(), helloClaude())
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, w, got)
		if wire.calls() != 1 {
			t.Errorf("%d HTTP calls", wire.calls())
		}
	})
}

// wantMessage compares an answer of six words with what the provider has said
// and counted.
func wantMessage(t *testing.T, w world, got *anthropic.Message) {
	t.Helper()
	if len(got.Content) != 1 || got.Content[0].Type != "text" || got.Content[0].Text != answer || got.StopReason != anthropic.StopReasonEndTurn {
		t.Errorf("%s", got.RawJSON())
	}
	if got.Model != "test-small" || got.Role != "assistant" || got.Type != "message" || got.ID == "" {
		t.Errorf("%s", got.RawJSON())
	}
	if want := int64(w.counted(t, 6).Input); got.Usage.InputTokens != want || got.Usage.OutputTokens != 6 {
		t.Errorf("usage %d and %d, want %d and 6", got.Usage.InputTokens, got.Usage.OutputTokens, want)
	}
}

func TestAMessageIsStreamed(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := anthropicAt(t, weir, w.Key)
		got, pieces := streamed(t, c, helloClaude())
		wantMessage(t, w, got)
		if pieces != 6 {
			t.Errorf("%d pieces", pieces)
		}
	})
}

// streamed is the message that a stream adds up to, and in how many pieces.
func streamed(t *testing.T, c anthropic.Client, params anthropic.MessageNewParams) (*anthropic.Message, int) {
	t.Helper()
	stream := c.Messages.NewStreaming(t.Context(), params)
	var got anthropic.Message
	pieces, stopped := 0, false
	for stream.Next() {
		e := stream.Current()
		if err := got.Accumulate(e); err != nil {
			t.Errorf("an event does not fit: %v: %s", err, e.RawJSON())
		}
		if e.Type == "content_block_delta" && e.Delta.Text+e.Delta.PartialJSON != "" {
			pieces++
		}
		stopped = e.Type == "message_stop"
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Fatal(err)
	}
	if !stopped {
		t.Error("the stream has no message_stop at its end")
	}
	return &got, pieces
}

var levelSchema = anthropic.ToolInputSchemaParam{Properties: map[string]any{"river": map[string]any{"type": "string"}}, Required: []string{"river"}}

func demandingClaude() anthropic.MessageNewParams {
	params := helloClaude()
	params.System = []anthropic.TextBlockParam{{Text: "Ask for levels before you answer."}}
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(levelSchema, "river_level")}
	params.ToolChoice = anthropic.ToolChoiceParamOfTool("river_level")
	return params
}

// TestAToolIsUsedAndItsResultIsTaken goes both ways, whole and streamed.
func TestAToolIsUsedAndItsResultIsTaken(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := anthropicAt(t, weir, w.Key)
		params := demandingClaude()
		whole, err := c.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		stream, pieces := streamed(t, c, params)
		for _, got := range []*anthropic.Message{whole, stream} {
			if got.StopReason != anthropic.StopReasonToolUse || len(got.Content) != 1 || got.Content[0].Type != "tool_use" {
				t.Fatalf("%s", got.RawJSON())
			}
			if use := got.Content[0]; use.ID == "" || use.Name != "river_level" || string(use.Input) != `{"river":"weir"}` {
				t.Errorf("%s", use.RawJSON())
			}
		}
		if pieces != 2 {
			t.Errorf("the arguments came in %d pieces", pieces)
		}
		use := whole.Content[0]
		params.Messages = append(params.Messages, whole.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(use.ID, "2.4 m", false)))
		params.ToolChoice = anthropic.ToolChoiceUnionParam{}
		got, err := c.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, w, got)
		if body := string(w.up.Last().Body); !strings.Contains(body, "2.4 m") || !strings.Contains(body, params.System[0].Text) || strings.Count(body, `"`+use.ID+`"`) != 2 {
			t.Errorf("the provider got %s", body)
		}
	})
}

func TestAPictureInAMessageReachesTheProvider(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := anthropicAt(t, weir, w.Key)
		params := helloClaude()
		params.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewImageBlockBase64("image/png", grey), anthropic.NewTextBlock(question))}
		got, err := c.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		wantMessage(t, w, got)
		if body := string(w.up.Last().Body); !strings.Contains(body, grey) || !strings.Contains(body, "image/png") {
			t.Errorf("the provider got %s", body)
		}
	})
}

// TestTokensAreCounted by the provider where it has a route for that, else
// by the gateway, which needs nobody for it.
func TestTokensAreCounted(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := anthropicAt(t, weir, w.Key)
		got, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "test-small", Messages: helloClaude().Messages})
		if err != nil {
			t.Fatal(err)
		}
		if provider == openAIForm {
			if got.InputTokens < 5 || got.InputTokens > 30 || len(w.up.Calls()) != 0 {
				t.Errorf("%s, with %d calls at the provider", got.RawJSON(), len(w.up.Calls()))
			}
			return
		}
		blocks := fmt.Sprintf(`[{"text":%q,"type":"text"}]`, question)
		if got.InputTokens != int64(upstreamtest.Prompt(blocks)) {
			t.Errorf("%s, of %s", got.RawJSON(), w.up.Last().Body)
		}
	})
}

func TestModelsAreListedAndReadInAnthropicsForm(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := anthropicAt(t, weir, w.Key)
		pages := c.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
		var names []string
		for pages.Next() {
			m := pages.Current()
			if m.Type != "model" || m.DisplayName == "" || m.CreatedAt.IsZero() {
				t.Errorf("%s", m.RawJSON())
			}
			names = append(names, m.ID)
		}
		if err := pages.Err(); err != nil || strings.Join(names, " ") != "test-large test-small" {
			t.Errorf("models %v, %v", names, err)
		}
		m, err := c.Models.Get(t.Context(), "test-large", anthropic.ModelGetParams{})
		if err != nil || m.ID != "test-large" {
			t.Errorf("%+v %v", m, err)
		}
		_, err = c.Models.Get(t.Context(), "test-unknown", anthropic.ModelGetParams{})
		if e := claudeError(t, err); e.StatusCode != http.StatusNotFound || e.Type() != "not_found_error" {
			t.Errorf("%v", err)
		}
	})
}

// TestAFailureInsideAStreamOfAMessageIsAnError, and no silent end.
func TestAFailureInsideAStreamOfAMessageIsAnError(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		for _, script := range []upstreamtest.Script{{Cut: 4}, upstreamtest.ErrorEvent()} {
			w.up.Next(script)
			c, wire := anthropicAt(t, weir, w.Key)
			stream := c.Messages.NewStreaming(t.Context(), helloClaude())
			stopped := false
			for stream.Next() {
				stopped = stopped || stream.Current().Type == "message_stop"
			}
			if e := claudeError(t, stream.Err()); e.Type() != "api_error" || e.Message == "" {
				t.Errorf("the stream ended with %v", e)
			}
			_ = stream.Close()
			if wire.calls() != 1 || stopped {
				t.Errorf("%d HTTP calls, stopped: %v", wire.calls(), stopped)
			}
		}
	})
}

// TestBetasAndTheVersionReachAnAnthropicProvider, and nothing else of the
// client's headers does.
func TestBetasAndTheVersionReachAnAnthropicProvider(t *testing.T) {
	t.Parallel()
	w := serving(t, anthropicForm)
	c, _ := anthropicAt(t, weir, w.Key)
	_, err := c.Beta.Messages.New(t.Context(), anthropic.BetaMessageNewParams{
		Model: "test-small", MaxTokens: 64, Betas: []anthropic.AnthropicBeta{"context-1m-2025-08-07"},
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(question))},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := w.up.Last().Header
	if h.Get("Anthropic-Beta") != "context-1m-2025-08-07" || h.Get("Anthropic-Version") == "" || h.Get("X-Api-Key") != w.ProviderSecret {
		t.Errorf("headers %v", h)
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Stainless") || name == "Authorization" {
			t.Errorf("the provider got %s", name)
		}
	}
	if bytes.Contains(w.up.Last().Body, []byte(w.Key)) {
		t.Error("the provider got the customer's key")
	}
}

func TestTheUsageOfEveryMessageIsInTheBooksOnce(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := anthropicAt(t, weir, w.Key)
		for range 2 {
			if _, err := c.Messages.New(t.Context(), helloClaude()); err != nil {
				t.Fatal(err)
			}
		}
		streamed(t, c, helloClaude())
		input := float64(3 * w.counted(t, 6).Input)
		stack.Eventually(t, patience, func() string {
			a := weir.Call(t, "GET", "/api/v1/usage", w.ManagementKey, nil)
			if a.JSON("totals.requests") == 3.0 && a.JSON("totals.input_tokens") == input && a.JSON("totals.output_tokens") == 18.0 && a.JSON("totals.errors") == 0.0 {
				return ""
			}
			return a.String()
		})
	})
}

func claudeError(t *testing.T, err error) *anthropic.Error {
	t.Helper()
	var e *anthropic.Error
	if !errors.As(err, &e) {
		t.Fatalf("no answer of the API: %v", err)
	}
	return e
}
