package web

import (
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/fault"
)

// sessionCookie is how a browser keeps a session. With the prefix __Host- it
// takes it over TLS only, and from this very host.
type sessionCookie struct {
	name   string
	secure bool
}

// cookieFor drops the prefix and Secure on plain HTTP to the machine itself,
// where there is no TLS to be had.
func cookieFor(public *url.URL) sessionCookie {
	if public.Scheme == "http" && loopback(public.Hostname()) {
		return sessionCookie{name: "weir_session"}
	}
	return sessionCookie{name: "__Host-weir_session", secure: true}
}

// portalCookieFor is the cookie of the customers' portal, which does not name us.
func portalCookieFor(public *url.URL) sessionCookie {
	if own := cookieFor(public); !own.secure {
		return sessionCookie{name: "portal_session"}
	}
	return sessionCookie{name: "__Host-portal_session", secure: true}
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (s sessionCookie) set(c echo.Context, token string, expires, now time.Time) {
	c.SetCookie(s.with(token, int(expires.Sub(now)/time.Second)))
}

func (s sessionCookie) clear(c echo.Context) { c.SetCookie(s.with("", -1)) }

func (s sessionCookie) with(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: s.name, Value: value, Path: "/", MaxAge: maxAge,
		Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// token is the session's token, "" where there is none.
func (s sessionCookie) token(r *http.Request) string {
	c, err := r.Cookie(s.name)
	if err != nil || !wellFormed(c.Value) {
		return ""
	}
	return c.Value
}

// tokenLength is that of 256 bits in base64url.
const tokenLength = 43

// wellFormed tells whether s can be a token at all, of a session or a link.
func wellFormed(s string) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return len(s) == tokenLength
}

// byItself is the header of what an open page asks without its reader: it keeps
// no session from ending.
const byItself = "Weir-By-Itself"

// signedIn lets h see people with a session only; everybody else is sent to
// sign in. Who it is, and in what role, is read with every request.
func (p *Pages) signedIn(h func(echo.Context, auth.Person) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		token := p.cookie.token(c.Request())
		if token == "" {
			return p.signInFirst(c, false)
		}
		who := p.sessions.Person
		if c.Request().Header.Get(byItself) != "" {
			who = p.sessions.Glance
		}
		person, err := who(c.Request().Context(), token)
		if fault.Is(err, fault.Unauthenticated) {
			p.cookie.clear(c)
			return p.signInFirst(c, true)
		}
		if err != nil {
			return err
		}
		p.surround(c, person.Role)
		return h(c, person)
	}
}
