package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// unkept are the fields that come back in no page, whatever happens.
var unkept = []string{"secret", "password", "current"}

// unsent is a form that came when nobody was signed in any more.
type unsent struct {
	Action string
	Page   string // to sign in at
	Fields []typedField
	Secret bool // a field was left out
}

type typedField struct{ Name, Value string }

// signInFirst answers who is not signed in, or not any more. A page leads to
// sign-in and from there back; a part of a page takes its page along. A form is
// not lost: it is shown again to be sent once somebody is signed in, or stays
// where it is when only a part of its page was asked for.
func (p *Pages) signInFirst(c echo.Context, ended bool) error {
	r := c.Request()
	switch {
	case partial(c) && safe(r.Method) && r.Header.Get("HX-Target") != paletteTarget:
		c.Response().Header().Set("HX-Redirect", signInAt(ended, pageOf(r)))
		return c.NoContent(http.StatusUnauthorized)
	case partial(c), r.Header.Get("Accept") == "text/event-stream":
		return c.NoContent(http.StatusUnauthorized)
	case safe(r.Method):
		return c.Redirect(http.StatusSeeOther, signInAt(ended, r.URL.RequestURI()))
	}
	f, err := typed(c)
	if err != nil {
		return err
	}
	return show(c, http.StatusUnauthorized, unsentView(unsentOf(r.URL.RequestURI(), f)))
}

func unsentOf(action string, f form) unsent {
	u := unsent{Action: action, Page: signInAt(true, "/")}
	names := make([]string, 0, len(f.Values))
	for name := range f.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(unkept, name) {
			u.Secret = true
			continue
		}
		for _, v := range f.Values[name] {
			u.Fields = append(u.Fields, typedField{name, v})
		}
	}
	return u
}

// pageOf is the page that a part was asked for from.
func pageOf(r *http.Request) string {
	u, err := url.Parse(r.Header.Get("HX-Current-URL"))
	if err != nil {
		return "/"
	}
	return u.RequestURI()
}

// signInAt is where one signs in to get to a page.
func signInAt(ended bool, to string) string {
	q := ""
	if ended {
		q = "ended"
	}
	if to = localOnly(to); to != "/" {
		q = strings.TrimPrefix(q+"&to="+url.QueryEscape(to), "&")
	}
	return strings.TrimSuffix("/sign-in?"+q, "?")
}

// maxReturn is the longest address that is returned to, in bytes.
const maxReturn = 1000

// localOnly is an address of ours, or "/" for anything that could lead elsewhere.
func localOnly(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || len(to) > maxReturn || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) || strings.HasPrefix(to, "/sign-") {
		return "/"
	}
	return to
}
