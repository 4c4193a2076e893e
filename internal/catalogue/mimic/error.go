package mimic

import (
	"fmt"
	"net/http"
)

// Error is an error of that status in the words of the route's vendor.
func Error(route string, status int, message string) string {
	if route == Messages || route == CountTokens {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_mimic"}`, anthropicKind(status), js(message))
	}
	kind, code := openAIKind(status)
	return fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":%s}}`, js(message), kind, code)
}

func anthropicKind(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// openAIKind is the type, and the code as JSON.
func openAIKind(status int) (kind, code string) {
	switch {
	case status == http.StatusUnauthorized:
		return "invalid_request_error", `"invalid_api_key"`
	case status == http.StatusPaymentRequired:
		return "insufficient_quota", `"insufficient_quota"`
	case status == http.StatusNotFound:
		return "invalid_request_error", `"model_not_found"`
	case status == http.StatusTooManyRequests:
		return "tokens", `"rate_limit_exceeded"`
	case status >= 500:
		return "server_error", "null"
	}
	return "invalid_request_error", "null"
}

// ModelList is what GET /models answers, in Anthropic's form or in OpenAI's.
func ModelList(anthropic bool, owner string, names ...string) string {
	list := ""
	for i, name := range names {
		if i > 0 {
			list += ","
		}
		list += Model(anthropic, owner, name)
	}
	if !anthropic {
		return `{"object":"list","data":[` + list + `]}`
	}
	first, last := "null", "null"
	if len(names) > 0 {
		first, last = js(names[0]), js(names[len(names)-1])
	}
	return fmt.Sprintf(`{"data":[%s],"has_more":false,"first_id":%s,"last_id":%s}`, list, first, last)
}

// Model is one model, as GET /models/{id} answers.
func Model(anthropic bool, owner, name string) string {
	if anthropic {
		return fmt.Sprintf(`{"type":"model","id":%s,"display_name":%s,"created_at":"2025-12-01T00:00:00Z"}`, js(name), js(name))
	}
	return fmt.Sprintf(`{"id":%s,"object":"model","created":1764547200,"owned_by":%s}`, js(name), js(owner))
}
