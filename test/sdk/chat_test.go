package sdk

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

func TestAChatIsAnswered(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, wire := openAI(t, w.Key)
		got, err := c.Chat.Completions.New(t.Context(), hello())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Choices) != 1 || got.Choices[0].Message.Content != answer || got.Choices[0].FinishReason != "stop" {
			t.Errorf("%s", got.RawJSON())
		}
		if got.Model != "test-small" || got.ID == "" || got.Created == 0 || got.Object != "chat.completion" {
			t.Errorf("%s", got.RawJSON())
		}
		wantUsage(t, w, got.Usage)
		if wire.calls() != 1 {
			t.Errorf("%d HTTP calls", wire.calls())
		}
	})
}

// wantUsage compares the usage of an answer of six words with what the provider
// has counted.
func wantUsage(t *testing.T, w world, u openai.CompletionUsage) {
	t.Helper()
	prompt := int64(w.counted(t, 6).Input)
	if u.PromptTokens != prompt || u.CompletionTokens != 6 || u.TotalTokens != prompt+6 {
		t.Errorf("usage %s, want %d and 6", u.RawJSON(), prompt)
	}
}

// TestAStreamIsTheProvidersStream: the usage chunk is there when the client
// asked for it, and not otherwise, although the provider is always asked.
func TestAStreamIsTheProvidersStream(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		for _, asked := range []bool{false, true} {
			c, _ := openAI(t, w.Key)
			params := hello()
			if asked {
				params.StreamOptions.IncludeUsage = openai.Bool(true)
			}
			stream := c.Chat.Completions.NewStreaming(t.Context(), params)
			var acc openai.ChatCompletionAccumulator
			frames, pieces := 0, 0
			for stream.Next() {
				chunk := stream.Current()
				if !acc.AddChunk(chunk) {
					t.Errorf("a chunk does not fit: %s", chunk.RawJSON())
				}
				switch {
				case len(chunk.Choices) == 0:
					frames++
					wantUsage(t, w, chunk.Usage)
				case chunk.Choices[0].Delta.Content != "":
					pieces++
				}
			}
			if err := errors.Join(stream.Err(), stream.Close()); err != nil {
				t.Fatal(err)
			}
			if len(acc.Choices) != 1 || acc.Choices[0].Message.Content != answer || acc.Choices[0].FinishReason != "stop" || pieces != 6 {
				t.Errorf("%d pieces: %+v", pieces, acc.Choices)
			}
			if asked != (frames == 1) || frames > 1 {
				t.Errorf("%d chunks of usage alone, asked for: %v", frames, asked)
			}
			if provider == openAIForm && !strings.Contains(string(w.up.Last().Body), `"include_usage":true`) {
				t.Errorf("the provider was not asked for usage: %s", w.up.Last().Body)
			}
		}
	})
}

// level is a tool that says how high a river stands.
var level = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
	Name: "river_level", Description: openai.String("How high a river stands."),
	Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"river": map[string]any{"type": "string"}}, "required": []string{"river"}},
})

func demanding() openai.ChatCompletionNewParams {
	params := hello()
	params.Tools = []openai.ChatCompletionToolUnionParam{level}
	params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "river_level"})
	return params
}

// TestAToolIsCalledAndItsResultIsTaken goes both ways: the call of the tool
// comes back to the client, and its result to the provider.
func TestAToolIsCalledAndItsResultIsTaken(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := openAI(t, w.Key)
		params := demanding()
		got, err := c.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		message := got.Choices[0].Message
		if got.Choices[0].FinishReason != "tool_calls" || len(message.ToolCalls) != 1 {
			t.Fatalf("%s", got.RawJSON())
		}
		call := message.ToolCalls[0]
		if call.ID == "" || call.Type != "function" || call.Function.Name != "river_level" || call.Function.Arguments != `{"river":"weir"}` {
			t.Errorf("%s", call.RawJSON())
		}
		params.Messages = append(params.Messages, message.ToParam(), openai.ToolMessage("2.4 m", call.ID))
		params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{}
		got, err = c.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if got.Choices[0].Message.Content != answer || got.Choices[0].FinishReason != "stop" {
			t.Errorf("%s", got.RawJSON())
		}
		body := string(w.up.Last().Body)
		if !strings.Contains(body, "2.4 m") || strings.Count(body, `"`+call.ID+`"`) != 2 {
			t.Errorf("the provider got %s", body)
		}
	})
}

