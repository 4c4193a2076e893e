package whole

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/test/stack"
)

const one = `{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 10}}`

func TestAReservationThatComesAgainUnderItsKeyIsTheSame(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: 1000}}, Zone: stack.MiddayZone()})
	body := fill(one, w)
	first := post(t, w.ManagementKey, "a", "/v1/reservations", body)
	spaced := fill(`{ "model": "practice-small", "customer": "{customer}", "estimate": {"input_tokens": 10}}`, w)
	for _, b := range []string{body, spaced} {
		again := post(t, w.ManagementKey, "a", "/v1/reservations", b)
		if again.Status != 201 || again.Text("id") != first.Text("id") || again.Text("expires_at") != first.Text("expires_at") || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("first %s, again %s", first, again)
		}
	}
	for _, other := range []string{strings.Replace(body, ": 10", ": 11", 1), strings.Replace(body, "}}", `}, "end_user": "x"}`, 1), strings.Replace(body, "}}", `}, "ttl_seconds": 60}`, 1)} {
		if a := post(t, w.ManagementKey, "a", "/v1/reservations", other); a.Status != 422 || a.Text("code") != "idempotency_mismatch" {
			t.Errorf("%s: %s", other, a)
		}
	}
	if a := post(t, w.Key, "a", "/v1/reservations", `{"model": "practice-small", "estimate": {"input_tokens": 10}}`); a.Status != 201 || a.Text("id") == first.Text("id") {
		t.Errorf("another credential's: %s", a)
	}
	weir.Want(t, 200, "POST", "/v1/reservations/"+first.Text("id")+"/settle", w.ManagementKey, `{"outcome": "ok", "usage": {"input_tokens": 10}}`)
	if again := post(t, w.ManagementKey, "a", "/v1/reservations", body); again.Status != 201 || again.Text("id") != first.Text("id") {
		t.Errorf("after its end: %s", again)
	}
	if used := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil).JSON("data.0.used"); used != float64(20) {
		t.Errorf("two reservations of 10 tokens took %v", used)
	}
	if a := post(t, w.ManagementKey, strings.Repeat("x", 256), "/v1/reservations", body); a.Status != 400 || a.Text("code") != "bad_idempotency_key" {
		t.Errorf("a key that is too long: %s", a)
	}
}

func TestARefusedReservationLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "concurrency", Window: "none", Amount: 1}}})
	first := weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, fill(one, w)).Text("id")
	if a := post(t, w.ManagementKey, "k", "/v1/reservations", fill(one, w)); a.Status != 429 {
		t.Fatal(a)
	}
	weir.Want(t, 200, "POST", "/v1/reservations/"+first+"/cancel", w.ManagementKey, nil)
	if a := post(t, w.ManagementKey, "k", "/v1/reservations", fill(one, w)); a.Status != 201 || a.Header.Get("Idempotent-Replayed") != "" {
		t.Fatal(a)
	}
}

// mixed is a batch in which good items stand between bad ones.
var mixed = []struct {
	body   string
	status int
	code   string
}{
	{one, 201, ""},
	{`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 1000}}`, 413, "request_too_large"},
	{`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": "many"}}`, 400, "wrong_type"},
	{`null`, 400, "wrong_type"},
	{`{"customer": "cus_01kb0000000000000000000000", "model": "practice-small", "estimate": {"input_tokens": 1}}`, 404, "not_found"},
	{`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": -1}}`, 400, "invalid_fields"},
	{`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 1}, "max_wait_ms": 5}`, 400, "invalid_fields"},
	{`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 95}}`, 429, "daily_cap_reached"},
	{`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 90}}`, 201, ""},
}

