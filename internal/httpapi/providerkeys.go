package httpapi

import (
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/tenants"
)

type providerKeyBody struct {
	Provider string      `json:"provider" required:"true" enum:"openai,anthropic,google,groq,openrouter,mistral,cerebras,deepseek,together,xai,azure-openai,nvidia,modelscope,ollama,vllm,custom,custom-anthropic,practice" description:"practice is a simulated provider inside this installation that needs no key"`
	Name     string      `json:"name" required:"true"`
	Secret   string      `json:"secret,omitempty" description:"The provider's key. Sealed at once, never readable again"`
	BaseURL  string      `json:"base_url,omitempty" description:"Needed for azure-openai, ollama, vllm and the custom ones; https on port 443 of a public address" example:"https://llm.example.com/v1"`
	Models   []string    `json:"models,omitempty" description:"Absent: discovered by asking the provider"`
	Limits   []limitBody `json:"limits,omitempty" description:"The key's own limits at the provider"`
	Zone     string      `json:"zone,omitempty" description:"IANA time zone in which the provider's days end; absent: as the catalogue says" example:"America/Los_Angeles"`
	Pool     string      `json:"pool,omitempty" description:"Whose quota it shares" example:"pol_01kb0000000000000000000000"`
	Tier     string      `json:"tier,omitempty" description:"Of your account at the provider: what it publishes for that tier becomes the key's limits, where limits say nothing of the same kind. GET /api/v1/provider-keys/offers lists them" example:"tier 1"`
}

type providerKeyJSON struct {
	ID           string         `json:"id" example:"pvk_01kb0000000000000000000000"`
	Provider     string         `json:"provider"`
	Name         string         `json:"name"`
	BaseURL      string         `json:"base_url,omitempty"`
	Last4        string         `json:"last4" description:"The last four characters of the secret"`
	Fingerprint  string         `json:"fingerprint" description:"Tells two secrets apart without saying what they are"`
	Status       string         `json:"status" enum:"active,cooling,invalid,unverified,disabled" description:"cooling: the provider accepts the key, but no model of it can be called now"`
	StatusReason string         `json:"status_reason,omitempty" description:"Why the status is not active"`
	Tier         string         `json:"tier,omitempty" description:"Of the account at the provider, as you said"`
	Zone         string         `json:"zone" description:"IANA time zone in which the provider's day ends, as it was last corrected"`
	Models       []string       `json:"models"`
	Pool         *string        `json:"pool" description:"Whose quota it shares; null: none" example:"pol_01kb0000000000000000000000"`
	Limits       []limitJSON    `json:"limits"`
	Learned      []learnedJSON  `json:"learned" description:"Limits learned from the provider's answers, beside those that are configured"`
	Cooldowns    []cooldownJSON `json:"cooldowns" description:"What rests now, by model"`
	CreatedAt    time.Time      `json:"created_at"`
	VerifiedAt   *time.Time     `json:"verified_at"`
}

func (s *Server) providerKeyOf(k tenants.ProviderKey) providerKeyJSON {
	now := s.now()
	out := providerKeyJSON{
		Pool: optionalPool(k.Pool.ID),
		ID:   id.ProviderKey.Format(k.ID), Provider: k.Provider, Name: k.Name, BaseURL: k.BaseURL, Last4: k.Last4, Fingerprint: k.Fingerprint,
		Status: string(k.Status), StatusReason: k.StatusReason, Tier: k.Tier, Zone: k.Zone, Models: k.Models, Limits: limitsJSON(k.Limits),
		Learned: learnedOf(k.Learned, k.Limits), Cooldowns: []cooldownJSON{}, CreatedAt: k.CreatedAt, VerifiedAt: k.VerifiedAt,
	}
	for _, h := range k.Cooldowns(now) {
		out.Cooldowns = append(out.Cooldowns, cooldownOf(h))
	}
	if _, rests := k.Resting(now); rests && k.Usable() {
		out.Status = "cooling"
	}
	return out
}

func addProviderKey(s *Server, r *request, _ none, b providerKeyBody) (providerKeyJSON, error) {
	list, err := limitsFrom(b.Limits)
	if err != nil {
		return providerKeyJSON{}, err
	}
	pool, err := optionalID(id.Pool, "pool", b.Pool)
	if err != nil {
		return providerKeyJSON{}, err
	}
	if list, err = s.tierLimits(r, b.Provider, b.Tier, list); err != nil {
		return providerKeyJSON{}, err
	}
	k, err := s.tenants.AddProviderKey(r.ctx, r.tenant(), tenants.NewProviderKey{
		Provider: b.Provider, Name: b.Name, Secret: keyring.NewSecret(b.Secret), BaseURL: b.BaseURL, Models: b.Models, Limits: list, Zone: b.Zone, Pool: pool, Tier: b.Tier,
	})
	return s.providerKeyOf(k), err
}

