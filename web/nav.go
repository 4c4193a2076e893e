package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// entry is a link of the rail.
type entry struct {
	Path, Icon, Words string
	Short             string // for a narrow place; "" Words
	Needs             right  // "" for everybody
	Apart             bool   // not along the top of a tablet: there it is behind the menu
	Current           bool
}

func (e entry) Brief() string { return cmp.Or(e.Short, e.Words) }

type navGroup struct {
	Title   string
	Entries []entry
}

const apiReference = "Reference"

// navigation is every page that the rail leads to. An entry shows where its
// route is mounted and the person's role has the right.
var navigation = []navGroup{
	{"", []entry{{Path: "/", Icon: "home", Words: "Home"}}},
	{"Sell", []entry{
		{Path: "/plans", Icon: "plans", Words: "Plans"},
		{Path: "/quotes", Icon: "quotes", Words: "Quotes", Needs: changePlans, Apart: true},
		{Path: "/customers", Icon: "customers", Words: "Customers", Needs: seeCustomers},
	}},
	{"Run", []entry{
		{Path: "/limits", Icon: "limits", Words: "Limits"},
		{Path: "/usage", Icon: "usage", Words: "Usage"},
		{Path: "/requests", Icon: "requests", Words: "Requests"},
		{Path: "/exports", Icon: "down", Words: "Exports", Apart: true},
		{Path: "/keys", Icon: "keys", Words: "API keys", Short: "Keys", Needs: seeCustomerKeys},
		{Path: "/playground", Icon: "try", Words: "Playground", Needs: seeCustomerKeys, Apart: true},
	}},
	{"Supply", []entry{
		{Path: "/providers", Icon: "providers", Words: "Provider keys", Short: "Providers", Needs: seeProviderKeys},
		{Path: "/models", Icon: "models", Words: "Models & aliases", Short: "Models", Needs: seeModels, Apart: true},
	}},
	{"Workspace", []entry{
		{Path: "/alerts", Icon: "alerts", Words: "Alerts", Needs: seeAlerts, Apart: true},
		{Path: "/webhooks", Icon: "webhooks", Words: "Webhooks", Needs: seeWebhooks, Apart: true},
		{Path: "/reconcile", Icon: "reconcile", Words: "Reconcile", Apart: true},
		{Path: "/settings", Icon: "settings", Words: "Settings"},
	}},
	{apiReference, []entry{
		{Path: "/docs", Icon: "docs", Words: "API"},
		{Path: "/docs/gateway", Icon: "providers", Words: "The gateway"},
		{Path: "/docs/decisions", Icon: "limits", Words: "The decision API"},
		{Path: "/docs/limits", Icon: "limits", Words: "How limits count"},
		{Path: "/docs/plans", Icon: "plans", Words: "Plans and subscriptions"},
		{Path: "/docs/usage", Icon: "usage", Words: "Usage"},
		{Path: "/docs/models", Icon: "models", Words: "Aliases and pools"},
		{Path: "/docs/catalogue", Icon: "providers", Words: "The catalogue"},
		{Path: "/docs/webhooks", Icon: "webhooks", Words: "Webhooks and alerts"},
		{Path: "/docs/errors", Icon: "errors", Words: "Error codes"},
	}},
}

// tabs are the pages that a phone keeps at hand, the first four that there are;
// the rest is behind "More".
var tabs = []string{"/", "/usage", "/customers", "/requests", "/plans"}

const mostTabs = 4

// around is what stands around a page and depends on the request alone: the
// rail's links, what was done just now, and the frame for an error page.
type around struct {
	Nav   []navGroup
	Done  string
	Frame *frame // nil before it is known
}

// Words are the links of the bar that a tablet has along the top.
func (a around) Words() (out []entry) {
	for _, g := range a.Nav {
		for _, e := range g.Entries {
			if g.Title != apiReference && !e.Apart {
				out = append(out, e)
			}
		}
	}
	return out
}

// Tabs are the links of the bar that a phone has along the bottom.
func (a around) Tabs() (out []entry) {
	for _, path := range tabs {
		for _, e := range a.Words() {
			if e.Path == path && len(out) < mostTabs {
				out = append(out, e)
			}
		}
	}
	return out
}

// Elsewhere tells that the page is on no tab.
func (a around) Elsewhere() bool {
	return !slices.ContainsFunc(a.Tabs(), func(e entry) bool { return e.Current })
}

type aroundKey struct{}

func aroundOf(ctx context.Context) around {
	a, _ := ctx.Value(aroundKey{}).(around)
	return a
}

// surround puts the rail for a role into the request's context.
func (p *Pages) surround(c echo.Context, role string) {
	r := c.Request()
	setAround(c, around{Nav: p.nav(role, r.URL.Path), Done: dones[c.QueryParam("done")]})
}

func setAround(c echo.Context, a around) {
	r := c.Request()
	c.SetRequest(r.WithContext(context.WithValue(r.Context(), aroundKey{}, a)))
}

func (p *Pages) nav(role, path string) (out []navGroup) {
	for _, g := range navigation {
		shown := navGroup{Title: g.Title}
		for _, e := range g.Entries {
			if p.mounted[e.Path] && (e.Needs == "" || may(role, e.Needs)) {
				e.Current = e.Path == path || e.Path != "/" && strings.HasPrefix(path, e.Path+"/")
				shown.Entries = append(shown.Entries, e)
			}
		}
		if len(shown.Entries) > 0 {
			out = append(out, shown)
		}
	}
	return out
}

// mountedPages are the paths that answer a GET.
func mountedPages(e *echo.Echo) map[string]bool {
	out := map[string]bool{}
	for _, r := range e.Routes() {
		if r.Method == http.MethodGet {
			out[r.Path] = true
		}
	}
	return out
}
