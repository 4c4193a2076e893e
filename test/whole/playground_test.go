package whole

import (
	"net/url"
	"strings"
	"testing"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

// playing is a call that is written in the playground.
func playing(key string, more ...string) url.Values {
	f := url.Values{"key": {key}, "model": {"practice-small"}, "system": {"You're brief."}, "user": {"What is a \"weir\"?\n<b>Say</b>"}, "max_tokens": {"64"}, "temperature": {"0.5"}}
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

func says(t *testing.T, a stack.Answer, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(string(a.Body), w) {
			t.Errorf("it does not say %q:\n%.3000s", w, a)
		}
	}
}

func TestThePlaygroundCallsThroughTheGatewayWithATestKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 3}, {Dimension: "tokens", Window: "minute", Amount: 5000}}})
	b := signedIn(t, w)
	says(t, b.send("GET", "/playground", nil), "a new test key for Ada", "LIVE: Production", "practice-small")
	a := b.send("POST", "/playground", playing("new-"+w.Customer))
	if a.Status != 200 {
		t.Fatal(a)
	}
	says(
		t, a, "200, passed", "x-ratelimit-remaining-requests: <b>2</b>", "0 before, 1 as it began, 1 now, of 3", "Held, as it began", "Would be billed", "practice-small, Practice provider",
		"api_key=os.environ[&#34;WEIR_KEY&#34;]", "temperature=0.5", "openai.SystemMessage(&#34;You&#39;re brief.&#34;)", `You&#39;\&#39;&#39;re brief.`, "/requests/req_", "playground, Ada",
	)
	if strings.Contains(string(a.Body), "weir_test_") || strings.Contains(string(a.Body), "eyJ") {
		t.Error("the page holds a credential")
	}
	// The same choice again finds the key that was made, and the stream tells
	// each word.
	a = b.send("POST", "/playground/stream", playing("new-"+w.Customer, "stream", "true"))
	if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatal(a)
	}
	if n := strings.Count(string(a.Body), "event: text\n"); n < 3 {
		t.Errorf("%d words came by themselves", n)
	}
	says(t, a, "event: key\n", "event: done\n", "first word after", "1 before, 2 as it began, 2 now, of 3")
	if keys := weir.Want(t, 200, "GET", "/api/v1/api-keys?kind=customer", w.ManagementKey, nil); keys.JSON("data.2") != nil {
		t.Errorf("more than one key was made: %s", keys)
	}
	a = b.send("POST", "/playground", playing("new-"+w.Customer, "do", "burst"))
	says(t, a, "25 calls at once", "<b>1</b><span>passed</span>", "<b>24</b><span>refused: insufficient quota</span>", "x-should-retry: <b>false</b>", "HTTP/1.1 <b>429</b>")
}

func TestThePlaygroundCallsLiveOnlyWhereItIsMeantAndWritesItDown(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 5}}})
	b := signedIn(t, w)
	a := b.send("POST", "/playground", playing(w.KeyID, "model", "test-small"))
	if a.Status != 400 || len(up.Calls()) != 0 {
		t.Fatalf("a live call that nobody meant: %s", a)
	}
	says(t, a, `id="f-live-error"`, "What is a &#34;weir&#34;?")
	a = b.send("POST", "/playground", playing(w.KeyID, "model", "test-small", "live", "true"))
	says(t, a, "200, passed", "of the key, its customer and the organisation", "Billed", "4</span> left")
	if len(up.Calls()) != 1 {
		t.Errorf("%d calls reached the provider", len(up.Calls()))
	}
	n := stack.Value[int](t, weir, `select count(*)::int from audit_entries where tenant_id = $1 and action = 'api_key.tried'`, tenantUUID(t, w))
	if n != 1 {
		t.Errorf("%d entries of the audit", n)
	}
	says(t, b.send("POST", "/playground", playing(w.KeyID, "model", "no-such", "live", "true")), "404, failed", "model_not_found", "Turned away at the door")
	if a := b.send("POST", "/playground", playing(w.KeyID, "model", "test-small", "live", "true", "do", "burst")); a.Status != 422 {
		t.Errorf("25 live calls at once: %s", a)
	}
	other := weir.Setup(t, stack.Options{})
	if a := b.send("POST", "/playground", playing(other.KeyID)); a.Status != 400 || !strings.Contains(string(a.Body), "This key does not work any more.") {
		t.Errorf("another tenant's key: %s", a)
	}
	if a := b.send("POST", "/playground", playing(w.KeyID, "temperature", "NaN", "max_tokens", "-1", "model", " ", "user", "")); a.Status != 400 {
		t.Errorf("nothing of it is right: %s", a)
	} else {
		says(t, a, "f-temperature-error", "f-max_tokens-error", "f-model-error", "f-user-error")
	}
}
