package whole

import (
	"fmt"
	"testing"

	"weir/test/stack"
)

// post sends a POST under an Idempotency-Key.
func post(t *testing.T, key, idempotency, path, body string) stack.Answer {
	t.Helper()
	req, err := weir.Request(t.Context(), "POST", path, key, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", idempotency)
	a, err := weir.Send(req)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestARequestThatComesAgainUnderItsKeyIsAnsweredAsBeforeWithoutItsSecret(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	body := fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "once"}`, w.Customer)
	first := post(t, w.ManagementKey, "a", "/api/v1/api-keys", body)
	again := post(t, w.ManagementKey, "a", "/api/v1/api-keys", body)
	if first.Status != 201 || again.Status != 201 || first.Text("id") != again.Text("id") || first.Text("secret") == "" || again.JSON("secret") != nil ||
		again.Header.Get("Idempotent-Replayed") != "true" || first.Header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("first %s, again %s", first, again)
	}
	at := "/api/v1/api-keys/" + first.Text("id") + "/rotate"
	rotated, same := post(t, w.ManagementKey, "r", at, `{"overlap_seconds": 60}`), post(t, w.ManagementKey, "r", at, `{"overlap_seconds": 60}`)
	if rotated.Status != 201 || same.Status != 201 || rotated.Text("id") != same.Text("id") || same.JSON("secret") != nil {
		t.Fatalf("rotated %s, again %s", rotated, same)
	}
}

func TestAnIdempotencyKeyIsBoundToRouteBodyAndCredential(t *testing.T) {
	t.Parallel()
	w, other := weir.Setup(t, stack.Options{}), weir.Setup(t, stack.Options{})
	if a := post(t, w.ManagementKey, "k", "/api/v1/customers", `{"name": "One"}`); a.Status != 201 {
		t.Fatal(a)
	}
	for path, body := range map[string]string{"/api/v1/customers": `{"name": "Two"}`, "/api/v1/plans": `{"name": "One"}`} {
		if a := post(t, w.ManagementKey, "k", path, body); a.Status != 422 || a.Text("code") != "idempotency_mismatch" {
			t.Errorf("%s %s: %s", path, body, a)
		}
	}
	if a := post(t, other.ManagementKey, "k", "/api/v1/customers", `{"name": "One"}`); a.Status != 201 || a.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another tenant's: %s", a)
	}
	second := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, `{"kind": "management", "name": "second", "scopes": ["*"]}`).Text("secret")
	if a := post(t, second, "k", "/api/v1/customers", `{"name": "One"}`); a.Status != 201 || a.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another credential's: %s", a)
	}
}

func TestOfRequestsUnderOneKeyAtOnceOneChangesSomething(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	answers := make(chan stack.Answer)
	for range 16 {
		go func() { answers <- post(t, w.ManagementKey, "at once", "/api/v1/customers", `{"name": "Only"}`) }()
	}
	ids := map[string]bool{}
	for range 16 {
		switch a := <-answers; a.Status {
		case 201:
			ids[a.Text("id")] = true
		case 409:
			if a.Text("code") != "idempotency_in_flight" || a.Header.Get("Retry-After") == "" {
				t.Errorf("got %s", a)
			}
		default:
			t.Errorf("got %s", a)
		}
	}
	if n := stack.Value[int](t, weir, `select count(*)::int from customers where tenant_id = $1 and name = 'Only'`, tenantUUID(t, w)); n != 1 || len(ids) != 1 {
		t.Fatalf("%d customers, answers name %v", n, ids)
	}
}

func TestARefusedRequestLeavesItsIdempotencyKeyFree(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	if a := post(t, w.ManagementKey, "k", "/api/v1/customers", `{"name": ""}`); a.Status != 400 {
		t.Fatal(a)
	}
	if a := post(t, w.ManagementKey, "k", "/api/v1/customers", `{"name": "Right"}`); a.Status != 201 {
		t.Fatal(a)
	}
}

// C3 of the cases from the field, by what is topped up here: room for a while.
func TestATopUpUnderOneKeyIsGivenOnceHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 10}}})
	body := fmt.Sprintf(`{"customer": %q, "limit": {"dimension": "requests", "window": "minute", "amount": 110}, "reason": "a launch"}`, w.Customer)
	answers := make(chan stack.Answer)
	for range 8 {
		go func() { answers <- post(t, w.ManagementKey, "top-up", "/api/v1/overrides", body) }()
	}
	ids := map[string]bool{}
	for range 8 {
		switch a := <-answers; {
		case a.Status == 201:
			ids[a.Text("id")] = true
		case a.Status != 409 || a.Text("code") != "idempotency_in_flight":
			t.Errorf("got %s", a)
		}
	}
	again := post(t, w.ManagementKey, "top-up", "/api/v1/overrides", body)
	if again.Status != 201 || again.Header.Get("Idempotent-Replayed") != "true" || len(ids) != 1 || !ids[again.Text("id")] {
		t.Errorf("answers name %v, and the last is %s", ids, again)
	}
	if a := post(t, w.ManagementKey, "another", "/api/v1/overrides", body); a.Status != 409 || a.Text("code") != "override_overlaps" {
		t.Errorf("under another key: %s", a)
	}
	if n := stack.Value[int](t, weir, `select count(*)::int from overrides where tenant_id = $1`, tenantUUID(t, w)); n != 1 {
		t.Errorf("%d overrides", n)
	}
	if n := stack.Value[int](t, weir, `select count(*)::int from audit_entries where tenant_id = $1 and action = 'override.created'`, tenantUUID(t, w)); n != 1 {
		t.Errorf("%d audit entries", n)
	}
}

func TestWhatIsKeptForAnIdempotencyKeyOpensNoQuoteAndNoPortal(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	quote := weir.Want(t, 201, "POST", "/api/v1/quotes", w.ManagementKey, fmt.Sprintf(
		`{"to": {"name": "Adaeze Finch", "email": "adaeze@marlow.example"}, "plan_version": %q}`, w.Version)).Text("id")
	for _, x := range []struct{ path, body, link string }{
		{"/api/v1/quotes/" + quote + "/send", `{}`, "public_url"},
		{"/api/v1/customers/" + w.Customer + "/portal-link", `{"send": false}`, "sign_in_url"},
	} {
		first, again := post(t, w.ManagementKey, x.link, x.path, x.body), post(t, w.ManagementKey, x.link, x.path, x.body)
		if first.Text(x.link) == "" || again.Header.Get("Idempotent-Replayed") != "true" || again.JSON(x.link) != nil {
			t.Errorf("%s: first %s, again %s", x.path, first, again)
		}
		if n := stack.Value[int](t, weir, `select count(*)::int from idempotency_keys where tenant_id = $1 and position(convert_to($2, 'utf8') in answer) > 0`, tenantUUID(t, w), first.Text(x.link)); n != 0 {
			t.Errorf("%s: the link stands readable in %d rows", x.path, n)
		}
	}
}
