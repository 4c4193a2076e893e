// Package catalogue knows the providers: where they are, how a call is
// authorised, what they serve, and when their day ends. It is the only package
// that puts a stored credential on the wire.
package catalogue

import (
	"net/url"
	"slices"
	"strings"
)

// Form is the wire format of a provider's chat route.
type Form string

// The forms.
const (
	OpenAI    Form = "openai"    // POST /chat/completions
	Anthropic Form = "anthropic" // POST /messages
)

// Auth is how a call carries its credential.
type Auth string

// The ways.
const (
	AuthBearer    Auth = "bearer"    // Authorization: Bearer …
	AuthAnthropic Auth = "x-api-key" // x-api-key, beside anthropic-version
	AuthAPIKey    Auth = "api-key"   // api-key, as Azure has it
)

// The routes that a provider may serve, as they follow its base URL.
const (
	RouteChat           = "/chat/completions"
	RouteCompletions    = "/completions"
	RouteResponses      = "/responses"
	RouteEmbeddings     = "/embeddings"
	RouteImages         = "/images/generations"
	RouteSpeech         = "/audio/speech"
	RouteTranscriptions = "/audio/transcriptions"
	RouteModerations    = "/moderations"
	RouteMessages       = "/messages"
	RouteCountTokens    = "/messages/count_tokens"
)

// Provider is a vendor of models.
type Provider struct {
	Slug         string
	Name         string
	BaseURL      string // "" where each key brings its own
	Zone         string // IANA zone in which its daily quotas end
	NeedsSecret  bool
	NeedsBaseURL bool
	Practice     bool // served inside the installation, never billed
	Form         Form
	Auth         Auth
	Quirks       Quirks

	// FailuresCount tells whether a call that the provider refused or failed
	// counts against its own quota of requests. Where that is not known it is
	// taken to, which is the side that refuses.
	FailuresCount bool
	// PoolsKeys tells whether the published limits are of an account or project,
	// so that two keys of one draw on the same quota.
	PoolsKeys bool

	host   string   // the end of the host names that are its own
	check  string   // a route that needs the credential, where the list of models does not
	routes []string // that it serves
}

// Serves tells whether a call of a route, such as RouteEmbeddings, may be sent
// to the provider as it is. What is not known to be there is not.
func (p Provider) Serves(route string) bool { return slices.Contains(p.routes, route) }

// ExampleURL is what the base URL of a provider that needs one may look like.
func (p Provider) ExampleURL() string {
	switch p.Slug {
	case "azure-openai":
		return "https://your-resource.openai.azure.com/openai/v1"
	case "ollama":
		return "https://ollama.example.com/v1"
	}
	return "https://llm.example.com/v1"
}

// Providers lists every provider.
func Providers() []Provider { return slices.Clone(providers) }

// Lookup finds a provider by its slug.
func Lookup(slug string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Slug == slug })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// Quirks are where a vendor's answers differ from what their form means
// elsewhere.
type Quirks struct {
	Zone           string // in which its daily quotas end; "": not known
	RequestsPerDay bool   // x-ratelimit-*-requests count a day
	SpendIn400     bool   // a spend limit comes as a 400 that says so
}

// QuirksOf are those of the vendor at a base URL: many keys of known vendors are
// kept as custom ones.
func QuirksOf(baseURL string) Quirks {
	p, _ := At(baseURL)
	return p.Quirks
}

// At is the known vendor whose address a base URL is. Addresses of nobody in
// particular, such as those of servers of one's own, are not found.
func At(baseURL string) (Provider, bool) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return Provider{}, false
	}
	host := strings.ToLower(u.Hostname())
	i := slices.IndexFunc(providers, func(p Provider) bool {
		return p.host != "" && (host == p.host || strings.HasSuffix(host, "."+p.host))
	})
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// Vendor is who is really called: the known vendor at the endpoint's address,
// else the endpoint's provider as it is.
func (e Endpoint) Vendor() Provider {
	if p, known := At(e.BaseURL); known {
		return p
	}
	return e.Provider
}
