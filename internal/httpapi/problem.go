package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/fault"
	"weir/internal/verdict"
)

// statuses is the one table from a fault's kind to an HTTP status.
var statuses = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Refused:         http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Precondition:    http.StatusPreconditionFailed,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Unsupported:     http.StatusUnsupportedMediaType,
	fault.Limited:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Upstream:        http.StatusBadGateway,
}

// problem is the body of every error (RFC 9457).
type problem struct {
	Type         string          `json:"type" description:"A page about this kind of problem" example:"https://weir.example/docs/errors#invalid_fields"`
	Title        string          `json:"title" example:"Bad Request"`
	Status       int             `json:"status" example:"400"`
	Detail       string          `json:"detail" description:"What is wrong and what to do, in plain words"`
	Code         string          `json:"code" description:"Stable, snake_case" example:"invalid_fields"`
	RequestID    string          `json:"request_id" example:"req_01kb0000000000000000000000"`
	Errors       []fault.Field   `json:"errors,omitempty" description:"Each wrong member: RFC 6901 pointer, stable code, plain words"`
	Violations   []verdict.Limit `json:"violations,omitempty" description:"The limits that refused (decision API)"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty" description:"How long to wait, in milliseconds; of a refusal the exact time until this very call would pass. Absent: no wait is known to help"`
}

// answerError writes err as a problem. Whatever is not a fault is logged with
// its cause and answered without it.
func (s *Server) answerError(c echo.Context, err error) {
	if c.Response().Committed {
		return
	}
	f := s.faultOf(err)
	status := statuses[f.Kind]
	s.logFailure(c, f, status)
	p := problemOf(f, err, requestID(c))
	if f.Kind == fault.Unauthenticated {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
	if f.RetryAfter > 0 {
		verdict.RetryAfter(c.Response().Header(), f.RetryAfter)
	}
	c.Response().Header().Set(echo.HeaderContentType, "application/problem+json")
	c.Response().WriteHeader(status)
	_ = json.NewEncoder(c.Response()).Encode(p)
}

// problemOf is the body for err, whose fault is f.
func problemOf(f *fault.Error, err error, request string) problem {
	status := statuses[f.Kind]
	p := problem{
		Type: "/docs/errors#" + f.Code, Title: http.StatusText(status), Status: status, Detail: f.Message,
		Code: f.Code, RequestID: request, Errors: f.Fields, RetryAfterMS: int64((f.RetryAfter + time.Millisecond - 1) / time.Millisecond),
	}
	var refusal *refused
	if errors.As(err, &refusal) {
		p.Violations = refusal.violations
	}
	return p
}

func (s *Server) faultOf(err error) *fault.Error {
	var h *echo.HTTPError
	if !errors.As(err, &h) {
		return fault.Of(err)
	}
	switch h.Code {
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "not_found", "There is no such address.")
	case http.StatusMethodNotAllowed:
		return fault.New(fault.NotFound, "not_found", "There is no such address for this method.")
	case http.StatusRequestEntityTooLarge:
		return fault.New(fault.TooLarge, "body_too_large", "The body is too large.")
	}
	return fault.Of(err)
}

func (s *Server) logFailure(c echo.Context, f *fault.Error, status int) {
	if status < 500 || errors.Is(f, context.Canceled) {
		return
	}
	level := slog.LevelWarn
	if f.Kind == fault.Internal {
		level = slog.LevelError
	}
	s.log.Log(c.Request().Context(), level, "request failed", "request_id", requestID(c), "code", f.Code, "error", f.Error())
}
