package whole

import (
	"fmt"
	"testing"

	"weir/test/stack"
)

func TestRotatingAKeyResetsNoSpentWindow(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone()})
	k := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(
		`{"kind": "customer", "customer": %q, "name": "capped", "limits": [{"dimension": "requests", "window": "day", "amount": 2}]}`, w.Customer))
	call := func(secret string, want int) {
		t.Helper()
		weir.Want(t, want, "POST", "/v1/chat/completions", secret, chat("practice-small"))
	}
	call(k.Text("secret"), 200)
	r := weir.Want(t, 201, "POST", "/api/v1/api-keys/"+k.Text("id")+"/rotate", w.ManagementKey, `{"overlap_seconds": 3600}`)
	if r.Text("replaces") != k.Text("id") || r.Text("secret") == k.Text("secret") {
		t.Fatalf("got %s", r)
	}
	call(r.Text("secret"), 200)
	call(k.Text("secret"), 429)
	call(r.Text("secret"), 429)
	weir.Want(t, 409, "POST", "/api/v1/api-keys/"+k.Text("id")+"/rotate", w.ManagementKey, `{}`)
	if a := weir.Want(t, 200, "GET", "/api/v1/api-keys/"+k.Text("id"), w.ManagementKey, nil); a.Text("replaced_by") != r.Text("id") || a.Text("status") != "active" {
		t.Fatalf("the old key: %s", a)
	}
	weir.Want(t, 200, "POST", "/api/v1/api-keys/"+k.Text("id")+"/revoke", w.ManagementKey, nil)
	for _, secret := range []string{k.Text("secret"), r.Text("secret")} {
		stack.Eventually(t, patience, func() string { return refused(t, secret) })
	}
}

// refused is what is missing until a secret is refused.
func refused(t *testing.T, secret string) string {
	t.Helper()
	if a := weir.Call(t, "POST", "/v1/chat/completions", secret, chat("practice-small")); a.Status != 401 {
		return fmt.Sprintf("a refusal of the old secret; got %d", a.Status)
	}
	return ""
}

func TestWithoutAnOverlapTheOldSecretEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	k := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "leaked"}`, w.Customer))
	r := weir.Want(t, 201, "POST", "/api/v1/api-keys/"+k.Text("id")+"/rotate", w.ManagementKey, `{"overlap_seconds": 0}`)
	stack.Eventually(t, patience, func() string { return refused(t, k.Text("secret")) })
	weir.Want(t, 200, "POST", "/v1/chat/completions", r.Text("secret"), chat("practice-small"))
	for _, bad := range []string{`{"overlap_seconds": -1}`, `{"overlap_seconds": 2592001}`, `{"overlap_seconds": 9223372036854775807}`} {
		weir.Want(t, 400, "POST", "/api/v1/api-keys/"+r.Text("id")+"/rotate", w.ManagementKey, bad)
	}
}

func TestAKeyGetsNoStrongerKeysSecretByRotatingIt(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	strong := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "strong", "scopes": ["*"]}`)
	narrow := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "keys only", "scopes": ["api-keys:write"]}`).Text("secret")
	weir.Want(t, 403, "POST", "/api/v1/api-keys/"+strong.Text("id")+"/rotate", narrow, `{}`)
	weir.Want(t, 200, "GET", "/api/v1/me", strong.Text("secret"), nil)
}
