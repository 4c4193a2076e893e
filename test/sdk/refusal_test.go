package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"

	"weir/internal/gateway/upstreamtest"
	"weir/test/stack"
)

const patience = 20 * time.Second

// TestTheFourthCallOfThreeAMinuteIsRefusedInOpenAIsWords compares status,
// headers and body with what is promised, member by member.
func TestTheFourthCallOfThreeAMinuteIsRefusedInOpenAIsWords(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up, Zone: stack.MiddayZone(), Plan: []stack.Limit{
		{Dimension: "requests", Window: "minute", Amount: 3}, {Dimension: "tokens", Window: "day", Amount: 600_000},
	}})
	c, wire := openAI(t, w.Key)
	for i := range 3 {
		if _, err := c.Chat.Completions.New(t.Context(), hello()); err != nil {
			t.Fatal(err)
		}
		if left := wire.last().Header.Get("X-Ratelimit-Remaining-Requests"); left != fmt.Sprint(2-i) {
			t.Errorf("after call %d %s are left", i+1, left)
		}
	}
	began := time.Now()
	_, err := c.Chat.Completions.New(t.Context(), hello(), option.WithMaxRetries(0))
	took := time.Since(began)
	e := apiError(t, err)
	h := wire.last().Header
	ms, _ := strconv.Atoi(h.Get("Retry-After-Ms"))
	if wait := time.Duration(ms) * time.Millisecond; wait > 20*time.Second || wait < 20*time.Second-patience || wait+took < 15*time.Second {
		t.Errorf("retry-after-ms %d; a permit takes 20 s", ms)
	}
	full, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-Requests"))
	if err != nil || full <= 40*time.Second || full > time.Minute {
		t.Errorf("x-ratelimit-reset-requests %q: all three come back within a minute", h.Get("X-Ratelimit-Reset-Requests"))
	}
	midnight, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-Tokens"))
	if err != nil || midnight < 9*time.Hour || midnight > 15*time.Hour {
		t.Errorf("x-ratelimit-reset-tokens %q at about noon", h.Get("X-Ratelimit-Reset-Tokens"))
	}
	wait, left := (ms+999)/1000, 600_000-3*(upstreamtest.Prompt(`"`+question+`"`)+6)
	for name, want := range map[string]string{
		"X-Should-Retry": "true", "Retry-After": fmt.Sprint(wait), "Content-Type": "application/json",
		"X-Ratelimit-Limit-Requests": "3", "X-Ratelimit-Remaining-Requests": "0",
		"X-Ratelimit-Limit-Tokens": "600000", "X-Ratelimit-Remaining-Tokens": fmt.Sprint(left),
		"Ratelimit-Policy": `"rpm";q=3;w=60, "tpd";q=600000;qu="tokens";w=86400`,
		"Ratelimit":        fmt.Sprintf(`"rpm";r=0;t=%d, "tpd";r=%d;t=%d`, wait, left, int64((midnight+time.Second-1)/time.Second)),
	} {
		if got := strings.Join(h.Values(name), ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !regexp.MustCompile(`^req_[0-9a-z]{26}$`).MatchString(h.Get("X-Request-Id")) {
		t.Errorf("x-request-id %q", h.Get("X-Request-Id"))
	}
	if e.StatusCode != 429 || e.Type != "requests" || e.Code != "rate_limit_exceeded" || e.Param != "" {
		t.Errorf("%d %s", e.StatusCode, e.RawJSON())
	}
	wantBody(t, e.RawJSON(), ms, full)
	if n := len(up.Calls()); n != 3 {
		t.Errorf("%d calls reached the provider", n)
	}
}

// wantBody compares the error object; only the instants and the id of the limit
// are the installation's own.
func wantBody(t *testing.T, raw string, ms int, full time.Duration) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	quota, _ := got["quota"].(map[string]any)
	reset, err := time.Parse(time.RFC3339, fmt.Sprint(quota["reset_at"]))
	if off := time.Until(reset) - full; err != nil || off > time.Second || off < -patience {
		t.Errorf("reset_at %v is not in %s", quota["reset_at"], full)
	}
	if id := fmt.Sprint(quota["id"]); !regexp.MustCompile(`^lim_[0-9a-z]{26}$`).MatchString(id) {
		t.Errorf("quota.id %s", id)
	}
	delete(quota, "id")
	delete(quota, "reset_at")
	want := fmt.Sprintf(`{"code":"rate_limit_exceeded","message":"Rate limit reached for test-small in plan Starter on requests per minute: limit 3, used 3, requested 1. Try again in %s.","param":null,`+
		`"quota":{"dimension":"requests","limit":3,"mode":"enforce","name":"requests per minute","remaining":0,"requested":1,"scope":"customer","used":3,"window":"minute"},"type":"requests"}`,
		time.Duration(ms)*time.Millisecond)
	if b, _ := json.Marshal(got); string(b) != want {
		t.Errorf("the body is\n%s\nwant\n%s", b, want)
	}
}

