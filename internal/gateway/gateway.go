// Package gateway is the surface that official SDKs talk to: a customer changes
// base URL and key, and everything else stays.
//
// One call: the principal from the key, a strict parse, the provider keys that
// serve the model, an estimate, one reservation over every limit, the call
// upstream (to one key after the other, as long as nothing has reached the
// client), the answer copied as it comes, the actual figures settled and written
// down before the last byte goes out. Whatever happens in between, the
// reservation ends exactly once.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"weir/internal/auth"
	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// Deps is what the surface needs.
type Deps struct {
	Log       *slog.Logger
	Directory *auth.Directory
	Tenants   *tenants.Service // takes what calls show of provider keys
	Used      *auth.LastUsed
	Client    *catalogue.Client
	Meter     *usage.Meter
	Spool     Checkpointer
	Limits    Live
	Estimates *usage.Estimates
	Timeouts  Timeouts
	Halt      context.Context // its end cuts the calls that still run
	Now       func() time.Time
}

// Checkpointer writes down what a running stream has used so far.
type Checkpointer interface {
	Checkpoint(tenant, call uuid.UUID, t limits.Tokens) error
}

// Live reads what limits hold now.
type Live interface {
	Live(ctx context.Context, tenant uuid.UUID, list []limits.Limit, model, endUser string) ([]limits.State, error)
}

// Timeouts bound an exchange with a provider.
type Timeouts struct {
	FirstByte time.Duration // until the provider's headers
	Idle      time.Duration // between two pieces of a body
	Total     time.Duration // of the whole exchange
	Drain     time.Duration // how long a call goes on for its exact usage after its client left
	Write     time.Duration // until a client takes what is written
	Again     time.Duration // since its admission, in which a call may be tried again
	Look      time.Duration // after which a call that runs looks whether it still may
}

// DefaultTimeouts are what production uses.
var DefaultTimeouts = Timeouts{FirstByte: 120 * time.Second, Idle: 60 * time.Second, Total: 10 * time.Minute, Drain: 5 * time.Second, Write: 30 * time.Second, Again: 30 * time.Second, Look: 10 * time.Second}

// from are the ceilings of an attempt at a call that began a while ago: they end
// together.
func (t Timeouts) from(began, now time.Time) Timeouts {
	t.Total = max(t.Total-now.Sub(began), time.Millisecond)
	return t
}

// Server is the surface. Its handlers are safe for concurrent use.
type Server struct {
	Deps
	health   *health
	headroom *headroom
	outliers *outliers
	budgets  *budgets
	waiting  *waiting
}

// New makes the surface.
func New(d Deps) *Server {
	return &Server{d, newHealth(), newHeadroom(), newOutliers(), newBudgets(), newWaiting()}
}

// Mount puts the routes on e.
func (s *Server) Mount(e *echo.Echo) {
	for _, f := range forms {
		e.POST("/v1"+f.path, s.wrap(f, s.serve(f)))
	}
	e.GET("/v1/models", s.wrap(nil, s.listModels))
	e.GET("/v1/models/*", s.wrap(nil, s.getModel))
	e.RouteNotFound("/v1/*", s.wrap(nil, func(*caller) error {
		return fault.New(fault.NotFound, "unknown_url", "There is no such address here. The documentation lists the gateway's routes.")
	}))
	e.OPTIONS("/v1/*", preflight)
}

// caller is one call with who makes it, as far as that is known yet.
type caller struct {
	echo     echo.Context
	ctx      context.Context
	who      auth.Caller
	contract billing.Contract
	states   []limits.State // to show in the headers; nil: not known yet
	model    string
	claude   bool   // answers and errors have Anthropic's form
	request  string // its id: the headers that have it are the handler's alone
}

// wrap finds the caller, runs h, and gives errors the form of the route.
func (s *Server) wrap(f *form, h func(*caller) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		k := &caller{echo: c, ctx: c.Request().Context(), request: c.Response().Header().Get(echo.HeaderXRequestID)}
		k.claude = f.anthropic() || f == nil && c.Request().Header.Get("Anthropic-Version") != ""
		crossOrigin(c.Request(), c.Response().Header())
		c.Response().Header().Set("Cache-Control", "no-store")
		err := s.identify(k)
		if err == nil {
			err = h(k)
		}
		if err != nil {
			s.answerError(k, err)
		}
		return nil
	}
}

// identify finds the key's holder and the contract of its customer.
func (s *Server) identify(k *caller) error {
	secret, err := credential(k.echo.Request())
	if err != nil {
		return err
	}
	if k.who, err = s.Directory.Caller(k.ctx, secret, k.echo.RealIP()); err != nil {
		return err
	}
	if k.who.Key.Kind != tenants.ForCustomer {
		return fault.New(fault.Forbidden, "wrong_scope", "This is a management key; the gateway needs a customer's key.")
	}
	s.Used.Note(k.who)
	if k.contract, err = s.Directory.Contract(k.ctx, k.who.Tenant.ID, k.who.Key.Customer); err != nil {
		return err
	}
	return k.contract.RequireActive()
}

// limits is every limit of the caller's own, placed; a test key's have ledgers
// of their own.
func (k *caller) limits() []limits.Limit {
	plan := append(append([]limits.Limit{}, k.contract.Limits...), k.who.Key.Limits...)
	if k.who.Key.Test {
		return limits.TestPlan(plan)
	}
	return plan
}

func (k *caller) requestID() string { return k.request }

func (k *caller) requestUUID() uuid.UUID {
	u, _ := id.Request.Parse(k.requestID())
	return u
}

// query are the parameters in a URL; most have none.
func query(r *http.Request) url.Values {
	if r.URL.RawQuery == "" {
		return nil
	}
	return r.URL.Query()
}

// credentialNames are query parameters in which people send keys elsewhere.
var credentialNames = []string{"key", "api_key", "apikey", "api-key", "x-api-key", "access_token", "token"}

// credential is the key of a call: a bearer token, or x-api-key as Anthropic's
// SDKs send it. A key in the URL is refused without being read.
func credential(r *http.Request) (string, error) {
	for name, values := range query(r) {
		if slices.Contains(credentialNames, strings.ToLower(name)) || slices.ContainsFunc(values, tenants.LooksLikeKey) {
			return "", fault.New(fault.Invalid, "credential_in_url", "A credential in the URL ends up in logs. Send it as a header, and replace this one.")
		}
	}
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return strings.TrimSpace(key), nil
	}
	scheme, secret, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(secret) == "" {
		return "", fault.New(fault.Unauthenticated, "invalid_api_key", "No API key was sent. Send it as \"Authorization: Bearer weir_live_…\".")
	}
	return strings.TrimSpace(secret), nil
}
