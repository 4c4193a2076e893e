package whole

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/internal/id"
	"weir/test/stack"
)

// served adds a provider key that lists its models.
func served(t *testing.T, w stack.World, up *upstreamtest.Upstream, name string, models string) string {
	t.Helper()
	return weir.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey,
		fmt.Sprintf(`{"provider": "custom", "name": %q, "secret": "sk-x", "base_url": %q, "models": %s}`, name, up.URL, models)).Text("id")
}

func TestKeysOfAPoolAreHeldToOneAccountsLimit(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	one, two := served(t, w, up, "one", `["pooled"]`), served(t, w, up, "two", `["pooled"]`)
	p := weir.Want(t, 201, "POST", "/api/v1/pools", w.ManagementKey,
		fmt.Sprintf(`{"name": "account", "provider_keys": [%q], "limits": [{"dimension": "requests", "window": "day", "amount": 2}]}`, one))
	if p.Text("provider") != "custom" || p.JSON("limits.0.amount") != 2.0 {
		t.Fatalf("got %s", p)
	}
	k := weir.Want(t, 200, "PATCH", "/api/v1/provider-keys/"+two, w.ManagementKey, fmt.Sprintf(`{"pool": %q}`, p.Text("id")))
	if k.Text("pool") != p.Text("id") {
		t.Errorf("the key joins: %s", k)
	}
	if list := weir.Want(t, 200, "GET", "/api/v1/pools", w.ManagementKey, nil); list.JSON("data.0.provider_keys.1") != two {
		t.Errorf("the pool has it: %s", list)
	}
	stack.Eventually(t, patience, func() string {
		a := weir.Want(t, 200, "GET", "/api/v1/models", w.ManagementKey, nil)
		if a.JSON("data.0.candidates.1.pool") != p.Text("id") {
			return "the routes do not know it yet: " + a.String()
		}
		return ""
	})
	for range 2 {
		weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("pooled"))
	}
	if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, chat("pooled")); a.Status != 503 || a.Text("error.code") != "provider_capacity" {
		t.Errorf("a third call of two passes: %s", a)
	}
	weir.Want(t, 204, "DELETE", "/api/v1/pools/"+p.Text("id"), w.ManagementKey, nil)
	if k := weir.Want(t, 200, "GET", "/api/v1/provider-keys/"+two, w.ManagementKey, nil); k.JSON("pool") != nil {
		t.Errorf("the key is out of it: %s", k)
	}
	stack.Eventually(t, patience, func() string {
		if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, chat("pooled")); a.Status != 200 {
			return a.String()
		}
		return ""
	})
}

func TestAnAliasIsMadeReadChangedAndForgotten(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	key := served(t, w, up, "one", `["big", "small"]`)
	a := weir.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey,
		fmt.Sprintf(`{"name": "acme-chat", "sticky": true, "candidates": [{"model": "big", "provider_key": %q, "weight": 3}, {"model": "small", "priority": 1}, {"model": "elsewhere", "provider": "openai"}]}`, key))
	at := "/api/v1/model-aliases/" + a.Text("id")
	for path, want := range map[string]any{
		"sticky": true, "candidates.0.provider_key": key, "candidates.0.weight": 3.0, "candidates.1.priority": 1.0, "candidates.1.weight": 1.0,
		"candidates.2.priority": 2.0, "candidates.2.provider": "openai", "candidates.2.pool": nil,
	} {
		if got := a.JSON(path); got != want {
			t.Errorf("%s is %v, not %v", path, got, want)
		}
	}
	if got := weir.Want(t, 200, "GET", at, w.ManagementKey, nil); string(got.Body) != string(a.Body) {
		t.Errorf("read again: %s", got)
	}
	if got := weir.Want(t, 200, "PATCH", at, w.ManagementKey, `{"name": "big", "description": "All of it"}`); got.JSON("candidates.0.model") != "big" || got.Text("description") != "All of it" {
		t.Errorf("changed: %s", got)
	}
	if got := weir.Want(t, 200, "PATCH", at, w.ManagementKey, `{"description": null, "candidates": [{"model": "big"}]}`); got.JSON("description") != nil || got.JSON("candidates.1") != nil {
		t.Errorf("changed again: %s", got)
	}
	models := weir.Want(t, 200, "GET", "/api/v1/models?limit=1", w.ManagementKey, nil)
	if models.Text("data.0.name") != "big" || models.Text("data.0.kind") != "alias" || models.JSON("data.0.shadows") != true || models.JSON("data.0.ready") != true || models.JSON("data.0.candidates.0.state") != "ready" {
		t.Errorf("it stands before the provider's: %s", models)
	}
	weir.Want(t, 204, "DELETE", at, w.ManagementKey, nil)
	weir.Want(t, 404, "DELETE", at, w.ManagementKey, nil)
	if models = weir.Want(t, 200, "GET", "/api/v1/models?limit=1", w.ManagementKey, nil); models.Text("data.0.kind") != "model" || models.JSON("data.0.alias") != nil {
		t.Errorf("the name is the provider's again: %s", models)
	}
}

