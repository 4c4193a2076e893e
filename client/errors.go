package client

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The kinds of a Problem, for errors.Is.
var (
	ErrInvalid      = errors.New("weir: the request is not valid")              // 400, 413, 415: Problem.Fields name the members
	ErrUnauthorized = errors.New("weir: the key is not valid")                  // 401
	ErrForbidden    = errors.New("weir: the key may not do this")               // 403
	ErrNotFound     = errors.New("weir: there is no such reservation or thing") // 404
	ErrConflict     = errors.New("weir: the reservation has another outcome")   // 409
	ErrMismatch     = errors.New("weir: the idempotency key is another call's") // 422
	ErrUnavailable  = errors.New("weir: the limiter cannot decide right now")   // 502, 503, 504
)

var kinds = map[int]error{
	http.StatusBadRequest:            ErrInvalid,
	http.StatusRequestEntityTooLarge: ErrInvalid,
	http.StatusUnsupportedMediaType:  ErrInvalid,
	http.StatusUnauthorized:          ErrUnauthorized,
	http.StatusForbidden:             ErrForbidden,
	http.StatusNotFound:              ErrNotFound,
	http.StatusConflict:              ErrConflict,
	http.StatusUnprocessableEntity:   ErrMismatch,
	http.StatusBadGateway:            ErrUnavailable,
	http.StatusServiceUnavailable:    ErrUnavailable,
	http.StatusGatewayTimeout:        ErrUnavailable,
}

// Problem is an answer that is no success (RFC 9457).
type Problem struct {
	Status     int
	Code       string // stable, snake_case; /docs/errors explains each
	Detail     string // plain words
	RequestID  string
	Fields     []Field       // each member that is wrong
	RetryAfter time.Duration // how long to wait before trying again; 0: nothing is stated
}

// Field is one wrong member of a request.
type Field struct {
	Pointer string `json:"pointer"` // RFC 6901, into the body that was sent
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	s := fmt.Sprintf("weir: %d %s: %s", p.Status, p.Code, p.Detail)
	for _, f := range p.Fields {
		s += fmt.Sprintf(" [%s %s]", f.Pointer, f.Code)
	}
	if p.RequestID != "" {
		s += " (" + p.RequestID + ")"
	}
	return s
}

// Is holds the problem against the kinds; a refusal is none of them.
func (p *Problem) Is(kind error) bool { return !refusals[p.Code] && kinds[p.Status] == kind }

// Refusal is the verdict no. Code says which kind of limit decided:
// rate_limit_exceeded, concurrency_limit_exceeded, daily_cap_reached,
// spend_cap_reached, request_too_large, or provider_capacity.
//
// RetryAfter is the exact time until this very call would pass if nobody else
// called. WaitHelps is false where none can: the call is larger than a limit
// will ever hold.
type Refusal struct {
	*Problem
	Violations []Limit // the limits that refused
	WaitHelps  bool
}

// Unwrap is the answer itself.
func (r *Refusal) Unwrap() error { return r.Problem }

// refusals are the codes of verdicts; any other is a failure.
var refusals = map[string]bool{
	"rate_limit_exceeded": true, "concurrency_limit_exceeded": true, "daily_cap_reached": true, "spend_cap_reached": true,
	"request_too_large": true, "provider_capacity": true,
}

// problem is the body of every answer that is no success.
type problem struct {
	Status       int     `json:"status"`
	Code         string  `json:"code"`
	Detail       string  `json:"detail"`
	RequestID    string  `json:"request_id"`
	Errors       []Field `json:"errors"`
	Violations   []Limit `json:"violations"`
	RetryAfterMS int64   `json:"retry_after_ms"`
}

func (p problem) err() error {
	out := &Problem{
		Status: p.Status, Code: p.Code, Detail: p.Detail, RequestID: p.RequestID, Fields: p.Errors,
		RetryAfter: time.Duration(p.RetryAfterMS) * time.Millisecond,
	}
	if !refusals[p.Code] {
		return out
	}
	return &Refusal{Problem: out, Violations: p.Violations, WaitHelps: p.Code != "request_too_large" && out.RetryAfter > 0}
}
