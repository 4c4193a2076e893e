// Package web is the dashboard: pages for people, made on the server, readable
// without JavaScript. A page is one .go file that reads and decides, and one
// .templ file that shows.
//
// A person is known by a session cookie and nothing else; an API key opens no
// page. No GET changes anything, but that a look may be noted: at a quote, and at
// what Reconcile found.
package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/branding"
	"weir/internal/capacity"
	"weir/internal/catalogue"
	"weir/internal/exports"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
	"weir/web/reference"
	"weir/web/static"
)

// Deps is what the pages need.
type Deps struct {
	Log       *slog.Logger
	Sessions  *auth.Sessions
	Tenants   *tenants.Service
	Billing   *billing.Service
	Directory *auth.Directory // what calls find, as they find it
	Tokens    *auth.TokenKeys // of the calls that a page makes by itself
	Limits    Live
	Reports   *usage.Reports
	Pipeline  *usage.Pipeline
	Exports   *exports.Service
	Catalogue *catalogue.Service
	Notify    *notify.Service
	Portal    *portal.Service
	Brands    *branding.Service
	Quotes    *quotes.Service
	Capacity  *capacity.Service
	Accounts  *auth.Accounts
	First     *auth.First    // makes the first tenant of an empty installation; nil: not offered
	Outbox    *notify.Outbox // mail that is shown, not sent: development; nil elsewhere
	SignUp    bool           // people may sign up by themselves
	PublicURL string         // what browsers call this installation
	OpenAPI   []byte         // the document behind /docs
	Gateway   http.Handler   // through which a page makes a call by itself; nil: no page does
	Now       func() time.Time
}

// Live states ledgers as they are now; the engine of this process.
type Live interface {
	Live(ctx context.Context, tenant uuid.UUID, list []limits.Limit, model, endUser string) ([]limits.State, error)
}

// Pages is the surface. Its handlers are safe for concurrent use.
type Pages struct {
	log       *slog.Logger
	sessions  *auth.Sessions
	tenants   *tenants.Service
	billing   *billing.Service
	directory *auth.Directory
	tokens    *auth.TokenKeys
	limits    Live
	reports   *usage.Reports
	pipeline  *usage.Pipeline
	exports   *exports.Service
	catalogue *catalogue.Service
	notify    *notify.Service
	portal    *portal.Service
	brands    *branding.Service
	quotes    *quotes.Service
	capacity  *capacity.Service
	accounts  *auth.Accounts
	first     *auth.First
	outbox    *notify.Outbox
	ownSignUp bool // people may sign up by themselves
	publicURL string
	cookie    sessionCookie // of members
	guests    sessionCookie // of customers' people, in the portal
	origins   *http.CrossOriginProtection
	reference reference.Reference
	gateway   http.Handler
	now       func() time.Time
	mounted   map[string]bool // paths that answer a GET

	watches      *watches
	sessionEvery time.Duration // how often an open page looks at its session
	playWait     time.Duration // for the books, after a call of the playground
}

// New makes the pages. It fails on a public URL or an OpenAPI document that
// cannot be read.
func New(d Deps) (*Pages, error) {
	u, err := url.Parse(d.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("public URL %q: it must be http:// or https:// and a host", d.PublicURL)
	}
	doc, err := reference.Parse(d.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	p := &Pages{
		log: d.Log, sessions: d.Sessions, accounts: d.Accounts, first: d.First, outbox: d.Outbox, ownSignUp: d.SignUp, tenants: d.Tenants, billing: d.Billing, directory: d.Directory, tokens: d.Tokens, limits: d.Limits, reports: d.Reports, pipeline: d.Pipeline, exports: d.Exports, catalogue: d.Catalogue, notify: d.Notify, portal: d.Portal, brands: d.Brands, quotes: d.Quotes, capacity: d.Capacity, publicURL: strings.TrimRight(d.PublicURL, "/"),
		cookie: cookieFor(u), guests: portalCookieFor(u), origins: http.NewCrossOriginProtection(), reference: doc, gateway: d.Gateway, now: d.Now,
		watches: newWatches(d.Reports.Pulse, lookEvery), sessionEvery: sessionEvery, playWait: eventWithin,
	}
	if p.cookie.secure && u.Scheme == "http" {
		p.log.Warn("public url is not https: browsers will not keep a session", "public_url", d.PublicURL)
	}
	return p, nil
}

// Mount puts every page on e, and takes over its errors outside the APIs.
func (p *Pages) Mount(e *echo.Echo) {
	p.mountWork(e)
	p.get(e, "/sign-in", p.signInPage)
	p.get(e, "/sign-in/:token", p.linkPage)
	p.post(e, "/sign-in", p.signIn)
	p.post(e, "/sign-out", p.signOut)
	p.mountAccounts(e)
	p.mountFirst(e)
	p.mountQuotes(e)
	p.mountSetup(e)
	p.mountSettings(e)
	p.mountBrand(e)
	p.mountPortal(e)
	p.get(e, "/docs", p.docsPage)
	for path := range guides {
		p.get(e, path, p.guidePage)
	}
	p.get(e, "/docs/errors", p.errorsPage)
	p.mountTelling(e)
	p.mountReading(e)
	p.get(e, static.Prefix+"*", serveStatic)
	p.mounted = mountedPages(e)
	e.HTTPErrorHandler = p.failures(e.HTTPErrorHandler)
}

func (p *Pages) get(e *echo.Echo, path string, h echo.HandlerFunc) {
	e.Match([]string{http.MethodGet, http.MethodHead}, path, p.guarded(h))
}

func (p *Pages) post(e *echo.Echo, path string, h echo.HandlerFunc) {
	e.POST(path, p.guarded(h))
}

func serveStatic(c echo.Context) error {
	found := false
	send(c, func(w http.ResponseWriter, r *http.Request) { found = static.Serve(w, r) })
	if !found {
		return echo.ErrNotFound
	}
	return nil
}
