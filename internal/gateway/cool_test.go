package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// addProvider gives the world another provider key.
func addProvider(t *testing.T, s *stack.Stack, w stack.World, name string, up *upstreamtest.Upstream) string {
	t.Helper()
	return s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey,
		fmt.Sprintf(`{"provider": "custom", "name": %q, "secret": "sk-%s", "base_url": %q}`, name, name, up.URL)).Text("id")
}

func ask(t *testing.T, s *stack.Stack, w stack.World) stack.Answer {
	t.Helper()
	return s.Call(t, "POST", "/v1/chat/completions", w.Key, body(false))
}

// capacity checks a refusal for want of a key, with the seconds until one is
// back.
func capacity(t *testing.T, a stack.Answer, atLeast, atMost int) {
	t.Helper()
	after, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.Status != 503 || a.Text("error.code") != "provider_capacity" || a.Text("error.type") != "server_error" || a.Header.Get("X-Should-Retry") != strconv.FormatBool(after <= 120) || after < atLeast || after > atMost {
		t.Errorf("got %s, Retry-After %q, want a 503 with %d to %d", a, a.Header.Get("Retry-After"), atLeast, atMost)
	}
}

func limited(seconds string) upstreamtest.Script {
	return upstreamtest.Script{Status: 429, Header: http.Header{"Retry-After": {seconds}}, Body: `{"error":{"message":"Slow down","type":"x","code":null}}`}
}

func cooldowns(t *testing.T, s *stack.Stack, w stack.World, key string) []any {
	t.Helper()
	list, _ := s.Want(t, 200, "GET", "/api/v1/provider-keys/"+key+"/cooldowns", w.ManagementKey, nil).JSON("data").([]any)
	return list
}

func TestCallsKeepAwayFromProviderKeysThatCool(t *testing.T) {
	t.Parallel()
	s := rig(t)
	t.Run("with all of them cooling the refusal says when the first is back", func(t *testing.T) { earliestEnd(t, s) })
	t.Run("a longer wait extends a shorter one", func(t *testing.T) { longerWait(t, s) })
	t.Run("every healthy key gets its chance", func(t *testing.T) { healthyKey(t, s) })
	t.Run("a success clears the ladder, three failures rest the model", func(t *testing.T) { failingModel(t, s) })
	t.Run("what a person clears is called again", func(t *testing.T) { clearedByHand(t, s) })
	t.Run("what is learned refuses before the provider does", func(t *testing.T) { learnedLimit(t, s) })
}

func earliestEnd(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up, second := upstreamtest.New(t), upstreamtest.New(t)
	w := world(t, s, up)
	addProvider(t, s, w, "second", second)
	up.Next(limited("30"))
	second.Next(limited("50"))
	capacity(t, ask(t, s, w), 28, 30)
	capacity(t, ask(t, s, w), 27, 30)
	if up, second := len(up.Calls()), len(second.Calls()); up != 1 || second != 1 {
		t.Errorf("%d and %d calls arrived", up, second)
	}
}

