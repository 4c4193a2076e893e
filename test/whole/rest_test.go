package whole

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"weir/test/stack"
)

func TestNoQueryParameterIsAnInternalError(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	for _, bad := range []string{"\x00", "\xff", "a\x00b"} {
		for _, path := range []string{"/api/v1/usage?model=", "/api/v1/requests?model=", "/api/v1/requests?end_user=", "/api/v1/requests?outcome="} {
			if a := weir.Call(t, "GET", path+url.QueryEscape(bad), w.ManagementKey, nil); a.Status >= 500 {
				t.Errorf("%s%q: %s", path, bad, a)
			}
		}
	}
}

func TestAKeysModelsBoundTheDecisionAPIToo(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	key := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "narrow", "models": ["practice-small"]}`, w.Customer)).Text("secret")
	token := weir.Want(t, 201, "POST", "/v1/client-tokens", w.Key, `{"models": ["practice-small"]}`).Text("token")
	for name, secret := range map[string]string{"key": key, "client token": token} {
		weir.Want(t, 201, "POST", "/v1/reservations", secret, `{"model": "practice-small", "estimate": {"input_tokens": 1}}`)
		if a := weir.Call(t, "POST", "/v1/reservations", secret, `{"model": "gpt-4o", "estimate": {"input_tokens": 1}}`); a.Status < 400 {
			t.Errorf("a %s for one model reserves another: %s", name, a)
		}
	}
}

func TestLiveLimitsOfATestKeyAreThoseThatItsCallsTouch(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 100}}})
	key := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "try", "test": true}`, w.Customer)).Text("secret")
	a := weir.Want(t, 200, "POST", "/v1/chat/completions", key, chat("practice-small"))
	if left := a.Header.Get("x-ratelimit-remaining-requests"); left != "99" {
		t.Fatalf("the call says that %s are left", left)
	}
	if l := weir.Want(t, 200, "GET", "/v1/limits", key, nil); l.JSON("data.0.remaining") != float64(99) {
		t.Fatalf("the call said that 99 are left, the live state says %v", l.JSON("data.0.remaining"))
	}
}

func TestAnExtensionAnswersWhenTheReservationReallyEnds(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	r := weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"model": "practice-small", "estimate": {"input_tokens": 1}, "ttl_seconds": 3000}`)
	a := weir.Want(t, 200, "POST", "/v1/reservations/"+r.Text("id")+"/extend", w.Key, `{"ttl_seconds": 1}`)
	was, _ := time.Parse(time.RFC3339Nano, r.Text("expires_at"))
	if now, err := time.Parse(time.RFC3339Nano, a.Text("expires_at")); err != nil || now.Before(was) {
		t.Fatalf("it ends at %s still, the answer says %s", was, a.Text("expires_at"))
	}
}

func TestAKeyGivesNobodyAScopeThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	narrow := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "keys only", "scopes": ["api-keys:write"]}`).Text("secret")
	weir.Want(t, 403, "GET", "/api/v1/usage", narrow, nil)
	for _, scopes := range []string{`["*"]`, `["usage:read"]`, `["api-keys:write", "provider-keys:write"]`} {
		if a := weir.Call(t, "POST", "/api/v1/api-keys", narrow, `{"kind": "management", "name": "more", "scopes": `+scopes+`}`); a.Status != 403 {
			t.Errorf("a key with api-keys:write alone made one with %s: %d", scopes, a.Status)
		}
	}
}

func TestNoExpiryMakesTheListOfKeysUnreadable(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	for _, at := range []string{"9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999999999Z"} {
		weir.Call(t, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "management", "name": "far", "scopes": ["*"], "expires_at": %q}`, at))
		if a := weir.Call(t, "GET", "/api/v1/api-keys", w.ManagementKey, nil); a.Status != 200 {
			t.Fatalf("after a key that expires at %s: %s", at, a)
		}
	}
}

func TestATenantsTimeZoneChangesWhenItsDayEnds(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 100}}})
	before := weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("practice-small"))
	a := weir.Want(t, 200, "PATCH", "/api/v1/tenant", w.ManagementKey, `{"zone": "Pacific/Apia"}`)
	if a.Text("zone") != stack.MiddayZone() || a.Text("pending_zone.zone") != "Pacific/Apia" {
		t.Fatalf("got %s", a)
	}
	from, err := time.Parse(time.RFC3339Nano, a.Text("pending_zone.days_from"))
	if err != nil || !from.After(time.Now()) {
		t.Fatalf("days change from %s", a)
	}
	after := weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("practice-small"))
	const left = "x-ratelimit-remaining-requests"
	if was, is := before.Header.Get(left), after.Header.Get(left); was != "99" || is != "98" {
		t.Fatalf("%s was %s and is %s", left, was, is)
	}
	reset, err := time.ParseDuration(after.Header.Get("x-ratelimit-reset-requests"))
	if drift := time.Until(from) - reset; err != nil || drift.Abs() > 2*time.Second {
		t.Fatalf("the cap resets in %s, days change in %s", reset, time.Until(from))
	}
	weir.Want(t, 400, "PATCH", "/api/v1/tenant", w.ManagementKey, `{"zone": "Mars/Base"}`)
	if a := weir.Want(t, 200, "PATCH", "/api/v1/tenant", w.ManagementKey, fmt.Sprintf(`{"zone": %q, "name": "Renamed"}`, stack.MiddayZone())); a.JSON("pending_zone") != nil || a.Text("name") != "Renamed" {
		t.Fatalf("taken back: %s", a)
	}
}

func TestACapThatIsMadeTodayCountsFromThenOn(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	for range 3 {
		weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 100}}`)
	}
	weir.Want(t, 200, "PATCH", "/api/v1/api-keys/"+w.KeyID, w.ManagementKey, `{"limits": [{"dimension": "units", "window": "day", "amount": 100}]}`)
	stack.Eventually(t, patience, func() string {
		a := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil)
		if a.JSON("data.0.limit") != 100.0 {
			return "the cap does not hold yet: " + a.String()
		}
		if a.JSON("data.0.used") != 0.0 {
			t.Errorf("it counts what was before it: %s", a)
		}
		return ""
	})
	weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 100}}`)
	weir.Want(t, 429, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 1}}`)
}
