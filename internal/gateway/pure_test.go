package gateway

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/jsonbody"
	"weir/internal/keyring"
	"weir/internal/limits"
)

func parsed(t *testing.T, body string) chatCall {
	t.Helper()
	o, err := jsonbody.ParseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	call := chatCall{body: o, model: "m"}
	if err := call.readOptions(); err != nil {
		t.Fatal(err)
	}
	return call
}

func tpm(amount int64) []limits.Limit {
	return []limits.Limit{limits.Default(limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: amount})}
}

func TestAGuessNeverMakesTheFirstCallOfASmallPlanImpossible(t *testing.T) {
	call := parsed(t, `{"messages":[{"role":"user","content":"hi"}]}`)
	for _, ceiling := range []int64{20, 100, 1000, 200_000} {
		if got := call.estimate(tpm(ceiling)); got.Tokens.Total() > ceiling || got.Tokens.Input < 1 {
			t.Errorf("ceiling %d: reserves %+v", ceiling, got.Tokens)
		}
	}
}

func TestTheLargerOutputCapTimesTheChoicesIsReserved(t *testing.T) {
	for body, want := range map[string]int64{
		`{"messages":[],"max_tokens":1,"max_completion_tokens":10000}`: 10_000,
		`{"messages":[],"max_tokens":300,"n":4}`:                       1200,
		`{"messages":[],"max_tokens":null,"max_completion_tokens":7}`:  7,
	} {
		call := parsed(t, body)
		if got := call.estimate(tpm(1000)).Tokens.Output; got != want {
			t.Errorf("%s: reserves %d, want %d", body, got, want)
		}
	}
}

func TestAbsurdCeilingsAreRefused(t *testing.T) {
	for _, value := range []string{"-1", "0", "1e2", "1e400", "9223372036854775808", `"5"`, "1.5", "true", "[]", "{}"} {
		o, err := jsonbody.ParseObject([]byte(`{"max_tokens":` + value + `}`))
		if err != nil {
			t.Fatal(err)
		}
		call := chatCall{body: o}
		if err := call.readOptions(); err == nil {
			t.Errorf("max_tokens %s accepted as %d", value, call.maxOutput)
		}
	}
}

func TestAnImageIsNotCountedAsText(t *testing.T) {
	data := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100_000)
	call := parsed(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"what is this"},{"type":"image_url","image_url":{"url":"`+data+`"}}]}]}`)
	if got := call.estimate(nil).Tokens.Input; got < 500 || got > 2000 {
		t.Fatalf("input estimated at %d", got)
	}
}

func TestUsageIsReadIntoDisjointClasses(t *testing.T) {
	for body, want := range map[string]struct {
		t   limits.Tokens
		why string
	}{
		`{"prompt_tokens":17903,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":17817}}`:   {limits.Tokens{Input: 86, CachedInput: 17817, Output: 5}, ""},
		`{"prompt_tokens":10,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":40}}`: {limits.Tokens{Input: 10, Output: 10, Reasoning: 40}, ""},
		`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`:                                      {limits.Tokens{}, ""},
		`null`:                {limits.Tokens{}, "usage_absent"},
		`{}`:                  {limits.Tokens{}, "usage_absent"},
		`{"prompt_tokens":5}`: {limits.Tokens{}, "usage_absent"},
		`{"prompt_tokens":-1,"completion_tokens":1}`:                                            {limits.Tokens{}, "usage_nonsense"},
		`{"prompt_tokens":1000000000000000000,"completion_tokens":1}`:                           {limits.Tokens{}, "usage_nonsense"},
		`{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":5}}`: {limits.Tokens{}, "usage_nonsense"},
		`{"prompt_tokens":"1","completion_tokens":1}`:                                           {limits.Tokens{}, "usage_nonsense"},
	} {
		got, why := readUsage([]byte(body))
		if got != want.t || why != want.why {
			t.Errorf("%s: got %+v %q", body, got, why)
		}
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

const story = "\xef\xbb\xbf: hello\r\ndata: {\"a\":1}\r\n\r\nevent: x\rdata: one\rdata:two\r\r\nid: 7\ndata\n\ndata: [DONE]\n\n"

func events(t *testing.T, r io.Reader) (out []string) {
	t.Helper()
	s := newSSEReader(r)
	for {
		e, err := s.next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(e.data))
	}
}

func TestAStreamReadsAlikeHoweverItIsCut(t *testing.T) {
	want := []string{`{"a":1}`, "one\ntwo", "", "[DONE]"}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	readers := []io.Reader{strings.NewReader(story), iotest.OneByteReader(strings.NewReader(story)), iotest.HalfReader(strings.NewReader(story))}
	for range 200 {
		var parts []io.Reader
		for rest := []byte(story); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			parts, rest = append(parts, bytes.NewReader(rest[:n])), rest[n:]
		}
		readers = append(readers, io.MultiReader(parts...))
	}
	for _, r := range readers {
		if diff := cmp.Diff(want, events(t, r)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestALineWithoutEndIsBounded(t *testing.T) {
	s := newSSEReader(io.LimitReader(endless{}, 10<<20))
	if _, err := s.next(); !errors.Is(err, errLineTooLong) {
		t.Fatalf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func FuzzAnyStreamIsReadWithoutPanic(f *testing.F) {
	f.Add([]byte(story))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newSSEReader(bytes.NewReader(b))
		for range 1000 {
			if _, err := s.next(); err != nil {
				return
			}
		}
	})
}
