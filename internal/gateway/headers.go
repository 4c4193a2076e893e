package gateway

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// exposed are the headers that a browser may read on another origin.
var exposed = strings.Join([]string{
	"x-request-id", "retry-after", "retry-after-ms", "x-should-retry",
	"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
	"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens",
	"ratelimit", "ratelimit-policy", "request-id",
	"anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset",
	"anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset",
	"anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset",
	"anthropic-ratelimit-output-tokens-limit", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset",
}, ", ")

// crossOrigin lets a page of any origin call and read the rate headers. There are
// no cookies here, so no credentials are allowed with it. Other clients have no
// use for a kilobyte of names.
func crossOrigin(r *http.Request, h http.Header) {
	if r.Header.Get(echo.HeaderOrigin) == "" {
		return
	}
	h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	h.Set(echo.HeaderAccessControlExposeHeaders, exposed)
}

func preflight(c echo.Context) error {
	h := c.Response().Header()
	crossOrigin(c.Request(), h)
	h.Set(echo.HeaderAccessControlAllowMethods, "GET, POST")
	h.Set(echo.HeaderAccessControlAllowHeaders, "*, Authorization")
	h.Set(echo.HeaderAccessControlMaxAge, "86400")
	return c.NoContent(http.StatusNoContent)
}

// upstreamHeaders is everything that a provider sees of a call: nothing of the
// client's own headers, which may name its organisation or its software.
func upstreamHeaders(stream bool) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"weir"}}
	if stream {
		h.Set("Accept", "text/event-stream")
	}
	return h
}
