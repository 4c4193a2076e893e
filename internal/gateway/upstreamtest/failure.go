package upstreamtest

import (
	"fmt"
	"net/http"
)

// Fail answers with an error in OpenAI's form.
func Fail(status int, kind, code, message string) Script {
	return Script{Status: status, Body: fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)}
}

// Failed answers with an error of that status in the words of the route's vendor:
// Anthropic's of messages, OpenAI's of the rest.
func Failed(status int) Script {
	return Script{Status: status, message: "This call failed with status " + fmt.Sprint(status) + "."}
}

// Limited is OpenAI's 429 of a minute limit. header holds what it states of the
// wait; it may be nil.
func Limited(header http.Header) Script {
	s := Fail(http.StatusTooManyRequests, "tokens", "rate_limit_exceeded", "Rate limit reached for test-small on tokens per min (TPM). Please try again in 229ms.")
	s.Header = header
	return s
}

// AnthropicLimited is Anthropic's 429, with the wait that it always states.
func AnthropicLimited(seconds int) Script {
	return Script{
		Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {fmt.Sprint(seconds)}},
		Body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50 requests per minute."},"request_id":"req_upstream"}`,
	}
}

// Overloaded is Anthropic's 529.
func Overloaded() Script {
	return Script{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_upstream"}`}
}

// AnthropicSpent is Anthropic's answer of an account that has reached the spend
// limit that it set itself: a 400.
func AnthropicSpent() Script {
	return Script{
		Status: http.StatusBadRequest,
		Body:   `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2035-01-01 at 00:00 UTC."},"request_id":"req_upstream"}`,
	}
}

// GeminiQuota is Gemini's 429: of a minute's input tokens, or of a day's requests.
// asList is how its streaming route sends it.
func GeminiQuota(perDay, asList bool) Script {
	metric, quota, value := "generate_content_free_tier_input_token_count", "GenerateContentInputTokensPerModelPerMinute-FreeTier", "250000"
	if perDay {
		metric, quota, value = "generate_content_free_tier_requests", "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "250"
	}
	body := fmt.Sprintf(`{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[`+
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/%s","quotaId":"%s","quotaDimensions":{"location":"global","model":"test-small"},"quotaValue":"%s"}]},`+
		`{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"Learn more","url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]},`+
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}`, metric, quota, value)
	if asList {
		body = "[" + body + "]"
	}
	return Script{Status: http.StatusTooManyRequests, Body: body}
}

// OpenRouterLimited is OpenRouter's 429 of its own limits, whose code is a number;
// reset is in epoch milliseconds.
func OpenRouterLimited(reset int64) Script {
	return Script{
		Status: http.StatusTooManyRequests,
		Header: http.Header{"X-Ratelimit-Limit": {"20"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {fmt.Sprint(reset)}},
		Body:   `{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min.","metadata":{"error_type":"rate_limit_exceeded"}}}`,
	}
}

// OpenRouterSpent is OpenRouter's 402 of an account without credit.
func OpenRouterSpent() Script {
	return Script{Status: http.StatusPaymentRequired, Body: `{"error":{"code":402,"message":"Insufficient credits.","metadata":{"limit_source":"openrouter_credits"}}}`}
}

// OpenRouterEvent is a chat stream that fails as OpenRouter's do: in a chunk with
// an error beside its choices.
func OpenRouterEvent() Script {
	const head = `{"id":"gen-test","object":"chat.completion.chunk","created":1764547200,"model":"test-small",`
	return Script{NoDone: true, Events: []string{
		head + `"choices":[{"index":0,"delta":{"role":"assistant","content":"Half"},"finish_reason":null}]}`,
		head + `"error":{"code":502,"message":"Provider disconnected unexpectedly"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`,
	}}
}

// ErrorInside200 answers 200 with an error in the body, as OpenRouter does.
func ErrorInside200() Script {
	return Script{Body: `{"error":{"message":"Provider returned error","code":502,"metadata":{"provider_name":"x"}}}`}
}

// EchoKey answers with an error that repeats the credential it was called with,
// as some providers do.
func EchoKey(status int) Script {
	s := Fail(status, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: %KEY%. You can find your API key at https://platform.example.com.")
	s.echo = "%KEY%"
	return s
}
