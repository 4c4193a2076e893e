package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/usage"
	"weir/internal/verdict"
)

// openAIError is the body of every error in OpenAI's form. Quota is ours: which
// limit refused, with its figures.
type openAIError struct {
	Error openAIErrorBody `json:"error"`
}

type openAIErrorBody struct {
	Message string         `json:"message"`
	Type    string         `json:"type"`
	Param   *string        `json:"param"`
	Code    *string        `json:"code"`
	Quota   *verdict.Limit `json:"quota,omitempty"`
}

// answer is an error as it will be sent.
type answer struct {
	status int
	kind   string // OpenAI's "type"
	retry  string // x-should-retry: "true", "false" or "" for no statement
}

// answers is the one table from a fault's kind to what an SDK understands.
var answers = map[fault.Kind]answer{
	fault.Internal:        {http.StatusInternalServerError, "server_error", ""},
	fault.Invalid:         {http.StatusBadRequest, "invalid_request_error", "false"},
	fault.Refused:         {http.StatusUnprocessableEntity, "invalid_request_error", "false"},
	fault.Unauthenticated: {http.StatusUnauthorized, "invalid_request_error", "false"},
	fault.Forbidden:       {http.StatusForbidden, "invalid_request_error", "false"},
	fault.NotFound:        {http.StatusNotFound, "invalid_request_error", "false"},
	fault.Conflict:        {http.StatusConflict, "invalid_request_error", "false"},
	fault.TooLarge:        {http.StatusRequestEntityTooLarge, "invalid_request_error", "false"},
	fault.Unsupported:     {http.StatusUnsupportedMediaType, "invalid_request_error", "false"},
	fault.Limited:         {http.StatusTooManyRequests, "requests", "true"},
	fault.Unavailable:     {http.StatusServiceUnavailable, "server_error", "true"},
	fault.Upstream:        {http.StatusBadGateway, "server_error", ""},
}

// byCode holds the codes whose answer differs from their kind's.
var byCode = map[string]answer{
	"upstream_auth_failed": {http.StatusBadGateway, "server_error", "false"},
	"upstream_timeout":     {http.StatusGatewayTimeout, "server_error", ""},
}

// refused is the error of a call that a limit refused.
type refused struct {
	decision limits.Decision
	model    string
}

func (e *refused) Error() string { return usage.RefusalCode(e.decision) }

// relayed is a provider's own error about the request, free of secrets.
type relayed struct {
	status int
	body   openAIErrorBody
}

func (e *relayed) Error() string { return "relayed: " + e.body.Message }

// answerError writes err in the route's form, with the headers that every answer
// has. In a stream that has begun it is the stream's business.
func (s *Server) answerError(k *caller, err error) {
	if k.echo.Response().Committed || errors.Is(err, context.Canceled) {
		return // nobody reads it
	}
	s.showLimits(k)
	h := k.echo.Response().Header()
	var refusal *refused
	var relay *relayed
	var status int
	var body openAIErrorBody
	switch {
	case errors.As(err, &refusal):
		status, body = refuse(h, refusal)
	case errors.As(err, &relay):
		status, body = relay.status, relay.body
		if status != http.StatusRequestTimeout && status != http.StatusConflict { // which SDKs try again by themselves
			h.Set("x-should-retry", "false")
		}
	default:
		status, body = s.fault(k, h, err)
	}
	if k.claude {
		h.Set("request-id", k.requestID())
		writeJSON(k.echo, anthropicStatus(status, body), k.anthropicError(status, body))
		return
	}
	writeJSON(k.echo, status, openAIError{body})
}

// fault maps an error that is no refusal. What the caller may not know of a
// key's state beyond the message is folded into invalid_api_key.
func (s *Server) fault(k *caller, h http.Header, err error) (int, openAIErrorBody) {
	f := fault.Of(err)
	a, special := byCode[f.Code]
	if !special {
		a = answers[f.Kind]
	}
	code := f.Code
	if f.Kind == fault.Unauthenticated {
		code = "invalid_api_key"
		h.Set(echo.HeaderWWWAuthenticate, `Bearer realm="weir"`)
	}
	if a.retry != "" {
		h.Set("x-should-retry", a.retry)
	}
	if f.RetryAfter > 0 {
		verdict.RetryAfter(h, f.RetryAfter)
	}
	if f.Code == "provider_capacity" {
		h.Set("x-should-retry", worthWaiting(f.RetryAfter))
	}
	s.logFailure(k.ctx, k, f)
	b := openAIErrorBody{Message: f.Message, Type: a.kind, Code: &code}
	if len(f.Fields) > 0 && f.Fields[0].Pointer != "" {
		p := param(f.Fields[0].Pointer)
		b.Param = &p
	}
	return a.status, b
}

func (s *Server) logFailure(ctx context.Context, k *caller, f *fault.Error) {
	level := slog.LevelWarn
	switch f.Kind {
	case fault.Internal:
		level = slog.LevelError
	case fault.Unavailable, fault.Upstream:
	default:
		return
	}
	s.Log.Log(ctx, level, "call failed", "request_id", k.requestID(), "code", f.Code, "error", f.Error())
}

// refuse tells a refusal: gateway.md's table, row by row.
func refuse(h http.Header, e *refused) (int, openAIErrorBody) {
	d := e.decision
	binding := d.Binding()
	body := openAIErrorBody{Message: verdict.Sentence(d, e.model)}
	status, code, retry := http.StatusTooManyRequests, usage.RefusalCode(d), "true"
	body.Type = "tokens"
	if binding.Limit.Dimension == limits.DimensionRequests || binding.Limit.Dimension == limits.DimensionConcurrency {
		body.Type = "requests"
	}
	switch code {
	case "request_too_large":
		status, retry = http.StatusRequestEntityTooLarge, "false"
	case "daily_cap_reached", "spend_cap_reached":
		body.Type, code, retry = "insufficient_quota", "insufficient_quota", "false"
	case "provider_capacity":
		status, body.Type, retry = http.StatusServiceUnavailable, "server_error", worthWaiting(d.RetryAfter)
	}
	if !d.TooLarge {
		verdict.RetryAfter(h, d.RetryAfter)
	}
	h.Set("x-should-retry", retry)
	body.Code = &code
	if !d.ProviderFull {
		q := verdict.Of(binding)
		body.Quota = &q
	}
	return status, body
}

// longestRetry is the longest wait for a provider that an SDK is asked to sit
// through: some take any that is stated, and a program would sleep for hours.
const longestRetry = 2 * time.Minute

func worthWaiting(wait time.Duration) string { return strconv.FormatBool(wait <= longestRetry) }

// showLimits puts the caller's limits into the headers, once the caller is
// known; of a call that was not decided, as they stand.
func (s *Server) showLimits(k *caller) {
	if k.states == nil && k.contract.Customer.ID == k.who.Key.Customer && len(k.contract.Limits)+len(k.who.Key.Limits) > 0 {
		k.states, _ = s.Limits.Live(k.ctx, k.who.Tenant.ID, k.limits(), k.model, "") // without it the headers stay away
	}
	verdict.Headers(k.echo.Response().Header(), k.states)
	k.anthropicHeaders(s.Now())
}

func writeJSON(c echo.Context, status int, v any) {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(status)
	enc := json.NewEncoder(c.Response())
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

var index = regexp.MustCompile(`/(\d+)`)

// param writes a JSON pointer as OpenAI names parameters: messages[0].content.
func param(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(index.ReplaceAllString(pointer, "[$1]"), "/"), "/", ".")
}
