package web

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

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

// failure is what an error page says: what happened, and what to do.
type failure struct {
	Status    int
	Title     string
	Text      string
	RequestID string
}

// failures shows errors as pages, and leaves those of the APIs to next.
func (p *Pages) failures(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed || ofAPI(c.Request().URL.Path) {
			next(err, c)
			return
		}
		f := failureOf(err)
		f.RequestID = requestID(c)
		p.logFailure(c, f, err)
		protect(c.Response().Header())
		if f.Status == http.StatusServiceUnavailable {
			c.Response().Header().Set("Retry-After", strconv.Itoa(5))
		}
		if err := show(c, f.Status, failureView(f)); err != nil {
			p.log.Error("error page failed", "request_id", f.RequestID, "error", err.Error())
		}
	}
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
	switch status {
	case http.StatusNotFound:
		return failure{status, "There is no page here.", "The address may have lost a part, or what it showed is gone.", ""}
	case http.StatusMethodNotAllowed:
		return failure{status, "This address does not do that.", "It is there to be read, or takes a form from one of our pages only.", ""}
	case http.StatusForbidden:
		return failure{status, "This is not yours to do.", "Nothing was changed.", ""}
	case http.StatusServiceUnavailable:
		return failure{status, "The dashboard cannot answer right now.", "Nothing was changed. Try again in a few seconds.", ""}
	}
	if status >= http.StatusInternalServerError {
		return failure{http.StatusInternalServerError, "Something broke, and it is our fault.", "It was logged under the id above. What you see elsewhere in the dashboard, and calls, do not depend on this page.", ""}
	}
	return failure{status, "This cannot be done.", http.StatusText(status) + ".", ""}
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
