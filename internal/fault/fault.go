// Package fault is Weir's one vocabulary of errors.
//
// A domain method returns an *Error when the caller can do something about it;
// anything else is a defect or an outage, and the surfaces answer it as such.
// Kinds are few; each surface maps them to its own statuses and shapes. The
// message is safe to show: it never holds SQL, addresses or secrets, which
// belong in the wrapped cause.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the class of an error, by what the caller should do next.
type Kind int

// The kinds.
const (
	Internal        Kind = iota // a defect or something nobody foresaw
	Invalid                     // malformed: correct the named fields
	Refused                     // well-formed, but a rule does not allow the value
	Unauthenticated             // no or a wrong credential
	Forbidden                   // known, but not allowed
	NotFound                    // does not exist, or is not the caller's to know of
	Conflict                    // the present state does not allow it
	Precondition                // changed since it was read
	TooLarge                    // larger than can ever be accepted
	Unsupported                 // a media type or encoding that is not read
	Limited                     // one of Weir's own rate limits
	Unavailable                 // something Weir needs is out; try again
	Upstream                    // the provider or another far end failed
)

// Field is one wrong member of a request.
type Field struct {
	Pointer string `json:"pointer"` // RFC 6901, "" for the whole body
	Code    string `json:"code"`    // stable, snake_case
	Message string `json:"message"` // plain words: what is wrong, what to do
}

// Error is an error that a caller can act on.
type Error struct {
	Kind       Kind
	Code       string // stable, snake_case
	Message    string
	Fields     []Field
	RetryAfter time.Duration // 0: no statement
	cause      error
}

// New makes an error of a kind.
func New(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Newf is New with a formatted message.
func Newf(kind Kind, code, format string, args ...any) *Error {
	return New(kind, code, fmt.Sprintf(format, args...))
}

// InvalidFields is the error of a body whose named fields are wrong.
func InvalidFields(fields ...Field) *Error {
	e := New(Invalid, "invalid_fields", "Some fields are not valid.")
	if len(fields) == 1 {
		e.Message = fields[0].Message
	}
	return e.With(fields...)
}

// With adds fields and returns e.
func (e *Error) With(fields ...Field) *Error {
	e.Fields = append(e.Fields, fields...)
	return e
}

// Because wraps the cause, which is logged and never shown, and returns e.
func (e *Error) Because(err error) *Error {
	e.cause = err
	return e
}

// After states when to try again, and returns e.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

func (e *Error) Error() string {
	s := e.Code + ": " + e.Message
	for _, f := range e.Fields {
		s += " [" + f.Pointer + " " + f.Code + "]"
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.cause }

// Of is the fault in err's chain. An error without one becomes Internal, with
// err as its cause. Of(nil) is nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(Internal, "internal_error", "Something went wrong on our side. It was logged under this request id.").Because(err)
}

// Is tells whether err is a fault of this kind.
func Is(err error, kind Kind) bool {
	return err != nil && Of(err).Kind == kind
}
