// Package httpapi is the REST surface: the management API under /api/v1 and the
// decision API under /v1/reservations. A handler binds, calls one service, and
// answers; who may call what stands beside each path.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
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
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/notify"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// Deps is what the surface needs.
type Deps struct {
	Log       *slog.Logger
	Directory *auth.Directory
	Used      *auth.LastUsed
	Tenants   *tenants.Service
	Billing   *billing.Service
	Meter     *usage.Meter
	Limits    Live
	Reports   *usage.Reports
	Exports   *exports.Service
	Importer  *usage.Importer
	Catalogue *catalogue.Service
	Notify    *notify.Service
	Portal    *portal.Service
	Brands    *branding.Service
	Quotes    *quotes.Service
	Capacity  *capacity.Service
	Tokens    *auth.TokenKeys
	CursorKey []byte
	Now       func() time.Time
	Halt      context.Context // its end ends the waits of calls; nil: nothing does
}

// Live reads what limits hold now.
type Live interface {
	Live(ctx context.Context, tenant uuid.UUID, list []limits.Limit, model, endUser string) ([]limits.State, error)
}

// Server is the surface. Its handlers are safe for concurrent use.
type Server struct {
	log       *slog.Logger
	directory *auth.Directory
	used      *auth.LastUsed
	tenants   *tenants.Service
	billing   *billing.Service
	meter     *usage.Meter
	limits    Live
	reports   *usage.Reports
	exports   *exports.Service
	importer  *usage.Importer
	catalogue *catalogue.Service
	notify    *notify.Service
	portal    *portal.Service
	brands    *branding.Service
	quotes    *quotes.Service
	capacity  *capacity.Service
	tokens    *auth.TokenKeys
	cursors   cursors
	now       func() time.Time
	halt      context.Context
	openapi   []byte
}

// New makes the surface.
func New(d Deps) (*Server, error) {
	s := &Server{
		log: d.Log, directory: d.Directory, used: d.Used, tenants: d.Tenants, billing: d.Billing, meter: d.Meter,
		limits: d.Limits, reports: d.Reports, exports: d.Exports, importer: d.Importer, catalogue: d.Catalogue, notify: d.Notify, portal: d.Portal, brands: d.Brands, quotes: d.Quotes, capacity: d.Capacity, tokens: d.Tokens, cursors: cursors{d.CursorKey}, now: d.Now, halt: d.Halt,
	}
	if s.halt == nil {
		s.halt = context.Background()
	}
	var err error
	s.openapi, err = described()
	return s, err
}

// Mount puts every route on e.
func (s *Server) Mount(e *echo.Echo) {
	for _, p := range endpoints() {
		e.Add(p.method, verbs.Replace(p.path), s.wrap(p.handle))
	}
	e.GET("/.well-known/jwks.json", s.jwks)
	e.GET("/openapi.json", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, s.openapi) })
	e.RouteNotFound("/api/*", s.wrap(func(*Server, echo.Context) error { return echo.ErrNotFound }))
}

// verbs keeps the router from taking the verb of a batch for a parameter.
var verbs = strings.NewReplacer(":batch", `\:batch`)

// OpenAPI is the OpenAPI 3.1 document of the surface.
func (s *Server) OpenAPI() []byte { return s.openapi }

// wrap gives each answer its request id and errors their form.
func (s *Server) wrap(h func(*Server, echo.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set("Cache-Control", "no-store")
		if err := h(s, c); err != nil {
			s.answerError(c, err)
		}
		return nil
	}
}

// requestUUID is the id of the request, which boot gave it.
func requestUUID(c echo.Context) uuid.UUID {
	u, _ := id.Request.Parse(requestID(c))
	return u
}