func TestTheArgumentsOfAToolCanBeStreamed(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := openAI(t, w.Key)
		stream := c.Chat.Completions.NewStreaming(t.Context(), demanding())
		var acc openai.ChatCompletionAccumulator
		pieces := 0
		for stream.Next() {
			chunk := stream.Current()
			acc.AddChunk(chunk)
			if len(chunk.Choices) == 1 && len(chunk.Choices[0].Delta.ToolCalls) == 1 && chunk.Choices[0].Delta.ToolCalls[0].Function.Arguments != "" {
				pieces++
			}
		}
		if err := errors.Join(stream.Err(), stream.Close()); err != nil {
			t.Fatal(err)
		}
		if len(acc.Choices) != 1 || acc.Choices[0].FinishReason != "tool_calls" || len(acc.Choices[0].Message.ToolCalls) != 1 {
			t.Fatalf("%+v", acc.Choices)
		}
		call := acc.Choices[0].Message.ToolCalls[0]
		if call.ID == "" || call.Function.Name != "river_level" || call.Function.Arguments != `{"river":"weir"}` || pieces != 2 {
			t.Errorf("%d pieces: %+v", pieces, call)
		}
	})
}

// grey is a picture of one grey pixel.
const grey = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="

func TestAPictureReachesTheProvider(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := openAI(t, w.Key)
		params := hello()
		params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart(question), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + grey, Detail: "low"}),
		})}
		got, err := c.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if got.Choices[0].Message.Content != answer {
			t.Errorf("%s", got.RawJSON())
		}
		if body := string(w.up.Last().Body); !strings.Contains(body, grey) || !strings.Contains(body, "image/png") {
			t.Errorf("the provider got %s", body)
		}
	})
}

// TestAFailureInsideAStreamIsAnError, and no silent end.
func TestAFailureInsideAStreamIsAnError(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		for _, script := range []upstreamtest.Script{{Cut: 4}, upstreamtest.ErrorEvent()} {
			w.up.Next(script)
			c, wire := openAI(t, w.Key)
			stream := c.Chat.Completions.NewStreaming(t.Context(), hello())
			for stream.Next() {
			}
			if err := stream.Err(); err == nil || !strings.Contains(err.Error(), `"server_error"`) {
				t.Errorf("the stream ended with %v", err)
			}
			_ = stream.Close()
			if wire.calls() != 1 {
				t.Errorf("%d HTTP calls", wire.calls())
			}
		}
	})
}

func TestModelsAreListedAndRead(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	page, err := c.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range page.Data {
		names = append(names, m.ID)
	}
	if strings.Join(names, " ") != "test-large test-small" {
		t.Errorf("models %v", names)
	}
	m, err := c.Models.Get(t.Context(), "test-large")
	if err != nil || m.ID != "test-large" || m.OwnedBy != "custom" {
		t.Errorf("%+v %v", m, err)
	}
	_, err = c.Models.Get(t.Context(), "test-unknown")
	if e := apiError(t, err); e.StatusCode != http.StatusNotFound || e.Code != "model_not_found" {
		t.Errorf("%v", err)
	}
}

// TestTheUsageOfEveryCallIsInTheBooksOnce reads the report that a tenant reads.
func TestTheUsageOfEveryCallIsInTheBooksOnce(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, provider string) {
		w := serving(t, provider)
		c, _ := openAI(t, w.Key)
		for range 3 {
			if _, err := c.Chat.Completions.New(t.Context(), hello()); err != nil {
				t.Fatal(err)
			}
		}
		stream := c.Chat.Completions.NewStreaming(t.Context(), hello())
		for stream.Next() {
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		input := float64(4 * w.counted(t, 6).Input)
		stack.Eventually(t, patience, func() string {
			a := weir.Call(t, "GET", "/api/v1/usage", w.ManagementKey, nil)
			if a.JSON("totals.requests") == 4.0 && a.JSON("totals.input_tokens") == input && a.JSON("totals.output_tokens") == 24.0 && a.JSON("totals.errors") == 0.0 {
				return ""
			}
			return a.String()
		})
	})
}

func apiError(t *testing.T, err error) *openai.Error {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("no answer of the API: %v", err)
	}
	return e
}