func listProviderKeys(s *Server, r *request, q listQuery, _ none) (page[providerKeyJSON], error) {
	return list(s, r, q, "provider-keys", func(after uuid.UUID, limit int) (tenants.Page[tenants.ProviderKey], error) {
		return s.tenants.ProviderKeys(r.ctx, r.tenant(), after, limit)
	}, s.providerKeyOf)
}

func getProviderKey(s *Server, r *request, _ none, _ none) (providerKeyJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return providerKeyJSON{}, err
	}
	k, err := s.tenants.ProviderKey(r.ctx, r.tenant(), key)
	return s.providerKeyOf(k), err
}

type providerChangeBody struct {
	keyChangeBody
	Zone     *string   `json:"zone,omitempty" nullable:"false" description:"IANA time zone in which the provider's days end; it counts once the running day ends" example:"America/Los_Angeles"`
	Pool     clearable `json:"pool,omitempty" description:"Whose quota it shares; null takes it out of its pool" example:"pol_01kb0000000000000000000000"`
	Secret   *string   `json:"secret,omitempty" nullable:"false" description:"Another secret, in the place of the old one: checked live first, and refused where the provider refuses it"`
	BaseURL  *string   `json:"base_url,omitempty" nullable:"false" description:"Where it calls; another host needs the secret in the same request (422 secret_required)" example:"https://llm.example.com/v1"`
	Disabled *bool     `json:"disabled,omitempty" nullable:"false" description:"true: no call uses the key. false: it is checked, and used again"`
	Tier     *string   `json:"tier,omitempty" nullable:"false" description:"Of your account at the provider, by whose published limits the key is judged; its limits stay as they are"`
}

func changeProviderKey(s *Server, r *request, _ none, b providerChangeBody) (providerKeyJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return providerKeyJSON{}, err
	}
	c, err := b.change()
	if err != nil {
		return providerKeyJSON{}, err
	}
	c.Zone, c.BaseURL, c.Disabled, c.Tier = b.Zone, b.BaseURL, b.Disabled, b.Tier
	if b.Secret != nil {
		secret := keyring.NewSecret(*b.Secret)
		c.Secret = &secret
	}
	if to := b.Pool.to(); to != nil {
		pool, err := optionalID(id.Pool, "pool", *to)
		if err != nil {
			return providerKeyJSON{}, err
		}
		c.Pool = &pool
	}
	k, err := s.tenants.ChangeProviderKey(r.ctx, r.tenant(), key, c)
	s.directory.RoutesChanged(r.tenant())
	return s.providerKeyOf(k), err
}

type rotateProviderBody struct {
	Secret  string  `json:"secret" required:"true" description:"The new secret. Sealed at once, never readable again"`
	BaseURL *string `json:"base_url,omitempty" nullable:"false" description:"Where it calls from now on; absent: as before"`
}

// rotateProviderKey puts a new secret in the place of the old one: the key, its
// ledgers and its limits stay.
func rotateProviderKey(s *Server, r *request, _ none, b rotateProviderBody) (providerKeyJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return providerKeyJSON{}, err
	}
	secret := keyring.NewSecret(b.Secret)
	k, err := s.tenants.ChangeProviderKey(r.ctx, r.tenant(), key, tenants.KeyChange{Secret: &secret, BaseURL: b.BaseURL})
	s.directory.RoutesChanged(r.tenant())
	return s.providerKeyOf(k), err
}

func verifyProviderKey(s *Server, r *request, _ none, _ none) (providerKeyJSON, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return providerKeyJSON{}, err
	}
	k, err := s.tenants.VerifyProviderKey(r.ctx, r.tenant(), key)
	s.directory.RoutesChanged(r.tenant())
	return s.providerKeyOf(k), err
}

func removeProviderKey(s *Server, r *request, _ none, _ none) (none, error) {
	key, err := r.path(id.ProviderKey, "provider key")
	if err != nil {
		return none{}, err
	}
	return none{}, s.tenants.RemoveProviderKey(r.ctx, r.tenant(), key)
}
