package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalogue"
	"weir/internal/limits"
)

var statedAt = time.Date(2025, 8, 21, 12, 40, 0, 0, time.UTC)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func openAIHeaders(limitRequests, leftRequests, resetRequests, limitTokens, leftTokens, resetTokens string) http.Header {
	return headers("x-ratelimit-limit-requests", limitRequests, "x-ratelimit-remaining-requests", leftRequests, "x-ratelimit-reset-requests", resetRequests,
		"x-ratelimit-limit-tokens", limitTokens, "x-ratelimit-remaining-tokens", leftTokens, "x-ratelimit-reset-tokens", resetTokens)
}

const (
	openAITokens = `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 200000, Used 192548, Requested 8218. Please try again in 229ms. Visit https://platform.openai.com","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
	groqDay      = `{"error":{"message":"Rate limit reached for model llama in organization org_x service tier on_demand on tokens per day (TPD): Limit 100000, Used 99999, Requested 500. Please try again in 9m38.016s.","type":"tokens","code":"rate_limit_exceeded"}}`
	geminiDay    = `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"100"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}]`
	geminiMinute = `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier","quotaDimensions":{"model":"gemini-2.5-flash"},"quotaValue":"250000"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26.5s"}]}}`
)

// learnt writes statements in short: "tokens/minute 200000".
func learnt(list []limits.Statement) (out []string) {
	for _, l := range list {
		out = append(out, fmt.Sprintf("%s/%s %d", l.Dimension, l.Window, l.Amount))
	}
	return out
}

func TestWhatProvidersStateOfTheirLimitsIsRead(t *testing.T) {
	groq, anthropic := catalogue.QuirksOf("https://api.groq.com/openai/v1"), catalogue.QuirksOf("https://api.anthropic.com/v1")
	for name, c := range map[string]struct {
		status int
		h      http.Header
		body   string
		q      catalogue.Quirks
		want   stated
		learns []string
	}{
		"OpenAI, well": {200, openAIHeaders("500", "499", "120ms", "200000", "199000", "300ms"), "", catalogue.Quirks{}, stated{status: 200}, []string{"requests/minute 500", "tokens/minute 200000"}},
		"OpenAI, requests per day by their refill": {200, openAIHeaders("200", "199", "7m12s", "40000", "39000", "1.5s"), "", catalogue.Quirks{}, stated{status: 200, daily: limits.DailyLeft}, []string{"requests/day 200", "tokens/minute 40000"}},
		"Groq, requests are per day":               {200, openAIHeaders("14400", "14399", "6s", "18000", "17997", "10ms"), "", groq, stated{status: 200, daily: limits.DailyLeft}, []string{"requests/day 14400", "tokens/minute 18000"}},
		"Azure does not know":                      {200, openAIHeaders("-1", "-1", "", "0", "0", ""), "", catalogue.Quirks{}, stated{status: 200}, nil},
		"Mistral":                                  {200, headers("x-ratelimit-limit-tokens-minute", "500000", "x-ratelimit-remaining-tokens-minute", "499000", "x-ratelimit-limit-req-minute", "60"), "", catalogue.Quirks{}, stated{status: 200}, []string{"requests/minute 60", "tokens/minute 500000"}},
		"Anthropic": {
			429, headers("anthropic-ratelimit-requests-limit", "50", "anthropic-ratelimit-requests-remaining", "49", "anthropic-ratelimit-input-tokens-limit", "30000", "anthropic-ratelimit-input-tokens-remaining", "0",
				"anthropic-ratelimit-input-tokens-reset", "2025-08-21T12:40:59Z", "anthropic-ratelimit-tokens-limit", "30000", "retry-after", "12"),
			`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`, anthropic,
			stated{status: 429, wait: 12 * time.Second},
			[]string{"requests/minute 50", "input_tokens/minute 30000"},
		},
		"a reset counts where no wait is stated, of what is spent": {429, openAIHeaders("500", "0", "12s", "200000", "100", "30s"), `{}`, catalogue.Quirks{}, stated{status: 429, wait: 12 * time.Second}, []string{"requests/minute 500", "tokens/minute 200000"}},
		"no reset of what is not spent":                            {429, openAIHeaders("500", "3", "12s", "200000", "100", "30s"), `{}`, catalogue.Quirks{}, stated{status: 429}, []string{"requests/minute 500", "tokens/minute 200000"}},
		"OpenAI's message":                                         {429, nil, openAITokens, catalogue.Quirks{}, stated{status: 429, wait: 229 * time.Millisecond, detail: "TPM"}, []string{"tokens/minute 200000"}},
		"the longest of several waits":                             {429, headers("retry-after", "1", "retry-after-ms", "700"), openAITokens, catalogue.Quirks{}, stated{status: 429, wait: time.Second, detail: "TPM"}, []string{"tokens/minute 200000"}},
		"a day's message with its wait":                            {429, nil, groqDay, groq, stated{status: 429, wait: 9*time.Minute + 38016*time.Millisecond, daily: limits.DailySpent, detail: "TPD"}, []string{"tokens/day 100000"}},
		"Gemini's day, wrapped in a list":                          {429, nil, geminiDay, catalogue.Quirks{}, stated{status: 429, wait: 26 * time.Second, daily: limits.DailySpent, message: limits.MessageDaySpent, detail: "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}, []string{"requests/day 100"}},
		"Gemini's minute":                                          {429, nil, geminiMinute, catalogue.Quirks{}, stated{status: 429, wait: 26500 * time.Millisecond, detail: "GenerateContentInputTokensPerModelPerMinute-FreeTier"}, []string{"input_tokens/minute 250000"}},
		"no credit":                                                {429, nil, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, catalogue.Quirks{}, stated{status: 429, message: limits.MessageCredit, detail: "insufficient_quota"}, nil},
		"a spend limit of the organisation":                        {429, nil, `{"error":{"message":"x","type":"billing","code":"organization_spend_limit_exceeded"}}`, catalogue.Quirks{}, stated{status: 429, message: limits.MessageCredit, detail: "organization_spend_limit_exceeded"}, nil},
		"Anthropic's own spend limit":                              {400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2025-09-01."}}`, anthropic, stated{status: 400, message: limits.MessageCredit}, nil},
		"the same words from anybody else":                         {400, nil, `{"error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}}`, catalogue.Quirks{}, stated{status: 400}, nil},
		"OpenRouter, 429 inside a 200":                             {200, headers("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1755780060000"), `{"error":{"code":429,"message":"Rate limit exceeded"}}`, catalogue.Quirks{}, stated{status: 429, wait: time.Minute}, nil},
		"digits of a message are no status":                        {429, nil, `{"error":{"message":"Requested 40213 tokens, limit 402, error 401","type":"tokens","code":null}}`, catalogue.Quirks{}, stated{status: 429}, nil},
		"a 500 that quotes a 429":                                  {500, nil, openAITokens, catalogue.Quirks{}, stated{status: 500}, nil},
		"no JSON":                                                  {429, nil, `<html>429 Too Many Requests</html>`, catalogue.Quirks{}, stated{status: 429}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var body []byte
			if c.body != "" {
				body = []byte(c.body)
			}
			got := readStated(c.status, c.h, body, c.q, statedAt)
			if diff := cmp.Diff(c.learns, learnt(got.limits)); diff != "" {
				t.Error(diff)
			}
			got.limits = nil
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(stated{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAResetIsReadInEveryFormAndNothingElse(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"12ms": 12 * time.Millisecond, "6m0s": 6 * time.Minute, "2m59.56s": 179560 * time.Millisecond, "1d2h": 26 * time.Hour, "17": 17 * time.Second, "0.5": 500 * time.Millisecond,
		"2025-08-21T12:40:59Z": 59 * time.Second, "1755780060": time.Minute, "1755780060000": time.Minute,
		"": 0, "-5": 0, "0": 0, "soon": 0, "2020-01-01T00:00:00Z": 0, "NaN": 0, "1e300": 0, "-6m": 0, "99999999d": 0,
	} {
		if got, ok := readReset(s, statedAt); ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %s, %v", s, got, ok)
		}
	}
}

func FuzzWhateverAProviderAnswersIsReadWithinBounds(f *testing.F) {
	for _, body := range []string{openAITokens, groqDay, geminiDay, geminiMinute, `{"error":{"code":402}}`, `[]`, `[[]]`, `{"error":"x"}`} {
		f.Add(429, "6m0s", "100", "0", "5", body)
		f.Add(200, "1755780060000", "-1", "", "-3", body)
	}
	f.Fuzz(func(t *testing.T, status int, reset, limit, left, after, body string) {
		h := headers("x-ratelimit-limit-requests", limit, "x-ratelimit-remaining-requests", left, "x-ratelimit-reset-requests", reset, "retry-after", after,
			"anthropic-ratelimit-input-tokens-limit", limit, "anthropic-ratelimit-input-tokens-reset", reset, "x-ratelimit-remaining", left, "x-ratelimit-reset", reset)
		got := readStated(status, h, []byte(body), catalogue.Quirks{SpendIn400: true}, statedAt)
		if got.wait < 0 || got.wait > limits.LongestWait {
			t.Errorf("a wait of %s", got.wait)
		}
		if status != 200 && got.status != status {
			t.Errorf("a %d is read as a %d", status, got.status)
		}
		if status == 200 && got.status != 0 && (got.status < 400 || got.status > 599) {
			t.Errorf("an error inside a 200 is read as a %d", got.status)
		}
		for _, l := range got.limits {
			if l.Amount <= 0 || l.Dimension == "" || l.Window != limits.WindowMinute && l.Window != limits.WindowDay {
				t.Errorf("learned %+v", l)
			}
		}
		if strings.ContainsAny(got.detail, " \"<>\n") || len(got.detail) > 120 {
			t.Errorf("it names %q", got.detail)
		}
		if again := readStated(status, h, []byte(body), catalogue.Quirks{SpendIn400: true}, statedAt); !cmp.Equal(got, again, cmp.AllowUnexported(stated{})) {
			t.Error("it reads the same answer in two ways")
		}
	})
}
