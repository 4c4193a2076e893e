package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// reservedOf are a tenant's reservations, the newest first: what was estimated
// of prompt and answer, and the guess of the prompt.
func reservedOf(t *testing.T, s *stack.Stack, w stack.World) []estimate {
	t.Helper()
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Rows[estimate](t, s, `
		select (detail #>> '{estimate,tokens,input_tokens}')::bigint, (detail #>> '{estimate,tokens,output_tokens}')::bigint, (detail ->> 'guess')::bigint
		from usage_events where tenant_id = $1 order by event_id desc`, tenant.String())
}

type estimate struct{ Input, Output, Guess int64 }

// TestEstimatesLearnWhatCallsTake: a key's calls of a model state no ceiling and
// are answered by six tokens; their prompts have three times the tokens that are
// guessed. Soon that is what is reserved.
func TestEstimatesLearnWhatCallsTake(t *testing.T) {
	t.Parallel()
	s := rig(t)
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: 1_000_000_000}}})
	call := fmt.Sprintf(`{"model": "test-small", "messages": [{"role": "user", "content": %q}]}`, question)
	var first estimate
	var truth int64
	up.Choose(func(upstreamtest.Call) upstreamtest.Script {
		return upstreamtest.Script{Usage: fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":6,"total_tokens":%d}`, truth, truth+6)}
	})
	s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, call)
	stack.Eventually(t, 20*time.Second, func() string {
		list := reservedOf(t, s, w)
		if len(list) == 0 {
			return "the books have nothing"
		}
		first = list[0]
		return ""
	})
	if first.Input != first.Guess || first.Output < 100 {
		t.Fatalf("before anything is known %+v is reserved", first)
	}
	truth = 3 * first.Guess
	stack.Eventually(t, 60*time.Second, func() string {
		s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, call)
		last := reservedOf(t, s, w)[0]
		if last.Guess != first.Guess {
			t.Errorf("the guess of one prompt went from %d to %d", first.Guess, last.Guess)
		}
		if last.Output < 6 || last.Output > 8 || last.Input < 2*first.Guess || last.Input > 3*first.Guess {
			return fmt.Sprintf("%+v is reserved for %d and 6 tokens", last, truth)
		}
		return ""
	})
}
