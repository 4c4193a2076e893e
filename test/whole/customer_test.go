package whole

import (
	"testing"

	"weir/test/stack"
)

func TestAChangeOfACustomerLeavesWhatIsAbsentAndClearsWhatIsNull(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	c := weir.Want(t, 201, "POST", "/api/v1/customers", w.ManagementKey, `{"name": "Kestrel", "email": "k@kestrel.example", "external_id": "k-1"}`)
	at := "/api/v1/customers/" + c.Text("id")
	if a := weir.Want(t, 200, "PATCH", at, w.ManagementKey, `{"name": "Kestrel GmbH"}`); a.Text("name") != "Kestrel GmbH" || a.Text("email") != "k@kestrel.example" || a.Text("external_id") != "k-1" {
		t.Fatalf("got %s", a)
	}
	if a := weir.Want(t, 200, "PATCH", at, w.ManagementKey, `{"email": null}`); a.JSON("email") != nil || a.Text("external_id") != "k-1" {
		t.Fatalf("got %s", a)
	}
	for _, bad := range []string{`{"name": ""}`, `{"email": 5}`, `{"email": "nobody"}`, `{"unknown": 1}`} {
		weir.Want(t, 400, "PATCH", at, w.ManagementKey, bad)
	}
}

func TestASuspendedCustomersCallsAreRefusedUntilItIsResumed(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	call := func(want int) {
		t.Helper()
		stack.Eventually(t, patience, func() string {
			if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, chat("practice-small")); a.Status != want {
				return "an answer " + a.String()
			}
			return ""
		})
	}
	call(200)
	weir.Want(t, 200, "POST", "/api/v1/customers/"+w.Customer+"/suspend", w.ManagementKey, nil)
	call(403)
	weir.Want(t, 200, "POST", "/api/v1/customers/"+w.Customer+"/resume", w.ManagementKey, nil)
	call(200)
}
