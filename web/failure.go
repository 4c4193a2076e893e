package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/internal/branding"
	"weir/internal/fault"
)

// statuses is the one table from a fault's kind to an HTTP status. What is not
// in it is ours.
var statuses = map[fault.Kind]int{
	fault.Invalid:         http.StatusBadRequest,
	fault.Refused:         http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Precondition:    http.StatusPreconditionFailed,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Limited:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Upstream:        http.StatusBadGateway,
}

// failure is what an error page says: what happened, what was kept, and what to
// do.
type failure struct {
	Status    int
	Title     string
	Text      string
	RequestID string
	Again     string // an address worth another try; "" none
}

// failures shows errors as pages, and leaves those of the APIs to next.
func (p *Pages) failures(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed || ofAPI(c.Request().URL.Path) {
			next(err, c)
			return
		}
		if errors.Is(c.Request().Context().Err(), context.Canceled) {
			return // whoever asked has left: a newer preview, another page
		}
		f := failureOf(err)
		f.RequestID = requestID(c)
		if f.Status >= http.StatusInternalServerError && safe(c.Request().Method) {
			f.Again = c.Request().URL.RequestURI()
		}
		p.logFailure(c, f, err)
		protect(c.Response().Header())
		if f.Status == http.StatusServiceUnavailable {
			c.Response().Header().Set("Retry-After", strconv.Itoa(5))
		}
		if err := show(c, f.Status, p.failureFor(c, f)); err != nil {
			p.log.Error("error page failed", "request_id", f.RequestID, "error", err.Error())
		}
	}
}

// frameWithin is how long an error page waits for what stands around it.
const frameWithin = 2 * time.Second

// failureFor is the part of a page that failed, or a page: in the frame for who
// is signed in, alone for everybody else.
func (p *Pages) failureFor(c echo.Context, f failure) templ.Component {
	if partial(c) {
		return failedPart(f, c.Request().Header.Get("HX-Target"), c.Request().URL.RequestURI())
	}
	if ofPortal(c.Request().URL.Path) {
		b, _ := c.Request().Context().Value(visitKey{}).(branding.Brand)
		return portalFailureView(f, b)
	}
	if aroundOf(c.Request().Context()).Frame == nil {
		p.findFrame(c)
	}
	if at := aroundOf(c.Request().Context()).Frame; at != nil {
		return framedFailure(f, *at)
	}
	return failureView(f)
}

// findFrame looks who is there. Where that fails too, the page stands alone.
func (p *Pages) findFrame(c echo.Context) {
	token := p.cookie.token(c.Request())
	if token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), frameWithin)
	defer cancel()
	who, err := p.sessions.Person(ctx, token)
	if err != nil {
		return
	}
	w, err := p.workspace(c, who)
	if err != nil {
		return
	}
	setAround(c, around{Nav: p.nav(who.Role, c.Request().URL.Path), Frame: &w.Frame})
}

func ofAPI(path string) bool {
	return path == "/openapi.json" || path == "/api" || path == "/v1" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/")
}

func failureOf(err error) failure {
	var h *echo.HTTPError
	if errors.As(err, &h) {
		return failureOfStatus(h.Code)
	}
	f := fault.Of(err)
	status, ours := statuses[f.Kind], false
	if status == 0 {
		status, ours = http.StatusInternalServerError, true
	}
	said := failureOfStatus(status)
	if !ours && f.Message != "" {
		said.Text = f.Message
	}
	return said
}

func failureOfStatus(status int) failure {
	f := failure{Status: status}
	switch {
	case status == http.StatusNotFound:
		f.Title, f.Text = "There is no page here.", "The address may have lost a part. What it showed may be gone, or belong to another organisation; which of these is not told."
	case status == http.StatusMethodNotAllowed:
		f.Title, f.Text = "This address does not do that.", "It is there to be read, or takes a form from one of our pages only. Nothing was changed."
	case status == http.StatusForbidden:
		f.Title, f.Text = "This is not yours to do.", "Nothing was changed."
	case status == http.StatusServiceUnavailable:
		f.Title, f.Text = "The dashboard cannot answer right now.", "Nothing was changed. Calls through the gateway do not depend on it. Try again in a few seconds."
	case status >= http.StatusInternalServerError:
		f.Status = http.StatusInternalServerError
		f.Title, f.Text = "Something broke, and it is our fault.", "It was logged under its id. A change that you sent was either made whole or not at all: look before you send it again. Calls through the gateway do not depend on this page."
	default:
		f.Title, f.Text = "This cannot be done.", http.StatusText(status)+". Nothing was changed."
	}
	return f
}

func (p *Pages) logFailure(c echo.Context, f failure, err error) {
	if f.Status < http.StatusInternalServerError {
		return
	}
	level := slog.LevelError
	if f.Status == http.StatusServiceUnavailable {
		level = slog.LevelWarn
	}
	p.log.Log(c.Request().Context(), level, "page failed", "request_id", f.RequestID, "route", c.Path(), "error", err.Error())
}

// requestID is the id that the router gave the request.
func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }
