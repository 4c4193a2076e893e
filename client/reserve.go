package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Call is a call that is about to be made.
type Call struct {
	Customer    string            // cus_…: with a management key, whose call it is
	Model       string            // may be empty where only units are metered
	Estimate    Estimate          // what it may take
	ProviderKey string            // pvk_…: with a management key, hold this provider key's limits too
	EndUser     string            // your customer's own user
	Tags        map[string]string // at most 8
	TTL         time.Duration     // when it expires unsettled, whole seconds up to an hour; 0: 10 minutes
	MaxWait     time.Duration     // how long it may wait for room instead of being refused, up to a minute
	Key         string            // idempotency key; "": a random one for each Reserve
}

// Estimate is what a call may take: the prompt, the most that it may answer, or
// whatever else you meter.
type Estimate struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	Units        int64 `json:"units,omitempty"`
}

// Reservation is a call that was admitted: every limit is charged its estimate
// until it is settled, cancelled, or expires.
type Reservation struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
	Limits    []Limit   `json:"limits"` // after the charge
}

// Limit is one limit with its figures.
type Limit struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`      // such as "tokens per minute"
	Scope     string    `json:"scope"`     // whose it is
	Dimension string    `json:"dimension"` // what it counts
	Window    string    `json:"window"`
	Limit     int64     `json:"limit"`     // the most that one call can ever take
	Used      int64     `json:"used"`      // reservations included
	Requested int64     `json:"requested"` // what this call asked of it
	Remaining int64     `json:"remaining"` // what the next call may take
	Debt      int64     `json:"debt"`      // settled above what there was
	ResetAt   time.Time `json:"reset_at"`  // zero for concurrency
	Mode      string    `json:"mode"`      // enforce, or shadow: it reports and never refuses
}

type callJSON struct {
	Customer    string            `json:"customer,omitempty"`
	Model       string            `json:"model,omitempty"`
	Estimate    Estimate          `json:"estimate"`
	ProviderKey string            `json:"provider_key,omitempty"`
	EndUser     string            `json:"end_user,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	TTLSeconds  int64             `json:"ttl_seconds,omitempty"`
	MaxWaitMS   int64             `json:"max_wait_ms,omitempty"`
	DryRun      bool              `json:"dry_run,omitempty"`
}

func (k Call) json() callJSON {
	return callJSON{
		Customer: k.Customer, Model: k.Model, Estimate: k.Estimate, ProviderKey: k.ProviderKey, EndUser: k.EndUser, Tags: k.Tags,
		TTLSeconds: seconds(k.TTL), MaxWaitMS: k.MaxWait.Milliseconds(),
	}
}

// seconds are whole ones, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Reserve asks for a call. A *Refusal is the answer no. Settle or Cancel must
// follow a reservation.
func (c *Client) Reserve(ctx context.Context, k Call) (Reservation, error) {
	return c.reserve(ctx, k, k.json())
}

// Check decides a call without making it: nothing is charged or kept. It is the
// state of the limits, or the *Refusal that Reserve would get.
func (c *Client) Check(ctx context.Context, k Call) ([]Limit, error) {
	k.MaxWait = 0
	body := k.json()
	body.DryRun = true
	r, err := c.reserve(ctx, k, body)
	return r.Limits, err
}

func (c *Client) reserve(ctx context.Context, k Call, body callJSON) (out Reservation, err error) {
	if k.Key == "" {
		k.Key = once()
	}
	err = c.send(ctx, request{method: http.MethodPost, path: "/v1/reservations", once: k.Key, body: body, maxWait: k.MaxWait}, &out)
	return out, err
}

// Live is the state of limits at an instant.
type Live struct {
	Limits []LiveLimit `json:"data"`
	AsOf   time.Time   `json:"as_of"`
}

// LiveLimit is a limit with the time until a call of the smallest cost fits.
type LiveLimit struct {
	Limit
	NextCallAfterMS int64 `json:"next_call_after_ms"`
}

// Limits is the live state of every limit of the key's customer, or with a
// management key of the customer that is named. model leaves those that a call
// for it touches; "" is all of them but those that have a ledger for each model.
func (c *Client) Limits(ctx context.Context, customer, model string) (out Live, err error) {
	return c.LimitsOf(ctx, customer, model, "")
}

// LimitsOf is Limits with those that each end user has for itself, as they stand
// for one of them.
func (c *Client) LimitsOf(ctx context.Context, customer, model, endUser string) (out Live, err error) {
	q := url.Values{}
	for name, v := range map[string]string{"customer": customer, "model": model, "end_user": endUser} {
		if v != "" {
			q.Set(name, v)
		}
	}
	path := "/v1/limits"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return out, c.send(ctx, request{method: http.MethodGet, path: path}, &out)
}
