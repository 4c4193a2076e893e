package replicas

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// TestASubscriptionsStateHoldsInEveryProcess: an override counts on top of what
// is used and ends by itself in both; a suspended subscription makes no call in
// either, nor does one that has ended.
func TestASubscriptionsStateHoldsInEveryProcess(t *testing.T) {
	t.Parallel()
	weir := stack.Fresh(t)
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 100}}})
	pair := weir.Replicas(t, redistest.Start(t).URL())
	ask := func(i, units int) int {
		return pair[i].Call(t, "POST", "/v1/reservations", w.Key, fmt.Sprintf(`{"estimate": {"units": %d}}`, units)).Status
	}
	each := func(what string, units, status int) {
		t.Helper()
		for i := range pair {
			await(t, fmt.Sprintf("%s in process %d", what, i), func() bool { return ask(i, units) == status })
		}
	}
	for i := range pair {
		if got := ask(i, 50); got != http.StatusCreated {
			t.Fatalf("process %d answers %d", i, got)
		}
	}
	each("the plan's own cap", 1, http.StatusTooManyRequests)

	// 140 instead of 100 for a while; what is used stays used.
	until := time.Now().Add(6 * time.Second)
	pair[0].Want(t, 201, "POST", "/api/v1/overrides", w.ManagementKey, fmt.Sprintf(
		`{"customer": %q, "limit": {"dimension": "units", "window": "day", "amount": 140}, "reason": "a launch", "until": %q}`, w.Customer, until.UTC().Format(time.RFC3339Nano)))
	each("the override", 20, http.StatusCreated)
	if got := ask(0, 1); got != http.StatusTooManyRequests {
		t.Fatalf("140 of 140 are used, and one more is answered %d", got)
	}
	awaitFor(t, 10*time.Second, "the end of the override", func() bool { return time.Now().After(until) })
	limit := func(i int) any { return pair[i].Want(t, 200, "GET", "/v1/limits", w.Key, nil).JSON("data.0.limit") }
	for i := range pair {
		await(t, fmt.Sprintf("the end of the override in process %d", i), func() bool { return limit(i) == float64(100) })
	}

	sub := "/api/v1/subscriptions/" + w.Subscription
	pair[1].Want(t, 200, "POST", sub+"/suspend", w.ManagementKey, nil)
	each("the suspension", 1, http.StatusForbidden)
	pair[0].Want(t, 200, "POST", sub+"/resume", w.ManagementKey, nil)
	each("the cap again", 1, http.StatusTooManyRequests)
	if a := pair[1].Want(t, 200, "POST", sub+"/cancel", w.ManagementKey, `{"at": "now"}`); a.Text("status") != "ended" {
		t.Fatal(a)
	}
	each("the end", 1, http.StatusForbidden)
	if a := pair[0].Call(t, "POST", sub+"/keep", w.ManagementKey, nil); a.Status != http.StatusConflict || a.Text("code") != "subscription_ended" {
		t.Fatal(a)
	}
}
