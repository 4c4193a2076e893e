package gateway_test

import (
	"testing"
	"time"

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
