package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"weir/internal/fault"
	"weir/internal/gateway/wire"
	"weir/internal/verdict"
)

// anthropicError is the body of every error in Anthropic's form
// (https://docs.anthropic.com/en/api/errors). Code and quota are ours.
type anthropicError struct {
	Type      string             `json:"type"`
	Error     anthropicErrorBody `json:"error"`
	RequestID string             `json:"request_id"`
}

type anthropicErrorBody struct {
	Type    string         `json:"type"`
	Message string         `json:"message"`
	Code    *string        `json:"code,omitempty"`
	Quota   *verdict.Limit `json:"quota,omitempty"`
}

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529

// anthropicStatus is the status in Anthropic's form: providers without room are
// overloaded there.
func anthropicStatus(status int, b openAIErrorBody) int {
	if b.Code != nil && *b.Code == "provider_capacity" {
		return statusOverloaded
	}
	return status
}

// anthropicKinds are the types of errors, by their status.
var anthropicKinds = map[int]string{
	http.StatusBadRequest: "invalid_request_error", http.StatusUnprocessableEntity: "invalid_request_error", http.StatusConflict: "invalid_request_error",
	http.StatusUnsupportedMediaType: "invalid_request_error", http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error",
	http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusGatewayTimeout: "timeout_error", statusOverloaded: "overloaded_error",
}

func (k *caller) anthropicError(status int, b openAIErrorBody) anthropicError {
	kind, known := anthropicKinds[anthropicStatus(status, b)]
	if !known {
		kind = "api_error"
	}
	return anthropicError{"error", anthropicErrorBody{kind, b.Message, b.Code, b.Quota}, k.requestID()}
}

// anthropicHeaders adds, to an answer in Anthropic's form, its rate headers and
// its name for the request's id.
func (k *caller) anthropicHeaders(now time.Time) {
	if k.claude {
		h := k.echo.Response().Header()
		h.Set("request-id", k.requestID())
		verdict.AnthropicHeaders(h, k.states, now)
	}
}

// responseError is an error event of a stream of responses
// (https://platform.openai.com/docs/api-reference/responses-streaming/error).
type responseError struct {
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
	Number  int64   `json:"sequence_number"`
}

// errorEvent is how an error looks in a stream that has begun. No last word
// follows it.
func (x *exchange) errorEvent(err error, number int64) []byte {
	f := fault.Of(err)
	body := openAIErrorBody{Message: f.Message, Type: "server_error", Code: &f.Code}
	var name string
	var v any = openAIError{body}
	switch x.call.form.wire {
	case wire.Messages:
		name, v = "error", x.k.anthropicError(0, body)
	case wire.Responses:
		name, v = "error", responseError{"error", f.Code, f.Message, nil, number}
	}
	b, _ := json.Marshal(v)
	if name == "" {
		return slices.Concat([]byte("data: "), b, []byte("\n\n"))
	}
	return slices.Concat([]byte("event: "+name+"\ndata: "), b, []byte("\n\n"))
}