func longerWait(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := s.Setup(t, stack.Options{Upstream: up})
	open := make(chan struct{})
	late := limited("60")
	late.Wait = open
	up.Next(late, limited("1"))
	first := make(chan stack.Answer, 1)
	go func() {
		a, err := s.Do(t.Context(), "POST", "/v1/chat/completions", w.Key, body(false))
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	stack.Eventually(t, 10*time.Second, func() string {
		if len(up.Calls()) == 0 {
			return "the call does not arrive"
		}
		return ""
	})
	capacity(t, ask(t, s, w), 1, 1)
	close(open)
	capacity(t, <-first, 59, 60)
	capacity(t, ask(t, s, w), 57, 60)
	if n := len(up.Calls()); n != 2 {
		t.Errorf("%d calls arrived", n)
	}
}

func healthyKey(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	bad := map[string]int{w.ProviderSecret: 402, "sk-two": 403, "sk-three": 402, "sk-four": 402}
	up.Choose(func(c upstreamtest.Call) upstreamtest.Script {
		if status := bad[strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer ")]; status != 0 {
			return upstreamtest.Fail(status, "x", "x", "No")
		}
		return upstreamtest.Script{}
	})
	keys := []string{w.ProviderKey}
	for _, name := range []string{"two", "three", "four", "five"} {
		keys = append(keys, addProvider(t, s, w, name, up))
	}
	served := 0
	stack.Eventually(t, 20*time.Second, func() string {
		if a := ask(t, s, w); a.Status != 200 {
			t.Errorf("got %s", a)
		}
		served++
		for i, key := range keys[:4] {
			if len(cooldowns(t, s, w, key)) != 1 {
				return fmt.Sprintf("key %d is not known to be refused", i+1)
			}
		}
		return ""
	})
	if n := len(cooldowns(t, s, w, keys[4])); n != 0 || len(up.Calls()) != served+4 {
		t.Errorf("the healthy key has %d cooldowns; %d calls arrived for %d", n, len(up.Calls()), served)
	}
	status := s.Want(t, 200, "GET", "/api/v1/provider-keys/"+keys[0], w.ManagementKey, nil)
	if status.Text("status") != "cooling" || status.Text("cooldowns.0.source") != "credit" || status.JSON("cooldowns.0.model") != nil || status.Text("cooldowns.0.check_at") == "" {
		t.Errorf("a key without credit is %s", status)
	}
}

func failingModel(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	fail := upstreamtest.Fail(500, "server_error", "x", "Oops")
	up.Next(fail, fail, upstreamtest.Script{})
	for _, want := range []int{502, 502, 200} {
		if a := ask(t, s, w); a.Status != want {
			t.Fatalf("got %s", a)
		}
	}
	up.Next(fail, fail, fail)
	stack.Eventually(t, 10*time.Second, func() string { // the success is known to whoever counts within a second
		a := ask(t, s, w)
		if a.Status == 503 {
			capacity(t, a, 4, 5)
			return ""
		}
		return a.String()
	})
	if list := cooldowns(t, s, w, w.ProviderKey); len(list) != 1 {
		t.Errorf("it has %v", list)
	}
	stack.Eventually(t, 10*time.Second, func() string { // on loopback it rests for 5 seconds
		if a := ask(t, s, w); a.Status != 200 {
			return a.String()
		}
		return ""
	})
}

func clearedByHand(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	again := func() {
		t.Helper()
		stack.Eventually(t, 5*time.Second, func() string {
			if a := ask(t, s, w); a.Status != 200 {
				return a.String()
			}
			return ""
		})
	}
	for _, cleared := range []struct{ path, body string }{
		{"/api/v1/provider-keys/" + w.ProviderKey + "/cooldowns/clear", `{"model": "test-small"}`},
		{"/api/v1/provider-keys/" + w.ProviderKey + "/cooldowns/clear", `{}`},
		{"/api/v1/cooldowns/clear", ""},
	} {
		up.Next(limited("600"))
		capacity(t, ask(t, s, w), 598, 600)
		var content any
		if cleared.body != "" {
			content = cleared.body
		}
		if a := s.Want(t, 200, "POST", cleared.path, w.ManagementKey, content); a.JSON("cleared") != 1.0 {
			t.Errorf("%s %s: %s", cleared.path, cleared.body, a)
		}
		again()
	}
	if a := s.Want(t, 200, "POST", "/api/v1/cooldowns/clear", w.ManagementKey, nil); a.JSON("cleared") != 0.0 {
		t.Errorf("nothing cools: %s", a)
	}
	up.Next(upstreamtest.EchoKey(401))
	if a := ask(t, s, w); a.Status != 502 || a.Text("error.code") != "upstream_auth_failed" {
		t.Errorf("got %s", a)
	}
	again() // verified at once, by itself
}

func learnedLimit(t *testing.T, s *stack.Stack) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := world(t, s, up)
	up.Choose(func(upstreamtest.Call) upstreamtest.Script {
		return upstreamtest.Script{Header: http.Header{
			"X-Ratelimit-Limit-Requests": {"2"}, "X-Ratelimit-Remaining-Requests": {"1"}, "X-Ratelimit-Reset-Requests": {"30s"},
			"X-Ratelimit-Limit-Tokens": {"-1"}, "X-Ratelimit-Remaining-Tokens": {"-1"},
		}}
	})
	var a stack.Answer
	stack.Eventually(t, 10*time.Second, func() string {
		if a = ask(t, s, w); a.Status != 503 {
			return a.String()
		}
		return ""
	})
	capacity(t, a, 1, 60)
	if a.JSON("error.quota") != nil {
		t.Errorf("the client is shown the provider's limit: %s", a)
	}
	arrived := len(up.Calls())
	learned := s.Want(t, 200, "GET", "/api/v1/provider-keys/"+w.ProviderKey, w.ManagementKey, nil)
	list, _ := learned.JSON("learned").([]any)
	if len(list) != 1 || learned.Text("learned.0.dimension") != "requests" || learned.JSON("learned.0.amount") != 2.0 || learned.Text("learned.0.source") != "header" || learned.JSON("learned.0.counts") != true {
		t.Errorf("learned is %s", learned)
	}
	if a := s.Want(t, 200, "POST", "/api/v1/provider-keys/"+w.ProviderKey+"/learned/forget", w.ManagementKey, `{"model": "test-small"}`); a.JSON("forgotten") != 1.0 {
		t.Errorf("forgotten: %s", a)
	}
	stack.Eventually(t, 5*time.Second, func() string {
		if a := ask(t, s, w); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	if len(up.Calls()) != arrived+1 {
		t.Errorf("%d calls arrived after %d", len(up.Calls()), arrived)
	}
}
