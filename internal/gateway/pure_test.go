package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
	"weir/internal/keyring"
	"weir/internal/limits"
)

// read is a chat completion as it is parsed.
func read(t *testing.T, body string) (*call, error) {
	t.Helper()
	o, err := jsonbody.ParseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	call := &call{form: formAt(wire.Chat), body: o, model: "m", maxOutput: -1, choices: 1}
	return call, call.readChat()
}

func reserved(t *testing.T, body string, plan []limits.Limit) limits.Tokens {
	t.Helper()
	call, err := read(t, body)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := call.estimate(plan, known{})
	return c.Tokens
}

func tpm(amount int64) []limits.Limit {
	return []limits.Limit{limits.Default(limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: amount})}
}

func TestAGuessNeverMakesTheFirstCallOfASmallPlanImpossible(t *testing.T) {
	for _, ceiling := range []int64{20, 100, 1000, 200_000} {
		if got := reserved(t, `{"messages":[{"role":"user","content":"hi"}]}`, tpm(ceiling)); got.Total() > ceiling || got.Input < 1 {
			t.Errorf("ceiling %d: reserves %+v", ceiling, got)
		}
	}
}

func TestTheLargerOutputCapTimesTheChoicesIsReserved(t *testing.T) {
	for body, want := range map[string]int64{
		`{"messages":[],"max_tokens":1,"max_completion_tokens":10000}`: 10_000,
		`{"messages":[],"max_tokens":300,"n":4}`:                       1200,
		`{"messages":[],"max_tokens":null,"max_completion_tokens":7}`:  7,
	} {
		if got := reserved(t, body, tpm(1000)).Output; got != want {
			t.Errorf("%s: reserves %d, want %d", body, got, want)
		}
	}
}

func TestAbsurdCeilingsAreRefused(t *testing.T) {
	for _, value := range []string{"-1", "0", "1e2", "1e400", "9223372036854775808", `"5"`, "1.5", "true", "[]", "{}"} {
		if call, err := read(t, `{"messages":[],"max_tokens":`+value+`}`); err == nil {
			t.Errorf("max_tokens %s accepted as %d", value, call.maxOutput)
		}
	}
}

func TestAnImageIsNotCountedAsText(t *testing.T) {
	data := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100_000)
	if got := reserved(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"what is this"},{"type":"image_url","image_url":{"url":"`+data+`"}}]}]}`, nil).Input; got < 500 || got > 2000 {
		t.Fatalf("input estimated at %d", got)
	}
}

func TestAStatedWaitIsReadInEveryFormAndGarbageInNone(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "1000000000000": 24 * time.Hour, "-5": 0, "0": 0, "soon": 0, "": 0, "NaN": 0, "Inf": 24 * time.Hour,
		"Tue, 01 Dec 2026 12:01:00 GMT": time.Minute, "Tuesday, 01-Dec-26 12:01:00 GMT": time.Minute, "Tue Dec  1 12:01:00 2026": time.Minute,
		"Tue, 01 Dec 2026 11:00:00 GMT": 0, "Tue, 01 Dec 2030 11:00:00 GMT": 24 * time.Hour,
	} {
		got, stated := statedWait(http.Header{"Retry-After": {value}}, now)
		if got != want || stated != (want > 0) {
			t.Errorf("%q: got %v, %v", value, got, stated)
		}
	}
	both := http.Header{"Retry-After": {"1", "garbage"}, "Retry-After-Ms": {"2500"}}
	if got, _ := statedWait(both, now); got != 2500*time.Millisecond {
		t.Errorf("the longest of several: got %v", got)
	}
}

func TestWordsOfAProviderCarryNoCredential(t *testing.T) {
	secret := keyring.NewSecret("canary-secret-1234")
	for _, body := range []string{
		`{"error":{"message":"Incorrect API key: canary-secret-1234."}}`, `{"error":"bad key sk-proj-abcDEF123456789"}`,
		`{"error":{"message":"Incorrect API key provided: sk-abc*******wxyz."}}`, `{"error":{"message":"Bearer abcdefghijklmnop is wrong"}}`,
	} {
		got := messageOf([]byte(body), secret)
		if strings.Contains(got, "canary") || strings.Contains(got, "abcDEF") || strings.Contains(got, "wxyz") || strings.Contains(got, "ghijk") {
			t.Errorf("%s: %s", body, got)
		}
	}
}
