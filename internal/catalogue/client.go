package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

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

// Do sends one request to path ("/chat/completions") of the endpoint with its
// credential. The caller closes the answer's body. What went wrong before an
// answer arrived is Upstream; a redirect is Upstream upstream_redirect.
func (c *Client) Do(ctx context.Context, e Endpoint, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	client, base := c.guard.Client(e.Tenant), e.BaseURL
	if e.Provider.Practice {
		client, base = &http.Client{Transport: c.practice}, "http://practice.invalid/v1"
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, fault.New(fault.Upstream, "upstream_unreachable", "The provider could not be reached.").Because(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if !e.Secret.IsZero() {
		req.Header.Set("Authorization", "Bearer "+e.Secret.Reveal())
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, outbound.Fault(err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fault.New(fault.Upstream, "upstream_redirect", "The provider answered with a redirect, which is never followed.")
	}
	return resp, nil
}

// MaxModels is how many models of one provider key are kept.
const MaxModels = 2000

const (
	verifyTimeout = 15 * time.Second
	modelsLimit   = 4 << 20
)

// Models asks the provider which models the key may use: the live check of a
// key. It returns them sorted. A key that the provider does not accept is
// Unauthenticated with code provider_key_invalid; every other failure is
// Upstream. The provider's own words are never repeated: some echo the key.
func (c *Client) Models(ctx context.Context, e Endpoint) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	resp, err := c.Do(ctx, e, http.MethodGet, "/models", http.Header{"Accept": {"application/json"}}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, fault.Newf(fault.Unauthenticated, "provider_key_invalid", "The provider refused this key (status %d).", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fault.Newf(fault.Upstream, "provider_check_failed", "The provider answered the check with status %d.", resp.StatusCode)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, modelsLimit)).Decode(&list); err != nil {
		return nil, fault.New(fault.Upstream, "provider_check_failed", "The provider's list of models could not be read.").Because(fmt.Errorf("decode models: %w", err))
	}
	var models []string
	for _, m := range list.Data {
		if ValidModel(m.ID) && len(models) < MaxModels {
			models = append(models, m.ID)
		}
	}
	slices.Sort(models)
	return slices.Compact(models), nil
}

// ValidModel tells whether s can be a model's name: 1 to 200 printable ASCII
// characters without spaces.
func ValidModel(s string) bool {
	return len(s) >= 1 && len(s) <= 200 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
