package sdk

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

var prompt = int64(upstreamtest.Prompt(`"What is a weir?"`))

func TestAChatIsAnswered(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	c, _ := client(w.Key)
	got, err := c.Chat.Completions.New(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	if text := got.Choices[0].Message.Content; text != "A weir holds a flow." {
		t.Errorf("the answer is %q", text)
	}
	if got.Model != "test-small" || got.Choices[0].FinishReason != "stop" {
		t.Errorf("%s", got.RawJSON())
	}
	if u := got.Usage; u.PromptTokens != prompt || u.CompletionTokens != 6 || u.TotalTokens != prompt+6 {
		t.Errorf("usage %s", u.RawJSON())
	}
}

// TestAStreamIsTheProvidersStream: the usage chunk is there when the client
// asked for it, and not otherwise, although the provider is always asked.
func TestAStreamIsTheProvidersStream(t *testing.T) {
	t.Parallel()
	for _, withUsage := range []bool{false, true} {
		name := "without usage"
		if withUsage {
			name = "with usage"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := upstreamtest.New(t)
			w := weir.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "tokens", Window: "minute", Amount: 100_000}}})
			c, wire := client(w.Key)
			params := hello()
			if withUsage {
				params.StreamOptions.IncludeUsage = openai.Bool(true)
			}
			stream := c.Chat.Completions.NewStreaming(t.Context(), params)
			var text strings.Builder
			var frames, others int
			for stream.Next() {
				chunk := stream.Current()
				if len(chunk.Choices) == 0 {
					frames++
					if u := chunk.Usage; u.PromptTokens != prompt || u.CompletionTokens != 6 {
						t.Errorf("usage %s", u.RawJSON())
					}
					continue
				}
				others++
				text.WriteString(chunk.Choices[0].Delta.Content)
			}
			if err := errors.Join(stream.Err(), stream.Close()); err != nil {
				t.Fatal(err)
			}
			want := 0
			if withUsage {
				want = 1
			}
			if text.String() != "A weir holds a flow." || frames != want || others != 8 {
				t.Errorf("%q in %d chunks, and %d with usage alone, want 8 and %d", text.String(), others, frames, want)
			}
			if !strings.Contains(string(up.Last().Body), `"include_usage":true`) {
				t.Errorf("the provider was not asked for usage: %s", up.Last().Body)
			}
			if h := wire.last().Header; h.Get("X-Ratelimit-Limit-Tokens") != "100000" || h.Get("X-Request-Id") == "" {
				t.Errorf("a stream's headers: %v", h)
			}
		})
	}
}

// TestAFailureInsideAStreamIsAnError, and no silent end.
func TestAFailureInsideAStreamIsAnError(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	for _, script := range []upstreamtest.Script{{Cut: 4}, upstreamtest.ErrorEvent()} {
		up.Next(script)
		c, _ := client(w.Key)
		stream := c.Chat.Completions.NewStreaming(t.Context(), hello())
		for stream.Next() {
		}
		if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "error") {
			t.Errorf("the stream ended with %v", err)
		}
		_ = stream.Close()
	}
}

func TestModelsAreListedAndRead(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
	c, _ := client(w.Key)
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
	w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
	c, _ := client(w.Key)
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
	stack.Eventually(t, patience, func() string {
		a := weir.Call(t, "GET", "/api/v1/usage", w.ManagementKey, nil)
		if a.JSON("totals.requests") == 4.0 && a.JSON("totals.input_tokens") == float64(4*prompt) && a.JSON("totals.output_tokens") == 24.0 && a.JSON("totals.errors") == 0.0 {
			return ""
		}
		return a.String()
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
