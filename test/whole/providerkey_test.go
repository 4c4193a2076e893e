package whole

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/test/stack"
)

// guarded is a provider that lets one key in, and keeps what came.
type guarded struct {
	mu   sync.Mutex
	lets string
	seen []string
	url  string
}

func newGuarded(t *testing.T, lets string) *guarded {
	t.Helper()
	g := &guarded{lets: lets}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = append(g.seen, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+g.lets {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"turn-small"}]}`)
			return
		}
		fmt.Fprint(w, `{"id":"x","object":"chat.completion","model":"turn-small","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
	}))
	t.Cleanup(s.Close)
	g.url = s.URL + "/v1"
	return g
}

func (g *guarded) set(lets string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lets, g.seen = lets, nil
}

func (g *guarded) calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

// Threats A31, A32 and A35 through the REST API and the gateway.
func TestAProviderKeyIsRotatedInPlaceAndItsSecretGoesToItsHostAlone(t *testing.T) {
	t.Parallel()
	const first, second = "sk-turn-first-0123456789", "sk-turn-second-987654321"
	w := weir.Setup(t, stack.Options{Provider: "practice"})
	g, thief := newGuarded(t, first), newGuarded(t, first)
	added := weir.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, fmt.Sprintf(`{"provider": "custom", "name": "turn", "base_url": %q, "secret": %q, "limits": [{"dimension": "requests", "window": "day", "amount": 10}]}`, g.url, first))
	at := "/api/v1/provider-keys/" + added.Text("id")
	chat := func() stack.Answer {
		return weir.Call(t, "POST", "/v1/chat/completions", w.Key, `{"model": "turn-small", "messages": [{"role": "user", "content": "hi"}]}`)
	}
	if a := chat(); a.Status != 200 {
		t.Fatalf("%s", a)
	}

	if a := weir.Want(t, 422, "PATCH", at, w.ManagementKey, fmt.Sprintf(`{"base_url": %q}`, thief.url)); a.Text("code") != "secret_required" || a.Text("errors.0.pointer") != "/secret" {
		t.Errorf("%s", a)
	}
	if thief.calls() != 0 {
		t.Error("the secret went to another host")
	}
	refused := weir.Want(t, 422, "POST", at+"/rotate", w.ManagementKey, fmt.Sprintf(`{"secret": %q}`, second))
	if refused.Text("code") != "provider_key_invalid" || strings.Contains(refused.String(), second) {
		t.Errorf("%s", refused)
	}
	g.set(second)
	rotated := weir.Want(t, 200, "POST", at+"/rotate", w.ManagementKey, fmt.Sprintf(`{"secret": %q}`, second))
	if rotated.Text("status") != "active" || rotated.Text("last4") != "4321" || rotated.Text("id") != added.Text("id") {
		t.Errorf("%s", rotated)
	}
	if a := chat(); a.Status != 200 || g.calls() != 2 { // the check and the call
		t.Errorf("after %d calls: %s", g.calls(), a)
	}
	for _, a := range []stack.Answer{added, rotated, weir.Want(t, 200, "GET", at, w.ManagementKey, nil)} {
		if strings.Contains(a.String(), "sk-turn") {
			t.Errorf("the secret comes back: %s", a)
		}
	}
	weir.Want(t, 200, "PATCH", at, w.ManagementKey, `{"disabled": true}`)
	if a := chat(); a.Status != 404 {
		t.Errorf("through a key that is switched off: %s", a)
	}
	weir.Want(t, 200, "PATCH", at, w.ManagementKey, `{"disabled": false}`)
	if a := chat(); a.Status != 200 {
		t.Errorf("%s", a)
	}
}

func TestACatalogueIsImportedAllOrNothingAndOfferedToATenantsOwnKeys(t *testing.T) {
	t.Parallel()
	w, other := weir.Setup(t, stack.Options{Provider: "practice"}), weir.Setup(t, stack.Options{Provider: "practice"})
	const head = `provider,model,tier,dimension,window,amount,cached_input,valid_from,valid_to,source\n`
	wrong := weir.Want(t, 400, "POST", "/api/v1/catalogue/limits", w.ManagementKey, `{"csv": "`+head+`practice,*,house,requests,minute,60,counted,2026-01-01,,us\npractice,*,house,requests,day,many,counted,2026-01-01,,us\n"}`)
	if wrong.Text("errors.0.pointer") != "/csv" || !strings.HasPrefix(wrong.Text("errors.0.message"), "Line 3, amount: ") {
		t.Errorf("%s", wrong)
	}
	file := `{"csv": "` + head + `practice,*,house,requests,minute,60,counted,2026-01-01,,us\npractice,practice-small,house,tokens,day,7000,free,2026-01-01,,us\n"`
	if a := weir.Want(t, 200, "POST", "/api/v1/catalogue/limits", w.ManagementKey, file+`, "dry_run": true}`); fmt.Sprint(a.JSON("added")) != "2" {
		t.Errorf("%s", a)
	}
	if a := weir.Want(t, 200, "GET", "/api/v1/provider-keys/offers?provider=practice", w.ManagementKey, nil); strings.Contains(a.String(), "house") {
		t.Errorf("a dry run stored: %s", a)
	}
	weir.Want(t, 200, "POST", "/api/v1/catalogue/limits", w.ManagementKey, file+`}`)
	if a := weir.Want(t, 200, "GET", "/api/v1/catalogue/limits?own=true", w.ManagementKey, nil); fmt.Sprint(a.JSON("rows")) != "2" {
		t.Errorf("%s", a)
	}
	stack.Eventually(t, 5*time.Second, func() string {
		if a := weir.Want(t, 200, "GET", "/api/v1/provider-keys/offers?provider=practice", w.ManagementKey, nil); a.Text("offers.0.tier") != "house" {
			return a.String()
		}
		return ""
	})
	if a := weir.Want(t, 200, "GET", "/api/v1/provider-keys/offers?provider=practice", other.ManagementKey, nil); strings.Contains(a.String(), "house") {
		t.Errorf("another tenant's: %s", a)
	}
	key := weir.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, `{"provider": "practice", "name": "housed", "tier": "house", "limits": [{"dimension": "requests", "window": "minute", "amount": 6}]}`)
	if key.Text("tier") != "house" || fmt.Sprint(key.JSON("limits.0.amount")) != "6" || fmt.Sprint(key.JSON("limits.1.amount")) != "7000" || key.JSON("limits.2.amount") != nil {
		t.Errorf("%s", key)
	}
	if a := weir.Want(t, 400, "POST", "/api/v1/provider-keys", w.ManagementKey, `{"provider": "practice", "name": "x", "tier": "castle"}`); a.Text("errors.0.code") != "unknown_tier" {
		t.Errorf("%s", a)
	}
}
