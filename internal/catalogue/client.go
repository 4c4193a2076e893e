package catalogue

import (
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/outbound"
)

// Endpoint is one provider key as a place to send calls to.
type Endpoint struct {
	Tenant   uuid.UUID
	Provider Provider
	BaseURL  string
	Secret   keyring.Secret
}

// Client sends calls to providers: through the guard, or inside the process to
// the practice provider. It is safe for concurrent use.
type Client struct {
	guard    *outbound.Guard
	practice http.RoundTripper
}

// NewClient makes a client.
func NewClient(guard *outbound.Guard) *Client {
	return &Client{guard: guard, practice: practice{}}
}

// AnthropicVersion is what a call in Anthropic's form states where its caller
// states none.
const AnthropicVersion = "2023-06-01"

// Do sends one request to path ("/chat/completions") of the endpoint, with the
// caller's headers and the endpoint's credential: those that could carry another
// one, and those that concern one connection, are not sent on. The caller closes
// the answer's body, which is as it came over the wire. What went wrong before
// an answer arrived is Upstream; a redirect is Upstream upstream_redirect.
func (c *Client) Do(ctx context.Context, e Endpoint, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	transport, base := c.guard.Client(e.Tenant).Transport, e.BaseURL
	if e.Provider.Practice {
		transport, base = c.practice, "http://practice.invalid/v1"
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, fault.New(fault.Upstream, "upstream_unreachable", "The provider could not be reached.").Because(err)
	}
	req.Header = e.headers(header)
	resp, err := transport.RoundTrip(req) // no more: redirects, cookies and the like are not followed
	if err != nil {
		return nil, outbound.Fault(err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fault.New(fault.Upstream, "upstream_redirect", "The provider answered with a redirect, which is never followed.")
	}
	return resp, nil
}

// ours are the headers that no caller sets: credentials, cookies, and what
// concerns one connection (RFC 9110 7.6.1).
var ours = []string{
	"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization",
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Content-Length",
}

func (e Endpoint) headers(given http.Header) http.Header {
	h := make(http.Header, len(given)+2)
	for name, values := range given {
		if name = http.CanonicalHeaderKey(name); !slices.Contains(ours, name) {
			h[name] = values
		}
	}
	if e.Provider.Form == Anthropic && h.Get("Anthropic-Version") == "" {
		h.Set("Anthropic-Version", AnthropicVersion)
	}
	if e.Secret.IsZero() {
		return h
	}
	switch e.Provider.Auth {
	case AuthAnthropic:
		h.Set("X-Api-Key", e.Secret.Reveal())
	case AuthAPIKey:
		h.Set("Api-Key", e.Secret.Reveal())
	default:
		h.Set("Authorization", "Bearer "+e.Secret.Reveal())
	}
	return h
}
