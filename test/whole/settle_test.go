package whole

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
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

// bench is what rests of the world's provider key, over or not: "" is nothing.
// It is read where it is kept, for on loopback a guess is over in 5 seconds.
func bench(t *testing.T, w stack.World) string {
	t.Helper()
	pvk, err := id.ProviderKey.Parse(w.ProviderKey)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(stack.Rows[string](t, weir, `
		select concat_ws(' ', source, reason, nullif(model, ''), 'for', extract(epoch from until - since)::int)
		from provider_health where tenant_id = $1 and provider_key_id = $2 and source is not null`, tenantUUID(t, w), pvk.String()), "; ")
}

func TestWhatASettlementSaysOfTheProviderRestsItsKeyAsTheGatewaysCallsDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"a stated wait":             {`{"outcome": "provider_limited", "provider_status": 429, "retry_after": "30"}`, "authoritative stated_wait test-small for 30"},
		"a 429 of a local one":      {`{"outcome": "provider_limited", "provider_status": 429}`, "heuristic rate_limited test-small for 5"},
		"limited, without a status": {`{"outcome": "provider_limited"}`, "heuristic rate_limited test-small for 5"},
		"an unreadable wait":        {`{"outcome": "provider_limited", "provider_status": 429, "retry_after": "soon"}`, "heuristic rate_limited test-small for 5"},
		"no credit":                 {`{"outcome": "provider_error", "provider_status": 402}`, "credit no_credit for 86400"},
		"a model not allowed":       {`{"outcome": "provider_error", "provider_status": 403}`, "tier model_not_allowed test-small for 86400"},
		"one failure":               {`{"outcome": "provider_error", "provider_status": 500}`, ""},
		"the client's own error":    {`{"outcome": "client_error", "provider_status": 400}`, ""},
		"nothing wrong":             {`{"outcome": "ok", "provider_status": 200, "usage": {"input_tokens": 1}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t)})
			settleWith(t, w, c.body)
			if got := bench(t, w); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

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
	if got := bench(t, w); got != "" {
		t.Fatalf("two failures, told thrice each: %s", got)
	}
	settleWith(t, w, failed) // the third in 15 minutes
	if got := bench(t, w); got != "heuristic model_failing test-small for 5" {
		t.Fatalf("got %q", got)
	}
	stack.Eventually(t, patience, func() string { // a call that went out after the failure
		settleWith(t, w, `{"outcome": "ok"}`)
		if got := bench(t, w); got != "" {
			return "it still rests: " + got
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
	if got := bench(t, w); got != "" {
		t.Errorf("a customer rests its tenant's key: %s", got)
	}
	weir.Want(t, 400, "POST", "/v1/reservations/"+reserveWith(t, w)+"/settle", w.ManagementKey, `{"outcome": "ok", "provider_status": 99}`)
}
