package whole

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// reserveWith reserves by a management key, with a provider key.
func reserveWith(t *testing.T, w stack.World) string {
	t.Helper()
	return weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey,
		fmt.Sprintf(`{"customer": %q, "model": "test-small", "provider_key": %q, "estimate": {"input_tokens": 10}}`, w.Customer, w.ProviderKey)).Text("id")
}

func settleWith(t *testing.T, w stack.World, body string) {
	t.Helper()
	weir.Want(t, 200, "POST", "/v1/reservations/"+reserveWith(t, w)+"/settle", w.ManagementKey, body)
}

func benches(t *testing.T, w stack.World) stack.Answer {
	t.Helper()
	return weir.Want(t, 200, "GET", "/api/v1/provider-keys/"+w.ProviderKey+"/cooldowns", w.ManagementKey, nil)
}

func TestWhatASettlementSaysOfTheProviderRestsItsKeyAsTheGatewaysCallsDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, reason, source, model string
		least, most                 time.Duration // of the bench
	}{
		"a stated wait":             {`{"outcome": "provider_limited", "provider_status": 429, "retry_after": "30"}`, "stated_wait", "authoritative", "test-small", 20 * time.Second, 30 * time.Second},
		"a 429 of a local one":      {`{"outcome": "provider_limited", "provider_status": 429}`, "rate_limited", "heuristic", "test-small", 0, 5 * time.Second},
		"limited, without a status": {`{"outcome": "provider_limited"}`, "rate_limited", "heuristic", "test-small", 0, 5 * time.Second},
		"an unreadable wait":        {`{"outcome": "provider_limited", "provider_status": 429, "retry_after": "soon"}`, "rate_limited", "heuristic", "test-small", 0, 5 * time.Second},
		"no credit":                 {`{"outcome": "provider_error", "provider_status": 402}`, "no_credit", "credit", "", 23 * time.Hour, 24 * time.Hour},
		"a model not allowed":       {`{"outcome": "provider_error", "provider_status": 403}`, "model_not_allowed", "tier", "test-small", 23 * time.Hour, 24 * time.Hour},
		"one failure":               {`{"outcome": "provider_error", "provider_status": 500}`, "", "", "", 0, 0},
		"the client's own error":    {`{"outcome": "client_error", "provider_status": 400}`, "", "", "", 0, 0},
		"nothing wrong":             {`{"outcome": "ok", "provider_status": 200, "usage": {"input_tokens": 1}}`, "", "", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
			settleWith(t, w, c.body)
			got := benches(t, w)
			if got.Text("data.0.reason") != c.reason || got.Text("data.0.source") != c.source || got.Text("data.0.model") != c.model {
				t.Fatalf("got %s", got)
			}
			if c.reason == "" {
				return
			}
			until, err := time.Parse(time.RFC3339, got.Text("data.0.until"))
			if left := time.Until(until); err != nil || left > c.most || left < c.least-stepBack {
				t.Errorf("it rests for %s, %v", left, err)
			}
		})
	}
}

// stepBack is how long the look at a bench may take on a busy machine.
const stepBack = 10 * time.Second

func TestASettlementThatComesAgainIsNoSecondFailureAndASuccessEndsAGuess(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
	const failed = `{"outcome": "provider_error", "provider_status": 503}`
	for range 2 {
		one := reserveWith(t, w)
		for range 3 {
			weir.Want(t, 200, "POST", "/v1/reservations/"+one+"/settle", w.ManagementKey, failed)
		}
	}
	if got := benches(t, w); got.JSON("data.0") != nil {
		t.Fatalf("two failures, told thrice each: %s", got)
	}
	settleWith(t, w, failed) // the third in 15 minutes
	if got := benches(t, w); got.Text("data.0.reason") != "model_failing" {
		t.Fatalf("got %s", got)
	}
	stack.Eventually(t, patience, func() string { // a call that went out after the failure
		settleWith(t, w, `{"outcome": "ok"}`)
		if got := benches(t, w); got.JSON("data.0") != nil {
			return "it still rests: " + got.String()
		}
		return ""
	})
}

func TestOnlyManagementKeysSayWhatAProviderAnswered(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
	key := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "settles", "may_settle": true}`, w.Customer)).Text("secret")
	held := reserveWith(t, w)
	for _, body := range []string{`{"outcome": "provider_limited", "provider_status": 429}`, `{"outcome": "provider_limited", "retry_after": "60"}`} {
		if a := weir.Want(t, 400, "POST", "/v1/reservations/"+held+"/settle", key, body); a.Text("errors.0.code") != "not_for_this_kind" {
			t.Errorf("got %s", a)
		}
	}
	weir.Want(t, 200, "POST", "/v1/reservations/"+held+"/settle", key, `{"outcome": "provider_limited"}`)
	if got := benches(t, w); got.JSON("data.0") != nil {
		t.Errorf("a customer rests its tenant's key: %s", got)
	}
	weir.Want(t, 400, "POST", "/v1/reservations/"+reserveWith(t, w)+"/settle", w.ManagementKey, `{"outcome": "ok", "provider_status": 99}`)
}