func TestWhatTheCatalogueKnowsStandsWithEachCandidate(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	weir.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, fmt.Sprintf(`{"provider": "openai", "name": "vendor", "secret": "sk-x", "base_url": %q, "models": ["gpt-4.1", "a-model-of-nobody"]}`, up.URL))
	stack.Eventually(t, patience, func() string {
		a := weir.Want(t, 200, "GET", "/api/v1/models", w.ManagementKey, nil)
		if a.Text("data.0.name") != "a-model-of-nobody" || a.JSON("data.0.candidates.0.catalogue") != nil {
			return "a model of nobody is known: " + a.String()
		}
		if a.Text("data.1.name") != "gpt-4.1" || a.Text("data.1.candidates.0.catalogue.prices.0.class") != "input" || a.JSON("data.1.candidates.0.catalogue.context_tokens") == nil {
			return "gpt-4.1 is not known: " + a.String()
		}
		return ""
	})
}

// An alias is what is asked for: the models of a key and of a client token name
// it, and the limits and prices of a plan go by it.
func TestAKeyAndATokenNameTheAliasThatIsAskedFor(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{
		Upstream: up, Zone: stack.MiddayZone(),
		Plan:   []stack.Limit{{Dimension: "requests", Window: "day", Amount: 2, Models: []string{"acme-*"}}},
		Prices: []stack.Price{{Models: "acme-fast", Class: "input", MicrosPerMillion: 9_000_000}},
	})
	served(t, w, up, "one", `["big"]`)
	weir.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, `{"name": "acme-fast", "candidates": [{"model": "nowhere"}, {"model": "big"}]}`)
	narrow := weir.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, fmt.Sprintf(`{"kind": "customer", "customer": %q, "name": "narrow", "models": ["acme-fast"]}`, w.Customer)).Text("secret")
	token := weir.Want(t, 201, "POST", "/v1/client-tokens", w.Key, `{"models": ["acme-fast"]}`).Text("token")
	stack.Eventually(t, patience, func() string {
		if a := weir.Call(t, "GET", "/v1/models/acme-fast", narrow, nil); a.Status != 200 {
			return a.String()
		}
		return ""
	})
	for _, secret := range []string{narrow, token} {
		a := weir.Want(t, 200, "POST", "/v1/chat/completions", secret, chat("acme-fast"))
		if a.Header.Get("x-ratelimit-limit-requests") != "2" {
			t.Errorf("the plan's limit for the alias does not count: %v", a.Header)
		}
		for _, model := range []string{"big", "ACME-fast", "acme-fast ", "custom/big"} {
			weir.Want(t, 404, "POST", "/v1/chat/completions", secret, chat(model))
		}
	}
	for _, c := range up.Calls() {
		if !strings.Contains(string(c.Body), `"big"`) || strings.Contains(string(c.Body), "acme-fast") {
			t.Errorf("the provider is asked: %s", c.Body)
		}
	}
	if a := weir.Call(t, "POST", "/v1/chat/completions", w.Key, chat("acme-fast")); a.Status != 429 {
		t.Errorf("a third call of two passes: %s", a)
	}
	weir.Want(t, 200, "POST", "/v1/chat/completions", w.Key, chat("big"))
}

func TestListsByNameGoOnWhereTheyEnded(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	var want, got []string
	for i := range 5 {
		name := fmt.Sprintf("a%d", i)
		weir.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, fmt.Sprintf(`{"name": %q, "candidates": [{"model": "m"}]}`, name))
		want = append(want, name)
	}
	cursor := ""
	for range 5 {
		a := weir.Want(t, 200, "GET", "/api/v1/model-aliases?limit=2"+cursor, w.ManagementKey, nil)
		for i := range 2 {
			if name, ok := a.JSON(fmt.Sprintf("data.%d.name", i)).(string); ok {
				got = append(got, name)
			}
		}
		if a.JSON("has_more") != true {
			break
		}
		cursor = "&cursor=" + a.Text("next_cursor")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	weir.Want(t, 400, "GET", "/api/v1/models?limit=2"+cursor, w.ManagementKey, nil)
}

func TestWhatAnAliasNamesWronglyIsToldAtItsPlace(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{})
	for body, want := range map[string]string{
		`{"name": "a b", "candidates": [{"model": "m"}]}`:                                                                 "400 /name bad_model",
		`{"name": "a", "candidates": []}`:                                                                                 "400 /candidates required",
		`{"name": "a", "candidates": [{"model": "m"}, {"model": "m"}]}`:                                                   "400 /candidates/1/model duplicate",
		`{"name": "a", "candidates": [{"model": "a"}]}`:                                                                   "400 /candidates/0/model alias_of_itself",
		`{"name": "a", "candidates": [{"model": "m", "weight": 0}]}`:                                                      "400 /candidates/0/weight out_of_range",
		`{"name": "a", "candidates": [{"model": "m", "weight": 1001}]}`:                                                   "400 /candidates/0/weight out_of_range",
		`{"name": "a", "candidates": [{"model": "m", "provider": "openai", "pool": "` + id.Pool.Format(id.New()) + `"}]}`: "400 /candidates/0/provider not_allowed",
		`{"name": "a", "candidates": [{"model": "m", "pool": "` + id.Pool.Format(id.New()) + `"}]}`:                       "404 /candidates/0/pool not_found",
		`{"name": "a", "candidates": [{"model": "m", "provider_key": "pvk_x"}]}`:                                          "404 /candidates/0/provider_key not_found",
	} {
		a := weir.Call(t, "POST", "/api/v1/model-aliases", w.ManagementKey, body)
		if got := fmt.Sprint(a.Status, " ", a.JSON("errors.0.pointer"), " ", a.JSON("errors.0.code")); got != want {
			t.Errorf("%s: %s, not %s", body, got, want)
		}
	}
}
