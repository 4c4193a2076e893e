package whole

import (
	"fmt"
	"strings"
	"testing"

	"weir/test/stack"
)

// eachUser is a plan of plenty, of which each end user has a little.
func eachUser(requests int64) []stack.Limit {
	return []stack.Limit{{Dimension: "requests", Window: "day", Amount: 100}, {Dimension: "requests", Window: "day", Amount: requests, Scope: "end_user"}}
}

func TestEachEndUserOfACustomerHasItsOwnLimitAtTheGateway(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: eachUser(2)})
	call := func(status int, member string) stack.Answer {
		return weir.Want(t, status, "POST", "/v1/chat/completions", w.Key, strings.Replace(chat("practice-small"), "{", "{"+member, 1))
	}
	call(200, `"user": "ann",`)
	call(200, `"safety_identifier": "ann",`) // the same person
	refused := call(429, `"user": "ann",`)
	if refused.Text("error.quota.scope") != "end_user" || refused.JSON("error.quota.limit") != 2.0 || !strings.Contains(refused.Text("error.message"), "for this end user under") {
		t.Errorf("the refusal names another limit: %s", refused)
	}
	call(200, `"user": "bob",`)
	call(200, `"user": "bob",`)
	call(429, `"user": "bob",`)
	call(200, "") // who names nobody is one more
	call(200, "")
	call(429, "")
	live := weir.Want(t, 200, "GET", "/v1/limits?end_user=ann", w.Key, nil)
	if live.JSON("data.0.used") != 6.0 || live.Text("data.1.scope") != "end_user" || live.JSON("data.1.used") != 2.0 {
		t.Errorf("refused calls cost nothing: %s", live)
	}
	if all := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil); strings.Contains(string(all.Body), "end_user") {
		t.Errorf("whose level is this: %s", all)
	}
}

func TestEachEndUserOfAKeyAndOfATokenHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{KeyLimit: []stack.Limit{{Dimension: "units", Window: "day", Amount: 10, Scope: "end_user"}}})
	reserve := func(status int, key, user string, units int) stack.Answer {
		return weir.Want(t, status, "POST", "/v1/reservations", key, fmt.Sprintf(`{"estimate": {"units": %d}, "end_user": %q}`, units, user))
	}
	reserve(201, w.Key, "ann", 10)
	refused := reserve(429, w.Key, "ann", 1)
	if refused.Text("violations.0.scope") != "end_user" || refused.JSON("violations.0.limit") != 10.0 || refused.Text("code") != "daily_cap_reached" {
		t.Errorf("the refusal names another limit: %s", refused)
	}
	token := weir.Want(t, 201, "POST", "/v1/client-tokens", w.Key, `{"limits": [{"dimension": "requests", "window": "day", "amount": 1, "scope": "end_user"}]}`).Text("token")
	reserve(201, token, "bob", 9)
	reserve(429, token, "bob", 1) // the token's
	reserve(201, token, "carl", 1)
	reserve(201, w.Key, "bob", 1) // the key's go on
	reserve(429, w.Key, "bob", 1)
}

func TestALimitForEachEndUserIsSaidAndKept(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: eachUser(7)})
	plan := weir.Want(t, 200, "GET", "/api/v1/plans", w.ManagementKey, nil)
	if got := plan.Text("data.0.version.sentence"); got != "100 requests a day; each end user 7 requests a day" {
		t.Errorf("the plan says %q", got)
	}
	if plan.JSON("data.0.version.limits.0.scope") != nil || plan.Text("data.0.version.limits.1.scope") != "end_user" {
		t.Errorf("read back: %s", plan)
	}
	a := weir.Want(t, 400, "POST", "/api/v1/provider-keys", w.ManagementKey, `{"provider": "practice", "name": "P", "limits": [{"dimension": "requests", "window": "day", "amount": 1, "scope": "end_user"}]}`)
	if a.Text("errors.0.pointer") != "/limits/0/scope" {
		t.Errorf("a provider limits each end user: %s", a)
	}
	a = weir.Want(t, 400, "POST", "/api/v1/plans", w.ManagementKey, `{"name": "Q", "limits": [{"dimension": "requests", "window": "day", "amount": 1, "scope": "tenant"}]}`)
	if a.Text("errors.0.pointer") != "/limits/0/scope" {
		t.Errorf("a plan limits its tenant: %s", a)
	}
}
