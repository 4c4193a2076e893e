package sdk

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
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
	c, wire := client(w.Key)
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
	wait, left := (ms+999)/1000, 600_000-3*(prompt+6)
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

// TestTheClientComesBackExactlyWhenItWasTold drains a bucket, and lets the
// client's own retry do the rest: one refusal, one wait, one success.
func TestTheClientComesBackExactlyWhenItWasTold(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up, Plan: []stack.Limit{{Dimension: "tokens", Window: "minute", Amount: 60_000}}})
	drain := fmt.Sprintf(`{"customer": %q, "model": "test-small", "estimate": {"input_tokens": 60000}}`, w.Customer)
	weir.Want(t, 201, "POST", "/v1/reservations", w.ManagementKey, drain)
	c, wire := client(w.Key)
	params := hello()
	params.MaxTokens = openai.Int(1500) // as many as come back in a second and a half
	began := time.Now()
	if _, err := c.Chat.Completions.New(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	ms, _ := strconv.Atoi(wire.answers[0].Header.Get("Retry-After-Ms"))
	if wire.calls() != 2 || wire.answers[0].StatusCode != 429 || len(up.Calls()) != 1 {
		t.Errorf("%d HTTP calls, %d at the provider", wire.calls(), len(up.Calls()))
	}
	if took := time.Since(began); ms < 1 || ms > 1600 || took < time.Duration(ms)*time.Millisecond {
		t.Errorf("told to wait %d ms, it took %s", ms, took)
	}
}

// TestWhatNoWaitCanHelpIsAskedOnce counts the HTTP calls that the client makes
// with its own retries on.
func TestWhatNoWaitCanHelpIsAskedOnce(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up, Zone: stack.MiddayZone(), Plan: []stack.Limit{
		{Dimension: "requests", Window: "day", Amount: 1}, {Dimension: "tokens", Window: "minute", Amount: 1000},
	}})
	revoked := weir.AddKey(t, w)
	weir.Want(t, 200, "POST", "/api/v1/api-keys/"+revoked.Text("id")+"/revoke", w.ManagementKey, nil)

	once(t, "request_too_large", w.Key, 413, "tokens", "request_too_large", noWait, 1001)
	once(t, "a revoked key", revoked.Text("secret"), 401, "invalid_request_error", "invalid_api_key", noWait, 1)
	once(t, "an unknown key", "weir_live_000000000000000000000000000000000000", 401, "invalid_request_error", "invalid_api_key", noWait, 1)
	once(t, "no key of ours", "sk-proj-123", 401, "invalid_request_error", "invalid_api_key", noWait, 1)

	c, _ := client(w.Key)
	if _, err := c.Chat.Completions.New(t.Context(), hello()); err != nil {
		t.Fatal(err)
	}
	midnight := func(h http.Header) bool {
		s, err := strconv.Atoi(h.Get("Retry-After"))
		return err == nil && s > 9*3600 && s < 15*3600
	}
	once(t, "a daily cap", w.Key, 429, "insufficient_quota", "insufficient_quota", midnight, 1)
	if n := len(up.Calls()); n != 1 {
		t.Errorf("%d calls reached the provider, want the one that was allowed", n)
	}
}

func noWait(h http.Header) bool { return h.Get("Retry-After") == "" && h.Get("Retry-After-Ms") == "" }

func once(t *testing.T, what, key string, status int, kind, code string, headers func(http.Header) bool, output int64) {
	t.Helper()
	c, wire := client(key)
	params := hello()
	params.MaxCompletionTokens = openai.Int(output)
	_, err := c.Chat.Completions.New(t.Context(), params)
	e := apiError(t, err)
	if e.StatusCode != status || e.Type != kind || e.Code != code {
		t.Errorf("%s: %d %s", what, e.StatusCode, e.RawJSON())
	}
	if wire.calls() != 1 {
		t.Errorf("%s: %d HTTP calls, want 1", what, wire.calls())
	}
	if h := wire.last().Header; h.Get("X-Should-Retry") != "false" || !headers(h) {
		t.Errorf("%s: headers %v", what, h)
	}
}

// TestAFailureOfTheProviderIsTriedAgain: the client makes its two retries.
func TestAFailureOfTheProviderIsTriedAgain(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(t)
	w := weir.Setup(t, stack.Options{Upstream: up})
	fail := upstreamtest.Fail(500, "server_error", "x", "The server had an error")
	up.Next(fail, fail)
	c, wire := client(w.Key)
	if _, err := c.Chat.Completions.New(t.Context(), hello()); err != nil {
		t.Fatal(err)
	}
	if wire.calls() != 3 || len(up.Calls()) != 3 || wire.answers[0].StatusCode != 502 {
		t.Errorf("%d HTTP calls, %d at the provider, the first answered with %d", wire.calls(), len(up.Calls()), wire.answers[0].StatusCode)
	}
	up.Next(fail, fail, fail)
	_, err := c.Chat.Completions.New(t.Context(), hello())
	if e := apiError(t, err); e.StatusCode != 502 || e.Type != "server_error" || e.Code != "upstream_error" || wire.calls() != 6 {
		t.Errorf("%d HTTP calls, at last %d %s", wire.calls(), e.StatusCode, e.RawJSON())
	}
}

// TestARefusalReadsAlikeAsAStream: before the first byte it is an answer like
// any other.
func TestARefusalReadsAlikeAsAStream(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Upstream: upstreamtest.New(t), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 0}}})
	c, wire := client(w.Key)
	stream := c.Chat.Completions.NewStreaming(t.Context(), hello())
	if stream.Next() {
		t.Error("a refused stream has begun")
	}
	e := apiError(t, stream.Err())
	rest, _ := io.ReadAll(wire.last().Body)
	if e.StatusCode != 413 || e.Code != "request_too_large" || wire.calls() != 1 {
		t.Errorf("%d HTTP calls: %d %s %s", wire.calls(), e.StatusCode, e.RawJSON(), rest)
	}
}