// TestWhatNoWaitCanHelpIsAskedOnce counts the HTTP calls that the clients make
// with their own retries on.
func TestWhatNoWaitCanHelpIsAskedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider, stack.Limit{Dimension: "requests", Window: "day", Amount: 1}, stack.Limit{Dimension: "tokens", Window: "minute", Amount: 1000})
		revoked := weir.AddKey(t, w.World)
		weir.Want(t, 200, "POST", "/api/v1/api-keys/"+revoked.Text("id")+"/revoke", w.ManagementKey, nil)
		invalid := refusal{Status: 401, Kind: a.in("invalid_request_error", "authentication_error"), Code: "invalid_api_key"}

		once(t, a, "more than the limit could ever allow", w.Key, 1001, noWait,
			refusal{Status: 413, Kind: a.in("tokens", "request_too_large"), Code: "request_too_large", Limit: "tokens per minute"})
		once(t, a, "a revoked key", revoked.Text("secret"), 1, noWait, invalid)
		once(t, a, "an unknown key", "weir_live_000000000000000000000000000000000000", 1, noWait, invalid)
		once(t, a, "no key of ours", "sk-proj-123", 1, noWait, invalid)

		ask, _ := a.with(t, weir, w.Key)
		if err := ask(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		midnight := func(h http.Header) bool {
			s, err := strconv.Atoi(h.Get("Retry-After"))
			return err == nil && s > 9*3600 && s < 15*3600
		}
		once(t, a, "a daily cap", w.Key, 10, midnight,
			refusal{Status: 429, Kind: a.in("insufficient_quota", "rate_limit_error"), Code: "insufficient_quota", Limit: "requests per day"})
		if n := len(w.up.Calls()); n != 1 {
			t.Errorf("%d calls reached the provider, want the one that was allowed", n)
		}
	})
}

func noWait(h http.Header) bool { return h.Get("Retry-After") == "" && h.Get("Retry-After-Ms") == "" }

func once(t *testing.T, a asker, what, key string, most int64, headers func(http.Header) bool, want refusal) {
	t.Helper()
	ask, wire := a.with(t, weir, key)
	got := refused(t, ask(t.Context(), most))
	if got.Status != want.Status || got.Kind != want.Kind || got.Code != want.Code || got.Limit != want.Limit || got.Message == "" {
		t.Errorf("%s: %d %s", what, got.Status, got.Text)
	}
	if wire.calls() != 1 {
		t.Errorf("%s: %d HTTP calls, want 1", what, wire.calls())
	}
	if h := wire.last().Header; h.Get("X-Should-Retry") != "false" || !headers(h) {
		t.Errorf("%s: headers %v", what, h)
	}
}

// TestWhatTheProviderSaysOfARequestIsAskedOnce: its own words reach the client,
// in the client's form.
func TestWhatTheProviderSaysOfARequestIsAskedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		for _, provider := range []string{openAIForm, anthropicForm} {
			if provider == anthropicForm && strings.Contains(a.name, "response") {
				continue // which is served as it is only
			}
			w := serving(t, provider)
			w.up.Next(upstreamtest.Failed(http.StatusUnprocessableEntity))
			ask, wire := a.with(t, weir, w.Key)
			got := refused(t, ask(t.Context(), 10))
			if got.Status != http.StatusUnprocessableEntity || got.Kind != "invalid_request_error" || !strings.Contains(got.Message, "This call failed with status 422.") {
				t.Errorf("%s: %d %s", provider, got.Status, got.Text)
			}
			if wire.calls() != 1 || len(w.up.Calls()) != 1 {
				t.Errorf("%s: %d HTTP calls, %d at the provider", provider, wire.calls(), len(w.up.Calls()))
			}
		}
	})
}

// TestKeysThatTheProviderRefusesAreNotTriedAgain by the client.
func TestKeysThatTheProviderRefusesAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, a asker) {
		w := serving(t, a.provider)
		w.up.Next(upstreamtest.EchoKey(http.StatusUnauthorized))
		ask, wire := a.with(t, weir, w.Key)
		got := refused(t, ask(t.Context(), 10))
		if got.Status != http.StatusBadGateway || got.Kind != a.in("server_error", "api_error") || got.Code != "upstream_auth_failed" || strings.Contains(got.Text, w.ProviderSecret) {
			t.Errorf("%d %s", got.Status, got.Text)
		}
		if wire.calls() != 1 || wire.last().Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d HTTP calls, headers %v", wire.calls(), wire.last().Header)
		}
	})
}
