package web

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/internal/fault"
)

// policy lets a page take everything from here and nothing from elsewhere, and
// run nothing that stands in the page itself.
const policy = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// maxForm is the largest form that is read, in bytes.
const maxForm = 16 << 10

// guarded gives every answer its headers, and lets no other site change
// anything here.
func (p *Pages) guarded(h echo.HandlerFunc) echo.HandlerFunc { return p.guardedUpTo(maxForm, h) }

// guardedUpTo is guarded for a form of at most so many bytes.
func (p *Pages) guardedUpTo(most int64, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		protect(c.Response().Header())
		if err := p.fromHere(c.Request()); err != nil {
			return err
		}
		c.Request().URL.RawQuery = readable(c.Request().URL)
		c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, most)
		return h(c)
	}
}

// readable is a query without what is no text to Postgres: NUL, and bytes that
// are not UTF-8.
func readable(u *url.URL) string {
	q, changed := u.Query(), false
	for _, values := range q {
		for i, v := range values {
			values[i] = strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "")
			changed = changed || values[i] != v
		}
	}
	if !changed {
		return u.RawQuery
	}
	return q.Encode()
}

// protect sets what every page carries. A page is kept nowhere unless it says
// otherwise.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// fromHere refuses a change that another site's page asks for. A browser says
// where a request comes from; CrossOriginProtection takes one that says nothing
// for a program, but a program has no session.
func (p *Pages) fromHere(r *http.Request) error {
	if err := p.origins.Check(r); err != nil {
		return crossSite().Because(err)
	}
	if safe(r.Method) || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" {
		return nil
	}
	for _, own := range []sessionCookie{p.cookie, p.guests} {
		if _, err := r.Cookie(own.name); err == nil {
			return crossSite()
		}
	}
	return nil
}

func crossSite() *fault.Error {
	return fault.New(fault.Forbidden, "cross_site", "This was asked for by another site's page, or by something that does not say where it comes from. Nothing was changed. Go to the page itself and try there.")
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// show answers with a page. It is made whole before the first byte goes out,
// so that one that breaks half way becomes an error page.
func show(c echo.Context, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(c.Request().Context(), &b); err != nil {
		return err
	}
	send(c, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
		w.WriteHeader(status)
		_, _ = w.Write(b.Bytes()) // the browser went
	})
	return nil
}
