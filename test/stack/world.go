package stack

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"weir/internal/gateway/upstreamtest"
)

// Limit is a limit as the REST API takes it.
type Limit struct {
	Dimension string   `json:"dimension"`
	Window    string   `json:"window"`
	Amount    int64    `json:"amount"`
	Burst     int64    `json:"burst,omitempty"`
	Models    []string `json:"models,omitempty"`
	EachModel bool     `json:"each_model,omitempty"`
	Scope     string   `json:"scope,omitempty"`
	Outage    string   `json:"outage,omitempty"`
}

// Price is a price line as the REST API takes it.
type Price struct {
	Models           string `json:"models"`
	Class            string `json:"class"`
	MicrosPerMillion int64  `json:"micros_per_million"`
}

// Options say what a world is made of. Without an upstream its provider is the
// practice provider.
type Options struct {
	Zone          string // of the tenant; "": UTC
	Upstream      *upstreamtest.Upstream
	BaseURL       string // of a provider in another process, instead
	Provider      string // its slug; "": custom
	ProviderLimit []Limit
	Plan          []Limit
	KeyLimit      []Limit
	Prices        []Price
	CapOutput     bool // of the plan
}

// World is a tenant that is ready to serve one customer.
type World struct {
	Tenant, ManagementKey, SignInLink string
	ProviderKey, ProviderSecret       string
	Pool, Webhook                     string // "": none was made
	Plan, Version                     string
	Customer, Subscription            string
	KeyID, Key                        string
}

// Setup makes a tenant with a provider key, a published plan, a customer on it
// and a key, by the words and routes that people use.
func (s *Stack) Setup(t testing.TB, o Options) World {
	t.Helper()
	w := s.Tenant(t, o.Zone)
	provider := providerBody{Provider: "practice", Name: "main", Limits: o.ProviderLimit}
	if o.Upstream != nil {
		o.BaseURL = o.Upstream.URL
	}
	if o.BaseURL != "" {
		w.ProviderSecret = "sk-test-" + w.Tenant
		provider.Provider, provider.Secret, provider.BaseURL = cmp.Or(o.Provider, "custom"), w.ProviderSecret, o.BaseURL
	}
	a := s.Want(t, 201, "POST", "/api/v1/provider-keys", w.ManagementKey, provider)
	if a.Text("status") != "active" {
		t.Fatalf("the provider key was not verified: %s", a)
	}
	w.ProviderKey = a.Text("id")
	a = s.Want(t, 201, "POST", "/api/v1/plans", w.ManagementKey, planBody{Name: "Starter", Limits: o.Plan, Prices: o.Prices, CapOutput: o.CapOutput})
	w.Plan, w.Version = a.Text("id"), a.Text("version.id")
	s.Want(t, 200, "POST", "/api/v1/plans/"+w.Plan+"/publish", w.ManagementKey, nil)
	w.Customer = s.Want(t, 201, "POST", "/api/v1/customers", w.ManagementKey, `{"name": "Ada's Apps"}`).Text("id")
	w.Subscription = s.Want(t, 201, "POST", "/api/v1/subscriptions", w.ManagementKey, fmt.Sprintf(`{"customer": %q, "plan": %q}`, w.Customer, w.Plan)).Text("id")
	a = s.AddKey(t, w, o.KeyLimit...)
	w.KeyID, w.Key = a.Text("id"), a.Text("secret")
	return w
}

type providerBody struct {
	Provider string  `json:"provider"`
	Name     string  `json:"name"`
	Secret   string  `json:"secret,omitempty"`
	BaseURL  string  `json:"base_url,omitempty"`
	Limits   []Limit `json:"limits,omitempty"`
}

type planBody struct {
	Name   string  `json:"name"`
	Limits []Limit `json:"limits,omitempty"`
	Prices []Price `json:"prices,omitempty"`

	CapOutput bool `json:"cap_output,omitempty"`
}

type keyBody struct {
	Kind     string  `json:"kind"`
	Customer string  `json:"customer"`
	Name     string  `json:"name"`
	Limits   []Limit `json:"limits,omitempty"`
}

// Tenant makes a tenant that has nothing yet.
func (s *Stack) Tenant(t testing.TB, zone string) World {
	t.Helper()
	if zone == "" {
		zone = "UTC"
	}
	if s.remote != nil {
		w, err := s.remote.Create(t.Context(), t.Name(), zone)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	a, err := s.Admin(t.Context(), "create-tenant", "--name", t.Name(), "--owner-email", "owner@example.com", "--zone", zone)
	if err != nil {
		t.Fatal(err)
	}
	return World{Tenant: a.Text("tenant"), ManagementKey: a.Text("management_key"), SignInLink: a.Text("sign_in_link")}
}

// AddKey makes another key for the world's customer.
func (s *Stack) AddKey(t testing.TB, w World, limits ...Limit) Answer {
	t.Helper()
	return s.Want(t, 201, "POST", "/api/v1/api-keys", w.ManagementKey, keyBody{"customer", w.Customer, "Production", limits})
}

// MiddayZone is a time zone in which it is about noon, so that no day ends while
// a test runs.
func MiddayZone() string {
	switch h := time.Now().UTC().Hour() - 12; {
	case h > 0:
		return fmt.Sprintf("Etc/GMT+%d", h) // whose clocks are behind, as POSIX has it
	case h < 0:
		return fmt.Sprintf("Etc/GMT-%d", -h)
	}
	return "Etc/GMT"
}
