package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"

	"weir/test/stack"
)

// asker asks the question with a client as it comes out of the box, its two
// retries included.
type asker struct {
	name     string
	provider string // whose own form it is
	with     func(t *testing.T, at *stack.Stack, key string) (ask, *wire)
}

// ask asks for an answer of at most so many tokens. nil: it came.
type ask func(ctx context.Context, most int64) error

var askers = []asker{
	{"a chat of openai-go", openAIForm, func(t *testing.T, at *stack.Stack, key string) (ask, *wire) {
		c, w := openAIAt(t, at, key)
		return func(ctx context.Context, most int64) error {
			params := hello()
			params.MaxCompletionTokens = openai.Int(most)
			_, err := c.Chat.Completions.New(ctx, params)
			return err
		}, w
	}},
	{"a stream of openai-go", openAIForm, func(t *testing.T, at *stack.Stack, key string) (ask, *wire) {
		c, w := openAIAt(t, at, key)
		return func(ctx context.Context, most int64) error {
			params := hello()
			params.MaxTokens = openai.Int(most)
			stream := c.Chat.Completions.NewStreaming(ctx, params)
			for stream.Next() {
			}
			return errors.Join(stream.Err(), stream.Close())
		}, w
	}},
	{"a response of openai-go", openAIForm, func(t *testing.T, at *stack.Stack, key string) (ask, *wire) {
		c, w := openAIAt(t, at, key)
		return func(ctx context.Context, most int64) error {
			params := response()
			params.MaxOutputTokens = openai.Int(most)
			_, err := c.Responses.New(ctx, params)
			return err
		}, w
	}},
	{"a message of anthropic-sdk-go", anthropicForm, func(t *testing.T, at *stack.Stack, key string) (ask, *wire) {
		c, w := anthropicAt(t, at, key)
		return func(ctx context.Context, most int64) error {
			params := helloClaude()
			params.MaxTokens = most
			_, err := c.Messages.New(ctx, params)
			return err
		}, w
	}},
	{"a stream of anthropic-sdk-go", anthropicForm, func(t *testing.T, at *stack.Stack, key string) (ask, *wire) {
		c, w := anthropicAt(t, at, key)
		return func(ctx context.Context, most int64) error {
			params := helloClaude()
			params.MaxTokens = most
			stream := c.Messages.NewStreaming(ctx, params)
			for stream.Next() {
			}
			return errors.Join(stream.Err(), stream.Close())
		}, w
	}},
}

// each runs a test with every asker.
func each(t *testing.T, run func(t *testing.T, a asker)) {
	for _, a := range askers {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			run(t, a)
		})
	}
}

// refusal is an error as a client hands it to its program.
type refusal struct {
	Status        int
	Kind, Code    string
	Message, Text string // what the program reads, and the whole of it
	Limit         string // that refused, by its name
}

func refused(t *testing.T, err error) refusal {
	t.Helper()
	var body struct {
		Error struct {
			Message, Type, Code string
			Quota               struct{ Name string }
		}
	}
	var o *openai.Error
	var a *anthropic.Error
	r := refusal{}
	switch {
	case errors.As(err, &o):
		r.Status, r.Text = o.StatusCode, `{"error":`+o.RawJSON()+`}`
	case errors.As(err, &a):
		r.Status, r.Text = a.StatusCode, a.RawJSON()
	default:
		t.Fatalf("no answer of the API: %v", err)
	}
	if err := json.Unmarshal([]byte(r.Text), &body); err != nil {
		t.Fatalf("%v: %s", err, r.Text)
	}
	r.Kind, r.Code, r.Message, r.Limit = body.Error.Type, body.Error.Code, body.Error.Message, body.Error.Quota.Name
	return r
}

// in picks what holds in the form of an asker.
func (a asker) in(openAI, claude string) string {
	if a.provider == openAIForm {
		return openAI
	}
	return claude
}
