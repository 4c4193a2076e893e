package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	OK              Outcome = "ok"
	ClientError     Outcome = "client_error"     // the provider refused what was asked
	ProviderError   Outcome = "provider_error"   // the provider failed
	ProviderLimited Outcome = "provider_limited" // the provider is at its limit
	Aborted         Outcome = "aborted"          // given up while it ran
)

// Result is what a call really was. Its tokens are what the provider says,
// whatever the outcome; none means that nothing was used.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Usage   Usage   `json:"usage,omitzero"`
	Units   int64   `json:"units,omitempty"`

	// What the provider answered, with its Retry-After header: with a management
	// key. Of a reservation that names a provider key they rest that key.
	ProviderStatus int    `json:"provider_status,omitempty"`
	RetryAfter     string `json:"retry_after,omitempty"`
}

// Usage is in disjoint classes: input without what was cached or written to a
// cache, output without reasoning.
type Usage struct {
	InputTokens       int64 `json:"input_tokens,omitempty"`
	CachedInputTokens int64 `json:"cached_input_tokens,omitempty"`
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty"`
	OutputTokens      int64 `json:"output_tokens,omitempty"`
	ReasoningTokens   int64 `json:"reasoning_tokens,omitempty"`
}

// Settled is how a reservation ended.
type Settled struct {
	ID      string  `json:"id"`
	State   string  `json:"state"` // settled, cancelled
	Late    bool    `json:"late"`  // it had expired; a correction was written
	Charged Charged `json:"charged"`
	Limits  []Limit `json:"limits"`
}

// Charged is what the limits and the books took.
type Charged struct {
	Requests int64 `json:"requests"`
	Usage
	Units int64 `json:"units"`
}

// Settle ends a reservation with what really happened; the estimate is replaced.
// The same again answers alike; another outcome is an ErrConflict, and the first
// stands.
func (c *Client) Settle(ctx context.Context, id string, r Result) (out Settled, err error) {
	return out, c.send(ctx, request{method: http.MethodPost, path: about(id, "settle"), body: r}, &out)
}

// Cancel ends a reservation whose call never left for the provider: everything
// is given back.
func (c *Client) Cancel(ctx context.Context, id string) (out Settled, err error) {
	return out, c.send(ctx, request{method: http.MethodPost, path: about(id, "cancel")}, &out)
}

// Extend moves the end of an open reservation to ttl from now, never nearer, and
// returns when it ends. ErrConflict: it has ended or expired.
func (c *Client) Extend(ctx context.Context, id string, ttl time.Duration) (time.Time, error) {
	var out Reservation
	body := struct {
		TTLSeconds int64 `json:"ttl_seconds"`
	}{seconds(ttl)}
	err := c.send(ctx, request{method: http.MethodPost, path: about(id, "extend"), body: body}, &out)
	return out.ExpiresAt, err
}

func about(id, verb string) string { return "/v1/reservations/" + url.PathEscape(id) + "/" + verb }
