package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// TestACallGoesOnToWhoServesIt: as long as nothing has reached the client, a
// failed attempt is followed by another key's, the plan is charged once, and
// each provider key what its own attempt took.
func TestACallGoesOnToWhoServesIt(t *testing.T) {
	t.Parallel()
	s := rig(t)
	t.Run("five keys of which four are refused", func(t *testing.T) { fiveKeys(t, s) })
	t.Run("every key at its limit", func(t *testing.T) { everyKeyLimited(t, s) })
	t.Run("after a failure, another provider first", func(t *testing.T) { otherProviderFirst(t, s) })
	t.Run("an outage is not answered with a storm", func(t *testing.T) { retryBudget(t, s) })
	t.Run("keys of one pool are not asked in turn", func(t *testing.T) { poolSiblings(t, s) })
	t.Run("a stream that fails before its first word", func(t *testing.T) { streamMovesOn(t, s) })
	t.Run("a stream that has begun is never begun again", func(t *testing.T) { streamStays(t, s) })
	t.Run("an error in a 200 by what it says", func(t *testing.T) { inside200(t, s) })
	t.Run("a client that left is not served by another", func(t *testing.T) { goneBetween(t, s) })
	t.Run("a provider that has no room is passed over", func(t *testing.T) { fullProvider(t, s) })
}

// provider is a key at an upstream of its own.
type provider struct {
	up *upstreamtest.Upstream
	id string
}

// inOrder is a world whose model "front" is an alias of test-small on so many
// keys, tried in this order.
func inOrder(t *testing.T, s *stack.Stack, n int) (stack.World, []provider) {
	t.Helper()
	return inOrderOf(t, s, n, world)
}

func inOrderOf(t *testing.T, s *stack.Stack, n int, world func(*testing.T, *stack.Stack, *upstreamtest.Upstream) stack.World) (stack.World, []provider) {
	t.Helper()
	list := make([]provider, n)
	for i := range list {
		list[i].up = upstreamtest.New(t)
	}
	w := world(t, s, list[0].up)
	list[0].id = w.ProviderKey
	for i := 1; i < n; i++ {
		list[i].id = s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, fmt.Sprintf(
			`{"provider": "custom", "name": "key %d", "secret": "sk-%d", "base_url": %q, "limits": [{"dimension": "requests", "window": "day", "amount": 1000}]}`, i, i, list[i].up.URL)).Text("id")
	}
	alias(t, s, w, "front", list, func(i int) (priority, weight int) { return i + 1, 1 })
	return w, list
}

func alias(t *testing.T, s *stack.Stack, w stack.World, name string, list []provider, place func(int) (priority, weight int)) {
	t.Helper()
	var lines []string
	for i, p := range list {
		priority, weight := place(i)
		lines = append(lines, fmt.Sprintf(`{"model": "test-small", "provider_key": %q, "priority": %d, "weight": %d}`, p.id, priority, weight))
	}
	s.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, fmt.Sprintf(`{"name": %q, "candidates": [%s]}`, name, strings.Join(lines, ", ")))
	stack.Eventually(t, 10*time.Second, func() string {
		if a := s.Call(t, "GET", "/v1/models/"+name, w.Key, nil); a.Status != 200 {
			return a.String()
		}
		return ""
	})
}

func front(stream bool) string { return strings.Replace(body(stream), "test-small", "front", 1) }

// story is what the books have of one call.
type story struct {
	Outcome, Model, Served, Statuses, Charges string
	Requests                                  int64
}

func told(t *testing.T, s *stack.Stack, a stack.Answer) (out story) {
	t.Helper()
	u, err := id.Request.Parse(a.Header.Get("X-Request-Id"))
	if err != nil {
		t.Fatal(err)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		got := stack.Rows[story](t, s, `
			select outcome, model_asked, coalesce(model_served, ''),
			       coalesce((select string_agg(a ->> 'status', ' ' order by n) from json_array_elements(detail -> 'attempts') with ordinality x (a, n)), ''),
			       coalesce((select string_agg(split_part(c ->> 'ledger', ':', 1) || '/' || split_part(c ->> 'ledger', '/', 2) || ' ' || (c ->> 'amount'), ', ' order by c ->> 'ledger')
			                 from json_array_elements(detail -> 'charges') c where split_part(c ->> 'ledger', '/', 2) = 'requests'), ''),
			       requests
			from usage_events where request_id = $1`, u.String())
		if len(got) != 1 {
			return fmt.Sprintf("%d events", len(got))
		}
		out = got[0]
		return ""
	})
	return out
}

func fiveKeys(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 5)
	for i, status := range []int{401, 402, 401, 402} {
		list[i].up.Next(upstreamtest.Fail(status, "x", "x", "No"))
	}
	a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(false))
	if got, want := told(t, s, a), (story{"ok", "front", "test-small", "401 402 401 402 200", "customer/requests 1, provider_key/requests 1, provider_key/requests 1, provider_key/requests 1, provider_key/requests 1", 1}); got != want {
		t.Errorf("the books have %+v, want %+v", got, want)
	}
}

func everyKeyLimited(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	list[0].up.Next(limited("30"))
	list[1].up.Next(limited("50"))
	a := s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false))
	capacity(t, a, 29, 30)
	if got, want := told(t, s, a), (story{"provider_limited", "front", "test-small", "429 429", "customer/requests 1, provider_key/requests 1", 1}); got != want {
		t.Errorf("the books have %+v, want %+v", got, want)
	}
}