func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// endpoints is every route of the surface on one screen.
func endpoints() []endpoint {
	return []endpoint{
		on("GET", "/api/v1/me", "", "Who this key is", 200, me),

		on("GET", "/api/v1/tenant", "tenant:read", "Read the tenant", 200, getTenant),
		on("PATCH", "/api/v1/tenant", "tenant:write", "Change the tenant's name or time zone; a zone counts when the running day ends", 200, changeTenant).with(`{"zone": "Europe/Berlin"}`),

		on("GET", "/api/v1/branding", "tenant:read", "Read how the tenant looks to its customers", 200, getBranding),
		on("PATCH", "/api/v1/branding", "tenant:write", "Change how the tenant looks to its customers: on the portal, on quotes and in mail", 200, changeBranding).with(`{"display_name": "Acme AI", "hue": "plum", "support_email": "help@example.com"}`),
		on("POST", "/api/v1/branding/logo", "tenant:write", "Set the tenant's logo from a PNG or JPEG; it is drawn again", 200, setLogo).with(exampleLogo),
		on("DELETE", "/api/v1/branding/logo", "tenant:write", "Remove the tenant's logo", 204, removeLogo),

		on("POST", "/api/v1/provider-keys", "provider-keys:write", "Add a provider key; it is checked live", 201, addProviderKey).with(`{"provider": "practice", "name": "Practice"}`),
		on("GET", "/api/v1/provider-keys", "provider-keys:read", "List provider keys", 200, listProviderKeys),
		on("GET", "/api/v1/provider-keys/offers", "provider-keys:read", "List the limits that a provider publishes for each of its tiers, as a key may be given them", 200, listOffers),
		on("GET", "/api/v1/provider-keys/:id", "provider-keys:read", "Read a provider key", 200, getProviderKey),
		on("PATCH", "/api/v1/provider-keys/:id", "provider-keys:write", "Change a provider key: name, limits, pool, tier, zone, address, secret; switch it off and on", 200, changeProviderKey).with(`{"name": "Main", "limits": [{"dimension": "tokens", "window": "minute", "amount": 800000, "each_model": true}]}`),
		on("POST", "/api/v1/provider-keys/:id/rotate", "provider-keys:write", "Give a provider key another secret: checked live, sealed, the ledgers stay", 200, rotateProviderKey).with(`{"secret": "sk-another-one"}`),
		on("POST", "/api/v1/provider-keys/:id/verify", "provider-keys:write", "Check a provider key live, now", 200, verifyProviderKey),
		on("GET", "/api/v1/provider-keys/:id/cooldowns", "provider-keys:read", "List what rests of a provider key, by model, with reason, source and end", 200, listCooldowns),
		on("POST", "/api/v1/provider-keys/:id/cooldowns/clear", "provider-keys:write", "End cooldowns of a provider key before their time; calls go out within a second", 200, clearCooldowns).with(`{"model": "practice-small"}`),
		on("POST", "/api/v1/cooldowns/clear", "provider-keys:write", "End every cooldown of every provider key", 200, clearAllCooldowns),
		on("POST", "/api/v1/provider-keys/:id/learned/forget", "provider-keys:write", "Forget limits that were learned; what the provider still states is learned again", 200, forgetLearned).with(`{"model": "practice-small"}`),
		on("DELETE", "/api/v1/provider-keys/:id", "provider-keys:write", "Remove a provider key and forget its secret", 204, removeProviderKey),

		on("POST", "/api/v1/pools", "pools:write", "Pool provider keys that share one account's quota", 201, addPool).with(`{"name": "Organisation", "provider": "practice", "limits": [{"dimension": "tokens", "window": "minute", "amount": 800000, "each_model": true}]}`),
		on("GET", "/api/v1/pools", "pools:read", "List pools", 200, listPools),
		on("GET", "/api/v1/pools/:id", "pools:read", "Read a pool", 200, getPool),
		on("PATCH", "/api/v1/pools/:id", "pools:write", "Change a pool's name, limits, zone and keys", 200, changePool).with(`{"name": "Organisation, Europe"}`),
		on("DELETE", "/api/v1/pools/:id", "pools:write", "Take a pool apart; its keys go on by themselves", 204, removePool),

		on("POST", "/api/v1/model-aliases", "model-aliases:write", "Name a model of your own", 201, addAlias).with(exampleAlias),
		on("GET", "/api/v1/model-aliases", "model-aliases:read", "List aliases by name", 200, listAliases),
		on("GET", "/api/v1/model-aliases/:id", "model-aliases:read", "Read an alias", 200, getAlias),
		on("PATCH", "/api/v1/model-aliases/:id", "model-aliases:write", "Change an alias, everywhere within a second", 200, changeAlias).with(`{"description": "What the chat of our app uses", "sticky": true}`),
		on("DELETE", "/api/v1/model-aliases/:id", "model-aliases:write", "Forget an alias; its name is the provider's again, or no model", 204, removeAlias),
		on("GET", "/api/v1/models", "models:read", "List what calls may ask for, by name: who serves it, and whether it can now", 200, listModels),

		on("GET", "/api/v1/catalogue/models", "catalogue:read", "Export the models of the catalogue as CSV", 200, exportSheet(catalogue.KindModels)),
		on("POST", "/api/v1/catalogue/models", "catalogue:write", "Import models from CSV: all rows or none; a dry run says what would change", 200, importSheet(catalogue.KindModels)).with(`{"csv": "provider,model,context,max_output,default_output,input,tools,valid_from,source\ncustom,llama-local,131072,8192,,text,true,2026-11-01,our own server\n", "dry_run": true}`),
		on("GET", "/api/v1/catalogue/limits", "catalogue:read", "Export the published limits of the catalogue as CSV", 200, exportSheet(catalogue.KindLimits)),
		on("POST", "/api/v1/catalogue/limits", "catalogue:write", "Import published limits from CSV: all rows or none; a dry run says what would change", 200, importSheet(catalogue.KindLimits)).with(`{"csv": "provider,model,tier,dimension,window,amount,cached_input,valid_from,valid_to,source\ncustom,*,house,requests,minute,600,counted,2026-11-01,,our own server\n", "dry_run": true}`),
		on("GET", "/api/v1/catalogue/prices", "catalogue:read", "Export the provider prices of the catalogue as CSV", 200, exportSheet(catalogue.KindPrices)),
		on("POST", "/api/v1/catalogue/prices", "catalogue:write", "Import provider prices from CSV: all rows or none; a dry run says what would change", 200, importSheet(catalogue.KindPrices)).with(`{"csv": "provider,model,class,above,micros_per_million,currency,valid_from,source\ncustom,llama-local,output,0,150000,EUR,2026-11-01,our own server\n", "dry_run": true}`),

		on("POST", "/api/v1/plans", "plans:write", "Make a plan with a first draft version", 201, addPlan).with(examplePlan),
		on("GET", "/api/v1/plans", "plans:read", "List plans", 200, listPlans),
		on("GET", "/api/v1/plans/:id", "plans:read", "Read a plan", 200, getPlan),
		on("POST", "/api/v1/plans/:id/versions", "plans:write", "Make the next version of a plan, a draft", 201, addPlanVersion).with(exampleVersion),
		on("POST", "/api/v1/plans/:id/publish", "plans:write", "Publish the newest draft", 200, publishPlan),
		on("GET", "/api/v1/plans/:id/versions", "plans:read", "List the versions of a plan with how many are on each", 200, listPlanVersions),
		on("GET", "/api/v1/plans/:id/compare", "plans:read", "Put two versions of a plan side by side", 200, compareVersions),
		on("POST", "/api/v1/plans/:id/retire", "plans:write", "Take a plan out of the offer; whoever is on it stays", 200, retirePlan),
		on("POST", "/api/v1/plans/:id/preview-move", "subscriptions:write", "Say what putting everybody on the published version would do", 200, previewMove).with(`{"at": "now"}`),
		on("POST", "/api/v1/plans/:id/move", "subscriptions:write", "Move everybody of a preview, all or none, once however often it is asked", 200, moveMany).with(`{"preview_token": "{preview}"}`),

		on("POST", "/api/v1/plans/capacity", "plans:read", "Compare what is sold, and would be, with what the provider keys carry", 200, checkCapacity).with(`{"limits": [{"dimension": "tokens", "window": "minute", "amount": 200000}]}`),

		on("POST", "/api/v1/quotes", "quotes:write", "Make a quote, a draft", 201, addQuote).with(exampleQuote),
		on("GET", "/api/v1/quotes", "quotes:read", "List quotes, newest first", 200, listQuotes),
		on("GET", "/api/v1/quotes/:id", "quotes:read", "Read a quote", 200, getQuote),
		on("PATCH", "/api/v1/quotes/:id", "quotes:write", "Change a quote's draft; of one that was sent this makes the next version, and the one that is out counts until that is sent", 200, changeQuote).with(`{"note": "As we said on the phone."}`),
		on("POST", "/api/v1/quotes/:id/send", "quotes:write", "Send a quote: freeze it, and mail its link", 200, sendQuote).with(`{}`),
		on("POST", "/api/v1/quotes/:id/resend", "quotes:write", "Mail the link of an open quote once more", 200, resendQuote),
		on("POST", "/api/v1/quotes/:id/withdraw", "quotes:write", "Take a quote back", 200, withdrawQuote),
		on("POST", "/api/v1/quotes/:id/discard-draft", "quotes:write", "Throw the draft of the next version away; what was sent stays", 200, discardQuoteDraft),

		on("POST", "/api/v1/customers", "customers:write", "Add a customer", 201, addCustomer).with(`{"name": "Ada's Apps", "email": "ada@example.com", "external_id": "ada-1"}`),
		on("GET", "/api/v1/customers", "customers:read", "List customers", 200, listCustomers),
		on("GET", "/api/v1/customers/:id", "customers:read", "Read a customer", 200, getCustomer),
		on("PATCH", "/api/v1/customers/:id", "customers:write", "Change how a customer is called and reached", 200, changeCustomer).with(`{"name": "Ada's Apps GmbH", "email": null}`),
		on("POST", "/api/v1/customers/:id/suspend", "customers:write", "Refuse every call of a customer from now on", 200, suspendCustomer),
		on("POST", "/api/v1/customers/:id/erase", "customers:write", "Take everything personal out of a customer and its calls, and suspend it; figures stay; it cannot be taken back", 200, eraseCustomer),
		on("POST", "/api/v1/customers/:id/resume", "customers:write", "Let a suspended customer call again", 200, resumeCustomer),
		on("POST", "/api/v1/customers/:id/portal-link", "customers:write", "Mail a customer the link into its portal, or make one to hand over", 200, portalLink).with(`{"send": false}`),
		on("POST", "/api/v1/customers/:id/end-portal-sessions", "customers:write", "Sign a customer's people out of its portal, and end the links that wait", 200, endPortalSessions),

		on("POST", "/api/v1/subscriptions", "subscriptions:write", "Put a customer on a plan", 201, subscribe).with(`{"customer": "{customer}", "plan": "{plan}"}`),
		on("GET", "/api/v1/subscriptions", "subscriptions:read", "List subscriptions", 200, listSubscriptions),
		on("GET", "/api/v1/subscriptions/:id", "subscriptions:read", "Read a subscription", 200, getSubscription),
		on("GET", "/api/v1/subscriptions/:id/periods", "subscriptions:read", "List the periods of a subscription, newest first", 200, listPeriods),
		on("POST", "/api/v1/subscriptions/:id/preview-change", "subscriptions:write", "Say what another plan would cost and limit, from when", 200, previewChange).with(`{"plan": "{other_plan}"}`),
		on("POST", "/api/v1/subscriptions/:id/change", "subscriptions:write", "Carry out a preview, once however often it is asked", 200, change).with(`{"preview_token": "{preview}"}`),
		on("POST", "/api/v1/subscriptions/:id/drop-change", "subscriptions:write", "Take back the change that waits for the period's end", 200, dropChange),
		on("POST", "/api/v1/subscriptions/:id/cancel", "subscriptions:write", "End a subscription with its period, or now", 200, cancelSubscription).with(`{"at": "period_end"}`),
		on("POST", "/api/v1/subscriptions/:id/keep", "subscriptions:write", "Take a cancellation back", 200, keepSubscription),
		on("POST", "/api/v1/subscriptions/:id/past-due", "subscriptions:write", "Say that something is owed, or nothing any more", 200, setPastDue).with(`{"past_due": true}`),
		on("POST", "/api/v1/subscriptions/:id/suspend", "subscriptions:write", "Refuse the calls of a subscription within a second", 200, suspendSubscription),
		on("POST", "/api/v1/subscriptions/:id/resume", "subscriptions:write", "Let a suspended subscription go on", 200, resumeSubscription),

		on("POST", "/api/v1/overrides", "overrides:write", "Give a customer a limit of its own, for a time and a reason", 201, addOverride).with(`{"customer": "{customer}", "limit": {"dimension": "requests", "window": "minute", "amount": 800}, "reason": "a launch", "until": "2099-03-01T00:00:00Z"}`),
		on("GET", "/api/v1/overrides", "overrides:read", "List overrides, newest first", 200, listOverrides),
		on("GET", "/api/v1/overrides/:id", "overrides:read", "Read an override", 200, getOverride),
		on("POST", "/api/v1/overrides/:id/end", "overrides:write", "End an override now", 200, endOverride),

		on("POST", "/api/v1/api-keys", "api-keys:write", "Make an API key; its secret is in this answer only", 201, addAPIKey).with(`{"kind": "customer", "customer": "{customer}", "name": "Production", "limits": [{"dimension": "requests", "window": "minute", "amount": 100}]}`),
		on("GET", "/api/v1/api-keys", "api-keys:read", "List API keys", 200, listAPIKeys),
		on("GET", "/api/v1/api-keys/:id", "api-keys:read", "Read an API key", 200, getAPIKey),
		on("PATCH", "/api/v1/api-keys/:id", "api-keys:write", "Change an API key's name and its own limits", 200, changeAPIKey).with(`{"name": "Production, Frankfurt"}`),
		on("POST", "/api/v1/api-keys/:id/rotate", "api-keys:write", "Give an API key a new secret, in this answer only; the old one works on for a while", 201, rotateAPIKey).with(`{"overlap_seconds": 3600}`),
		on("POST", "/api/v1/api-keys/:id/revoke", "api-keys:write", "Revoke an API key, and what it was rotated from or to", 200, revokeAPIKey),

		on("POST", "/api/v1/alerts", "alerts:write", "Tell somebody once a period when a threshold is passed", 201, addAlert).with(`{"dimension": "tokens", "window": "day", "threshold": {"percent": 80}, "channels": ["email"]}`),
		on("GET", "/api/v1/alerts", "alerts:read", "List alerts", 200, listAlerts),
		on("GET", "/api/v1/alerts/:id", "alerts:read", "Read an alert", 200, getAlert),
		on("PATCH", "/api/v1/alerts/:id", "alerts:write", "Change an alert's name and threshold and whom it tells, or let it rest", 200, changeAlert).with(`{"threshold": {"percent": 90}, "name": "Nearly spent"}`),
		on("DELETE", "/api/v1/alerts/:id", "alerts:write", "Remove an alert", 204, removeAlert),

		on("POST", "/api/v1/webhook-endpoints", "webhook-endpoints:write", "Add a webhook endpoint; its signing secret is in this answer only", 201, addWebhook).with(`{"url": "https://example.com/hooks/weir", "description": "Production", "types": ["customer.*", "alert.fired"]}`),
		on("GET", "/api/v1/webhook-endpoints", "webhook-endpoints:read", "List webhook endpoints", 200, listWebhooks),
		on("GET", "/api/v1/webhook-endpoints/:id", "webhook-endpoints:read", "Read a webhook endpoint", 200, getWebhook),
		on("PATCH", "/api/v1/webhook-endpoints/:id", "webhook-endpoints:write", "Change a webhook endpoint: address, description, types; switch it off and on", 200, changeWebhook).with(`{"description": "Production, Frankfurt", "types": []}`),
		on("DELETE", "/api/v1/webhook-endpoints/:id", "webhook-endpoints:write", "Remove a webhook endpoint and forget its secret", 204, removeWebhook),
		on("POST", "/api/v1/webhook-endpoints/:id/rotate-secret", "webhook-endpoints:write", "Give a webhook endpoint another signing secret, in this answer only; both sign during the overlap", 200, rotateWebhook).with(`{"overlap_seconds": 86400}`),
		on("POST", "/api/v1/webhook-endpoints/:id/test", "webhook-endpoints:write", "Send a message of type webhook.test to an endpoint", 202, testWebhook),
		on("POST", "/api/v1/webhook-endpoints/:id/replay", "webhook-endpoints:write", "Send an endpoint again what it has not taken of a range of time", 200, replayWebhook).with(`{"from": "2026-11-30T12:00:00Z"}`),
		on("GET", "/api/v1/webhook-messages", "webhook-messages:read", "List what was told, newest first, with where it went", 200, listWebhookMessages),
		on("GET", "/api/v1/webhook-messages/:id", "webhook-messages:read", "Read one message with every try", 200, getWebhookMessage),
		on("POST", "/api/v1/webhook-messages/:id/resend", "webhook-messages:write", "Send a message again now, with the same id and bytes", 200, resendWebhookMessage).with(`{}`),

		on("GET", "/api/v1/usage", usageScope, "Report usage in buckets", 200, reportUsage),
		on("POST", "/api/v1/usage/what-if", usageScope, "What another plan would have done to what happened", 200, whatIf).with(`{"customer": "{customer}", "plan": "{plan}"}`),
		on("POST", "/api/v1/events", "events:write", "Import up to 500 calls that were metered elsewhere; one that is wrong harms no other", 200, importEvents).with(`{"events": [{"id": "call-1", "customer": "{customer}", "model": "gpt-4o", "started_at": "2026-11-30T12:00:00Z", "outcome": "ok", "usage": {"input_tokens": 1180, "output_tokens": 640}}]}`),
		on("POST", "/api/v1/exports", usageScope, "Ask for a file of a usage report or of the request log", 202, addExport).with(`{"kind": "usage", "format": "csv", "from": "2026-11-01", "group_by": "model"}`),
		on("GET", "/api/v1/exports", usageScope, "List exports, newest first", 200, listExports),
		on("GET", "/api/v1/exports/:id", usageScope, "Read how far an export is", 200, getExport),
		exportContent(),
		on("GET", "/api/v1/requests", "requests:read", "List calls, newest first", 200, listRequests),
		on("GET", "/api/v1/requests/:id", "requests:read", "Read one call", 200, getRequest),

		on("POST", "/v1/reservations", decisionScope, "Reserve: decide a call against every limit it touches", 201, reserve).with(`{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 1200, "output_tokens": 800}}`),
		on("POST", "/v1/reservations:batch", decisionScope, "Reserve up to 500 calls; one that is wrong or refused harms no other", 200, reserveBatch).with(`{"reservations": [{"customer": "{customer}", "model": "practice-small", "estimate": {"input_tokens": 1200, "output_tokens": 800}}]}`),
		on("POST", "/v1/settlements:batch", decisionScope, "Settle up to 500 reservations; one that is wrong harms no other", 200, settleBatch).with(`{"settlements": [{"id": "{reservation}", "outcome": "ok", "usage": {"input_tokens": 1180, "output_tokens": 640}}]}`),
		on("POST", "/v1/reservations/:id/settle", decisionScope, "Settle a reservation with what really happened", 200, settle).with(`{"outcome": "ok", "usage": {"input_tokens": 1180, "output_tokens": 640}}`),
		on("POST", "/v1/reservations/:id/cancel", decisionScope, "Cancel a reservation whose call was never sent", 200, cancel),
		on("POST", "/v1/reservations/:id/extend", decisionScope, "Move the end of a reservation", 200, extend).with(`{"ttl_seconds": 600}`),
		on("POST", "/v1/client-tokens", decisionScope, "Mint a short-lived token for a browser or an agent (customer keys)", 201, mintToken).with(`{"expires_in": 900, "models": ["practice-small"]}`),
		on("GET", "/v1/limits", decisionScope, "Live state of every limit of a caller", 200, liveLimits),
	}
}
