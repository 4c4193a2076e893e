// Package sdk holds the gateway to what official SDKs expect: a customer changes
// base URL and key, and nothing else.
package sdk

import (
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"weir/test/stack"
)

var weir *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Run(m, func(s *stack.Stack) { weir = s }))
}

// client is the official client with base URL and key changed. What it sends and
// gets is noted on the way; it behaves as it does without that.
func client(key string) (openai.Client, *wire) {
	w := &wire{}
	return openai.NewClient(option.WithBaseURL(weir.BaseURL()+"/v1"), option.WithAPIKey(key), option.WithMiddleware(w.note)), w
}

// wire is what went over the network.
type wire struct {
	mu      sync.Mutex
	answers []*http.Response
}

func (w *wire) note(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, resp)
	return resp, err
}

// calls is how many HTTP calls were made.
func (w *wire) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.answers)
}

func (w *wire) last() *http.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers[len(w.answers)-1]
}

func hello() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    "test-small",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is a weir?")},
	}
}