func otherProviderFirst(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	twin := twinOf(t, s, w, list[0])
	alias(t, s, w, "pair", []provider{list[0], twin, list[1]}, func(i int) (int, int) { return i + 1, 1 })
	list[0].up.Next(upstreamtest.Fail(500, "server_error", "x", "Oops"))
	a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, strings.Replace(front(false), "front", "pair", 1))
	if first, second := len(list[0].up.Calls()), len(list[1].up.Calls()); first != 1 || second != 1 {
		t.Errorf("%d calls at the provider that failed, %d at the other", first, second)
	}
	if got := told(t, s, a); got.Statuses != "500 200" || got.Requests != 1 {
		t.Errorf("the books have %+v", got)
	}
}

// retryBudget: of calls to a provider that is out, about a tenth is tried again.
func retryBudget(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	for _, p := range list {
		p.up.Choose(func(upstreamtest.Call) upstreamtest.Script {
			return upstreamtest.Script{Status: 503, Body: "{}"}
		})
	}
	const calls = 60
	begun := time.Now()
	for range calls {
		s.Call(t, "POST", "/v1/chat/completions", w.Key, front(false))
		s.Want(t, 200, "POST", "/api/v1/cooldowns/clear", w.ManagementKey, nil)
	}
	arrived := len(list[0].up.Calls()) + len(list[1].up.Calls())
	most := calls + calls/10 + 5 + int(time.Since(begun)/(10*time.Second)) + 1
	if arrived > most || arrived < calls+3 {
		t.Errorf("%d calls arrived for %d, want at most %d", arrived, calls, most)
	}
}

func poolSiblings(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	twin := twinOf(t, s, w, list[0])
	alias(t, s, w, "pair", []provider{list[0], twin, list[1]}, func(i int) (int, int) { return i + 1, 1 })
	s.Want(t, 201, "POST", "/api/v1/pools", w.ManagementKey, fmt.Sprintf(`{"name": "One account", "provider_keys": [%q, %q]}`, list[0].id, twin.id))
	stack.Eventually(t, 10*time.Second, func() string {
		s.Want(t, 200, "POST", "/api/v1/cooldowns/clear", w.ManagementKey, nil)
		asked := len(list[0].up.Calls())
		list[0].up.Next(limited("30"))
		s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, strings.Replace(front(false), "front", "pair", 1))
		if n := len(list[0].up.Calls()) - asked; n != 1 {
			return fmt.Sprintf("%d keys of the pool were called", n) // it is not seen yet
		}
		return ""
	})
}

// twinOf is another key at the same address.
func twinOf(t *testing.T, s *stack.Stack, w stack.World, p provider) provider {
	t.Helper()
	return provider{p.up, s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey,
		fmt.Sprintf(`{"provider": "custom", "name": "twin", "secret": "sk-twin", "base_url": %q}`, p.up.URL)).Text("id")}
}

func streamMovesOn(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 3)
	list[0].up.Next(upstreamtest.Script{Events: []string{`{"error":{"message":"Overloaded","type":"server_error","code":null}}`}, NoDone: true})
	list[1].up.Next(limited("30"))
	a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(true))
	if text := string(a.Body); !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Contains(text, "error") {
		t.Errorf("the client got %s", text)
	}
	if got := told(t, s, a); got.Statuses != "200 429 200" || got.Outcome != "ok" {
		t.Errorf("the books have %+v", got)
	}
}

func streamStays(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	list[0].up.Next(upstreamtest.Script{Cut: 3})
	a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(true))
	if text := string(a.Body); strings.Contains(text, "[DONE]") || !strings.Contains(text, "upstream_cut") {
		t.Errorf("the client got %s", text)
	}
	if got := told(t, s, a); got.Statuses != "200" || len(list[1].up.Calls()) != 0 {
		t.Errorf("the books have %+v, and the other key %d calls", got, len(list[1].up.Calls()))
	}
}

func inside200(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	list[0].up.Next(upstreamtest.Script{Body: `{"error":{"message":"Insufficient credits","code":402}}`})
	s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(false))
	if n := len(cooldowns(t, s, w, list[0].id)); n != 1 {
		t.Errorf("the key without credit has %d cooldowns", n)
	}
}

func goneBetween(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 2)
	open := make(chan struct{})
	late := limited("30")
	late.Wait = open
	list[0].up.Next(late)
	leave(t, s, w, list[0].up, front(false), 0)
	close(open)
	tenant, err := id.Tenant.Parse(w.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		if n := stack.Rows[int](t, s, `select count(*)::int from usage_events where model_asked = 'front' and tenant_id = $1`, tenant.String()); n[0] != 1 {
			return "no event"
		}
		return ""
	})
	if n := len(list[1].up.Calls()); n != 0 {
		t.Errorf("%d calls of a client that left were sent on", n)
	}
}

func fullProvider(t *testing.T, s *stack.Stack) {
	t.Parallel()
	w, list := inOrder(t, s, 3)
	s.Want(t, 200, "PATCH", "/api/v1/provider-keys/"+list[1].id, w.ManagementKey, `{"limits": [{"dimension": "requests", "window": "day", "amount": 0}]}`)
	stack.Eventually(t, 10*time.Second, func() string {
		s.Want(t, 200, "POST", "/api/v1/cooldowns/clear", w.ManagementKey, nil)
		list[0].up.Next(limited("30"))
		a := s.Want(t, 200, "POST", "/v1/chat/completions", w.Key, front(false))
		if got := told(t, s, a); got.Statuses != "429 200" || len(list[1].up.Calls()) > 0 {
			return fmt.Sprintf("the books have %+v", got)
		}
		return ""
	})
}