func TestABadItemOfABatchHarmsNoOther(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "tokens", Window: "day", Amount: 100}}, Zone: stack.MiddayZone()})
	bodies := make([]string, len(mixed))
	for i, m := range mixed {
		bodies[i] = fill(m.body, w)
	}
	a := weir.Want(t, 200, "POST", "/v1/reservations:batch", w.ManagementKey, `{"reservations": [`+strings.Join(bodies, ",")+`]}`)
	requests := map[string]bool{}
	var settlements []string
	for i, m := range mixed {
		at := fmt.Sprintf("results.%d.", i)
		if a.JSON(at+"status") != float64(m.status) || a.Text(at+"error.code") != m.code || (m.status == 201) != strings.HasPrefix(a.Text(at+"reservation.id"), "rsv_") {
			t.Errorf("item %d: %v", i, a.JSON(fmt.Sprintf("results.%d", i)))
		}
		requests[a.Text(at+"request_id")] = true
		if m.status == 201 {
			settlements = append(settlements, fmt.Sprintf(`{"id": %q, "outcome": "ok", "usage": {"input_tokens": 5}}`, a.Text(at+"reservation.id")))
		}
	}
	if len(requests) != len(mixed) {
		t.Errorf("items share request ids: %s", a)
	}
	if p := a.Text("results.2.error.errors.0.pointer"); p != "/reservations/2/estimate/input_tokens" {
		t.Errorf("the pointer is %q", p)
	}
	if a.JSON("results.7.error.retry_after_ms") == nil || a.JSON("results.7.error.violations.0.requested") != float64(95) || a.JSON("results.1.error.retry_after_ms") != nil {
		t.Errorf("refusals do not say what to do: %s", a)
	}
	settlements = append(settlements, `{"id": "rsv_01kb0000000000000000000000", "outcome": "ok"}`, `{"outcome": "ok"}`, `{"id": 5}`, settlements[0], strings.Replace(settlements[0], "5}", "6}", 1))
	a = weir.Want(t, 200, "POST", "/v1/settlements:batch", w.ManagementKey, `{"settlements": [`+strings.Join(settlements, ",")+`]}`)
	for i, want := range []float64{200, 200, 404, 400, 400, 200, 409} {
		if a.JSON(fmt.Sprintf("results.%d.status", i)) != want {
			t.Errorf("settlement %d: %v, want %v", i, a.JSON(fmt.Sprintf("results.%d", i)), want)
		}
	}
	if used := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil).JSON("data.0.used"); used != float64(10) {
		t.Errorf("two calls of 5 tokens took %v", used)
	}
}

func TestABatchThatComesAgainUnderItsKeyIsTheSameAndItsSizeIsBounded(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 1000}}, Zone: stack.MiddayZone()})
	batch := func(n int) string {
		return `{"reservations": [` + strings.TrimSuffix(strings.Repeat(fill(one, w)+",", n), ",") + `]}`
	}
	ids := func(a stack.Answer, replayed bool) (list []string) {
		t.Helper()
		var got struct {
			Results []struct {
				Status      int
				Replayed    bool
				Reservation struct{ ID string }
			}
		}
		if err := json.Unmarshal(a.Body, &got); err != nil || a.Status != 200 {
			t.Fatalf("%v: %s", err, a)
		}
		seen := map[string]bool{}
		for i, r := range got.Results {
			if r.Status != 201 || r.Replayed != replayed || seen[r.Reservation.ID] {
				t.Fatalf("item %d: %+v", i, r)
			}
			seen[r.Reservation.ID] = true
			list = append(list, r.Reservation.ID)
		}
		return list
	}
	first := ids(post(t, w.ManagementKey, "b", "/v1/reservations:batch", batch(500)), false)
	again := ids(post(t, w.ManagementKey, "b", "/v1/reservations:batch", batch(500)), true)
	if len(first) != 500 || strings.Join(first, " ") != strings.Join(again, " ") {
		t.Errorf("%d reservations, again %d others", len(first), len(again))
	}
	for _, n := range []int{0, 501} {
		if a := weir.Want(t, 400, "POST", "/v1/reservations:batch", w.ManagementKey, batch(n)); a.Text("errors.0.pointer") != "/reservations" {
			t.Error(a)
		}
	}
	if used := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil).JSON("data.0.used"); used != float64(500) {
		t.Errorf("500 calls took %v", used)
	}
}

func TestAnotherTenantsIDsInABatchAnswerLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	own, other := weir.Setup(t, stack.Options{}), weir.Setup(t, stack.Options{})
	theirs := reservation(t, other)
	before := rowHashes(t, other)
	for path, item := range map[string]string{
		"/v1/reservations:batch customer":     `{"customer": %q, "model": "practice-small", "estimate": {"input_tokens": 1}}`,
		"/v1/reservations:batch provider_key": `{"customer": "{customer}", "provider_key": %q, "model": "practice-small", "estimate": {"input_tokens": 1}}`,
		"/v1/settlements:batch reservation":   `{"id": %q, "outcome": "ok"}`,
	} {
		path, kind, _ := strings.Cut(path, " ")
		foreign := map[string]string{"customer": other.Customer, "provider_key": other.ProviderKey, "reservation": theirs}[kind]
		list := strings.TrimSuffix(strings.TrimPrefix(path, "/v1/"), ":batch")
		ask := func(x string) stack.Answer {
			return ofItem(t, weir.Call(t, "POST", path, own.ManagementKey, fmt.Sprintf(`{%q: [%s]}`, list, fmt.Sprintf(fill(item, own), x))))
		}
		got, unknown := ask(foreign), ask(unknownLike(foreign))
		alike(t, path+" with "+kind, got, unknown)
		if got.Status != 404 {
			t.Errorf("%s with another tenant's %s: %s", path, kind, got)
		}
	}
	if after := rowHashes(t, other); after != before {
		t.Errorf("the other tenant's rows changed:\n%s\n%s", before, after)
	}
}
