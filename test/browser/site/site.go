// Package site knows the pages of the dashboard: those that somebody who is
// signed in reaches by links, and those in front of the door.
package site

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"weir/test/browser/chrome"
)

// Page is one page, by the shape of its path: "/plans/:id".
type Page struct{ Shape, Path string }

// Inside is the shape of every page behind sign-in. A page that is not listed
// fails the test that walks them, so that a new one is placed on purpose.
var Inside = []string{
	"/", "/customers", "/customers/:id", "/customers/:id/cancel", "/customers/:id/change", "/customers/:id/edit", "/customers/:id/end", "/customers/:id/erase", "/customers/:id/overrides/new", "/customers/:id/suspend", "/customers/new", "/exports",
	"/docs", "/docs/catalogue", "/docs/decisions", "/docs/errors", "/docs/gateway", "/docs/limits", "/docs/models", "/docs/plans", "/docs/usage", "/docs/webhooks",
	"/keys", "/keys/:id", "/keys/:id/revoke", "/keys/new", "/keys/new/management", "/limits",
	"/models", "/models/aliases/:id", "/models/aliases/:id/remove", "/models/aliases/new", "/models/way",
	"/playground",
	"/plans", "/plans/:id", "/plans/:id/compare", "/plans/:id/edit", "/plans/:id/move", "/plans/:id/retire", "/plans/new",
	"/providers", "/providers/:id", "/providers/:id/clear", "/providers/:id/edit", "/providers/:id/remove", "/providers/:id/rotate", "/providers/:id/switch", "/providers/new", "/providers/pools/:id", "/providers/pools/:id/remove", "/providers/pools/new",
	"/q/:token", "/quotes", "/quotes/:id", "/quotes/:id/edit", "/quotes/new",
	"/reconcile", "/requests", "/requests/:id", "/search", "/settings", "/setup", "/usage", "/usage/what-if",
	"/alerts", "/alerts/:id", "/alerts/:id/remove", "/webhooks", "/webhooks/:id", "/webhooks/:id/remove", "/webhooks/messages/:id", "/webhooks/new",
}

// Portal is the shape of every page of a customer's portal behind its door.
var Portal = []string{"/portal", "/portal/agreement", "/portal/keys", "/portal/keys/:id/revoke", "/portal/requests", "/portal/requests/:id", "/portal/usage"}

// Outside is every page that somebody sees who is not signed in.
var Outside = []string{"/sign-in", "/sign-up", "/forgot", "/dev/outbox", "/portal/sign-in", "/portal/in/gone", "/sign-in/gone", "/reset/gone", "/confirm/gone", "/docs", "/docs/catalogue", "/docs/decisions", "/docs/errors", "/docs/gateway", "/docs/limits", "/docs/models", "/docs/plans", "/docs/usage", "/docs/webhooks", "/nowhere"}

// Name is a shape as a file name.
func Name(shape string) string {
	if shape == "/" {
		return "home"
	}
	return strings.NewReplacer("/:id", "-one", "/", "-").Replace(strings.TrimPrefix(shape, "/"))
}

var (
	ids   = regexp.MustCompile(`/[a-z]{3}_[0-9a-z]{26}`)
	links = regexp.MustCompile(`^/q/[A-Za-z0-9_-]{43}`)
)

// Shape of a path: ids are taken out, and what is asked for.
func Shape(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	return ids.ReplaceAllString(links.ReplaceAllString(path, "/q/:token"), "/:id")
}

// Walk follows the links from a page and returns one page of each shape, in the
// order of their shapes. Files, and what is not of this installation, are left
// alone.
func Walk(tab *chrome.Tab, from string) []Page {
	found := map[string]string{Shape(from): from}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		tab.Open(queue[0])
		var links []string
		tab.JS(`[...document.querySelectorAll("a[href]")].filter((a) => !a.hasAttribute("download") && a.origin === location.origin).map((a) => a.pathname + a.search)`, &links)
		for _, l := range links {
			u, err := url.Parse(l)
			if err != nil || strings.Contains(u.Path, ".") {
				continue
			}
			if shape := Shape(l); found[shape] == "" {
				found[shape] = l
				queue = append(queue, l)
			}
		}
	}
	out := make([]Page, 0, len(found))
	for shape, path := range found {
		out = append(out, Page{shape, path})
	}
	slices.SortFunc(out, func(a, b Page) int { return strings.Compare(a.Shape, b.Shape) })
	return out
}
