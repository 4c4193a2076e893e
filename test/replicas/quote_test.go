package replicas

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// TestAQuoteBecomesWhatItSays goes the whole way by public surfaces only, with
// two processes: a quote is made, sent, opened, accepted many times at once, its
// key used and refused at the quoted number; upgraded, with what is used kept;
// suspended and resumed, with the cap as spent as before.
func TestAQuoteBecomesWhatItSays(t *testing.T) {
	t.Parallel()
	weir := stack.Fresh(t)
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 100}}})
	pair := weir.Replicas(t, redistest.Start(t).URL())

	q := pair[0].Want(t, 201, "POST", "/api/v1/quotes", w.ManagementKey, fmt.Sprintf(
		`{"plan_version": %q, "to": {"name": "Adaeze Finch", "email": "adaeze@example.com", "company": "Marlow & Finch"}, "limits": [{"dimension": "units", "window": "day", "amount": 40}]}`, w.Version))
	if got := q.Text("sentence"); got != "40 units a day" {
		t.Fatalf("the sentence is %q", got)
	}
	quote := "/api/v1/quotes/" + q.Text("id")
	sent := pair[1].Want(t, 200, "POST", quote+"/send", w.ManagementKey, `{}`)
	_, token, found := strings.Cut(sent.Text("public_url"), "/q/")
	if !found {
		t.Fatalf("sent, it has no page: %s", sent)
	}
	path := "/q/" + token
	if page := pair[0].Want(t, 200, "GET", path, "", nil); !strings.Contains(string(page.Body), "Marlow &amp; Finch") || !strings.Contains(string(page.Body), "<b>40</b> units a day") {
		t.Fatalf("the page says %s", page)
	}
	if got := pair[1].Want(t, 200, "GET", quote, w.ManagementKey, nil).Text("status"); got != "viewed" {
		t.Fatalf("opened, it is %s", got)
	}
	customer, subscription, secret := acceptAtOnce(t, pair, path)

	// The key counts what was quoted, in both processes together.
	ask := func(i, units int) int {
		return pair[i].Call(t, "POST", "/v1/reservations", secret, fmt.Sprintf(`{"estimate": {"units": %d}}`, units)).Status
	}
	for i := range pair {
		if got := ask(i, 20); got != http.StatusCreated {
			t.Fatalf("process %d answers %d", i, got)
		}
	}
	for i := range pair {
		if got := ask(i, 1); got != http.StatusTooManyRequests {
			t.Fatalf("beyond what was quoted, process %d answers %d", i, got)
		}
	}

	// The larger plan counts within a second, and what is used stays used.
	preview := pair[0].Want(t, 200, "POST", "/api/v1/subscriptions/"+subscription+"/preview-change", w.ManagementKey, fmt.Sprintf(`{"plan": %q, "at": "now"}`, w.Plan))
	pair[0].Want(t, 200, "POST", "/api/v1/subscriptions/"+subscription+"/change", w.ManagementKey, fmt.Sprintf(`{"preview_token": %q}`, preview.Text("preview_token")))
	for i := range pair {
		await(t, fmt.Sprintf("the larger plan in process %d", i), func() bool { return ask(i, 30) == http.StatusCreated })
	}
	if got := ask(0, 1); got != http.StatusTooManyRequests {
		t.Fatalf("40 and 60 of 100 are used, and one more is answered %d", got)
	}

	// Suspended, no call passes within a second; resumed, they do.
	pair[1].Want(t, 200, "POST", "/api/v1/customers/"+customer+"/suspend", w.ManagementKey, nil)
	for i := range pair {
		await(t, fmt.Sprintf("the suspension in process %d", i), func() bool { return ask(i, 1) == http.StatusForbidden })
	}
	pair[0].Want(t, 200, "POST", "/api/v1/customers/"+customer+"/resume", w.ManagementKey, nil)
	for i := range pair {
		await(t, fmt.Sprintf("an answer by the cap again in process %d", i), func() bool { return ask(i, 1) == http.StatusTooManyRequests })
	}
}

// acceptAtOnce accepts twenty times at once, by both processes, and once more:
// the result is one, and its secret shown once.
func acceptAtOnce(t *testing.T, pair [2]*stack.Stack, path string) (customer, subscription, secret string) {
	t.Helper()
	var mu sync.Mutex
	results, secrets := map[string]bool{}, []string{}
	accept := func(i int) {
		a, err := pair[i%2].Do(context.Background(), "POST", path+"/accept", "", `{"name": "Adaeze Finch", "email": "adaeze@example.com"}`)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || a.Status != http.StatusOK {
			t.Errorf("accepted: %v, %s", err, a)
			return
		}
		results[a.Text("customer")+" "+a.Text("subscription")+" "+a.Text("api_key.id")] = true
		if s, ok := a.JSON("api_key.secret").(string); ok {
			secrets = append(secrets, s)
		}
		customer, subscription = a.Text("customer"), a.Text("subscription")
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { accept(i) })
	}
	all.Wait()
	accept(0)
	if len(results) != 1 || len(secrets) != 1 || t.Failed() {
		t.Fatalf("%d results, %d secrets", len(results), len(secrets))
	}
	return customer, subscription, secrets[0]
}
