// Package sdk holds the gateway to what official SDKs expect: a customer changes
// base URL and key, and nothing else.
package sdk

import (
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	claude "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"weir/internal/catalogue/mimic"
	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

var weir *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Run(m, func(s *stack.Stack) { weir = s }))
}

// The providers of the upstream, one of each form: what a client of the other
// form asks of it is translated.
const (
	openAIForm    = "custom"
	anthropicForm = "custom-anthropic"
)

// forms runs a test against a provider of each form.
func forms(t *testing.T, run func(t *testing.T, provider string)) {
	for _, provider := range []string{openAIForm, anthropicForm} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			run(t, provider)
		})
	}
}

// world is a customer of a tenant whose provider is scripted.
type world struct {
	stack.World
	up *upstreamtest.Upstream
}

const question = "What is a weir?"

const answer = "A weir holds a flow."

// plenty is a plan that has every header and refuses nothing.
var plenty = []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 1000}, {Dimension: "tokens", Window: "minute", Amount: 1_000_000}}

// serving makes a world. Every plan of it has a limit of requests and one of
// tokens, so that every answer has all headers.
func serving(t *testing.T, provider string, plan ...stack.Limit) world {
	t.Helper()
	return servingAt(t, weir, provider, plan...)
}

func servingAt(t *testing.T, at *stack.Stack, provider string, plan ...stack.Limit) world {
	t.Helper()
	up := upstreamtest.New(t)
	for _, l := range plenty {
		if !slices.ContainsFunc(plan, func(p stack.Limit) bool { return p.Dimension == l.Dimension }) {
			plan = append(plan, l)
		}
	}
	return world{at.Setup(t, stack.Options{Upstream: up, Provider: provider, Zone: stack.MiddayZone(), Plan: plan}), up}
}

// counted is what the provider has counted of the call that arrived last.
func (w world) counted(t *testing.T, words int) mimic.Counts {
	t.Helper()
	last := w.up.Last()
	call, err := mimic.Read(last.Route(), last.Header.Get("Content-Type"), last.Body)
	if err != nil {
		t.Fatal(err)
	}
	return call.Counts(words)
}

// openAI is OpenAI's client with base URL and key changed, and what it sends and
// gets.
func openAI(t *testing.T, key string) (openai.Client, *wire) {
	return openAIAt(t, weir, key)
}

func openAIAt(t *testing.T, at *stack.Stack, key string) (openai.Client, *wire) {
	w := &wire{t: t}
	return openai.NewClient(option.WithBaseURL(at.BaseURL()+"/v1"), option.WithAPIKey(key), option.WithHTTPClient(&http.Client{Transport: w})), w
}

// anthropicAt is the same of Anthropic's client.
func anthropicAt(t *testing.T, at *stack.Stack, key string) (anthropic.Client, *wire) {
	w := &wire{t: t}
	return anthropic.NewClient(claude.WithBaseURL(at.BaseURL()), claude.WithAPIKey(key), claude.WithHTTPClient(&http.Client{Transport: w})), w
}

func hello() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "test-small", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)}}
}

func helloClaude() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "test-small", MaxTokens: 64,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
}
