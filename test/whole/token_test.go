package whole

import (
	"fmt"
	"testing"

	"weir/test/stack"
)

func TestAClientTokenSettlesNothing(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	key := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "server", "may_settle": true}`, w.Customer)).Text("secret")
	r := weir.Want(t, 201, "POST", "/v1/reservations", key, `{"model": "practice-small", "estimate": {"input_tokens": 100}}`).Text("id")
	token := weir.Want(t, 201, "POST", "/v1/client-tokens", key, `{"expires_in": 60}`).Text("token")
	if a := weir.Call(t, "POST", "/v1/reservations/"+r+"/settle", token, `{"outcome": "ok"}`); a.Status < 400 {
		t.Fatalf("a browser's token ends its server's call at nothing: %s", a)
	}
}
