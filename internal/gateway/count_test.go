package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// TestTokensAreCountedHereWhereTheProviderDoesNot: nobody is asked, and the
// count is in the books as a call.
func TestTokensAreCountedHereWhereTheProviderDoesNot(t *testing.T) {
	t.Parallel()
	s, up := rig(t), upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	a := s.Want(t, 200, "POST", "/v1/messages/count_tokens", w.Key, `{"model": "test-small", "messages": [{"role": "user", "content": "What is a weir?"}]}`)
	if n, _ := a.JSON("input_tokens").(float64); n < 5 || n > 30 || len(up.Calls()) != 0 {
		t.Errorf("%s, with %d calls at the provider", a, len(up.Calls()))
	}
	stack.Eventually(t, 20*time.Second, func() string {
		b := s.Call(t, "GET", "/api/v1/usage", w.ManagementKey, nil)
		if b.JSON("totals.requests") == 1.0 && b.JSON("totals.input_tokens") == 0.0 {
			return ""
		}
		return b.String()
	})
}

// TestTokensAreCountedWithTheModelsVocabulary: of a model whose vocabulary is
// known, asked for by its own name.
func TestTokensAreCountedWithTheModelsVocabulary(t *testing.T) {
	t.Parallel()
	s, up := rig(t), upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, fmt.Sprintf(`{"provider": "custom", "name": "other", "secret": "sk-other", "base_url": %q, "models": ["gpt-4o"]}`, up.URL))
	text := strings.Repeat("the weir holds a flow of incomprehensibilities, doesn't it? ", 200)
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	var a stack.Answer
	stack.Eventually(t, 10*time.Second, func() string {
		if a = s.Call(t, "POST", "/v1/messages/count_tokens", w.Key, fmt.Sprintf(`{"model": "gpt-4o", "messages": [{"role": "user", "content": %q}]}`, text)); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	if got, _ := a.JSON("input_tokens").(float64); int(got) > n+20 || int(got) < n {
		t.Errorf("the vocabulary says %d, the client is told %v", n, got)
	}
}
