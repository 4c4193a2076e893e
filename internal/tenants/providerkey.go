package tenants

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
)

// Status is what is known of a provider key's health.
type Status string

// The states of a provider key.
const (
	Active     Status = "active"     // verified
	Unverified Status = "unverified" // the check could not be made
	Invalid    Status = "invalid"    // the provider refused it
	Disabled   Status = "disabled"   // a person switched it off
)

// ProviderKey is a tenant's credential at a provider. The secret itself stays
// sealed.
type ProviderKey struct {
	ID           uuid.UUID
	Provider     string
	Name         string
	BaseURL      string
	Last4        string
	Fingerprint  string
	Status       Status
	StatusReason string
	Tier         string // of the account at the provider, as the tenant says; "": not said
	Zone         string // in which the provider's day ends, as it was last corrected
	PastZones    []limits.PastZone
	Models       []string
	ModelsListed bool // by the tenant; otherwise discovered
	Limits       []limits.Limit
	Health       []KeyHealth
	Learned      []limits.Learned
	Pool         Pool // whose quota it shares; zero: none
	CreatedAt    time.Time
	VerifiedAt   *time.Time
}

// Usable tells whether calls may be sent with it. An unverified key may: only
// a provider's refusal makes one unusable.
func (k ProviderKey) Usable() bool { return k.Status == Active || k.Status == Unverified }

// Serves tells whether the key is known to reach a model.
func (k ProviderKey) Serves(model string) bool { return slices.Contains(k.Models, model) }

// NewProviderKey is what a provider key starts from.
type NewProviderKey struct {
	Provider string
	Name     string
	Secret   keyring.Secret
	BaseURL  string   // "": the catalogue's, where that has one
	Models   []string // nil: discovered
	Limits   []limits.Limit
	Zone     string    // IANA, in which its days end; "": as the catalogue says
	Pool     uuid.UUID // zero: none
	Tier     string    // of the account at the provider; "": not known
}

// AddProviderKey checks the key live and stores it, sealed. A key that the
// provider refuses, or that cannot be checked, is stored all the same, with the
// status and the reason.
func (s *Service) AddProviderKey(ctx context.Context, tenant uuid.UUID, n NewProviderKey) (ProviderKey, error) {
	p, n, err := s.checkProviderKey(n)
	if err != nil {
		return ProviderKey{}, err
	}
	k := ProviderKey{
		ID: id.New(), Provider: p.Slug, Name: n.Name, BaseURL: n.BaseURL, Tier: n.Tier, Zone: p.Zone, Models: n.Models, ModelsListed: n.Models != nil,
		Last4: n.Secret.Last4(), CreatedAt: s.now().UTC().Truncate(time.Microsecond),
	}
	if zone := catalogue.QuirksOf(n.BaseURL).Zone; zone != "" {
		k.Zone = zone
	}
	if n.Zone != "" {
		k.Zone = n.Zone
	}
	if !n.Secret.IsZero() {
		k.Fingerprint = n.Secret.Fingerprint()
	}
	k = s.verified(ctx, k, catalogue.Endpoint{Tenant: tenant, Provider: p, BaseURL: n.BaseURL, Secret: n.Secret})
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		sealed, err := s.Seal(ctx, tx, tenant, k.ID, n.Secret)
		if err != nil {
			return err
		}
		k.Pool.ID = n.Pool
		return insertProviderKey(ctx, tx, tenant, &k, sealed, n.Limits)
	})
	return k, conflict(err)
}

func insertProviderKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k *ProviderKey, sealed []byte, list []limits.Limit) error {
	_, err := tx.Exec(ctx, `
		insert into provider_keys (tenant_id, provider_key_id, provider, name, base_url, sealed_secret, last4, fingerprint,
		                           status, status_reason, zone, models, models_listed, created_at, verified_at, tier)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		tenant, k.ID, k.Provider, k.Name, k.BaseURL, sealed, k.Last4, k.Fingerprint,
		string(k.Status), k.StatusReason, k.Zone, k.Models, k.ModelsListed, k.CreatedAt, k.VerifiedAt, k.Tier)
	if err != nil {
		return err
	}
	stored, err := AddLimits(ctx, tx, tenant, OwnedByProviderKey, k.ID, list)
	if err != nil {
		return err
	}
	k.Limits = k.placed(stored)
	if k.Pool, err = join(ctx, tx, tenant, *k, k.Pool.ID); err != nil {
		return err
	}
	return Audit(ctx, tx, tenant, "provider_key.created", id.ProviderKey.Format(k.ID),
		map[string]string{"provider": k.Provider, "name": k.Name, "last4": k.Last4, "status": string(k.Status), "pool": k.Pool.Name})
}

// placed puts the key's limits at its scope, in the zone in which the
// provider's days end.
func (k ProviderKey) placed(list []limits.Limit) []limits.Limit {
	out := Placed(list, limits.Scope{Kind: limits.ScopeProviderKey, ID: k.ID, Name: k.Name})
	return InZones(out, k.Zones())
}

// Zones are those in which the provider's days have ended and end. A correction
// counts once the running day ends.
func (k ProviderKey) Zones() limits.Zones { return limits.Zones{Zone: k.Zone, Past: k.PastZones} }

func (s *Service) checkProviderKey(n NewProviderKey) (catalogue.Provider, NewProviderKey, error) {
	wrong := CheckName("/name", n.Name)
	if n.Zone != "" {
		wrong = append(wrong, CheckZone("/zone", n.Zone)...)
	}
	p, known := catalogue.Lookup(n.Provider)
	if !known {
		wrong = append(wrong, fault.Field{Pointer: "/provider", Code: "unknown_provider", Message: "There is no such provider; use custom with a base_url for any OpenAI-compatible one."})
		return p, n, fault.InvalidFields(wrong...)
	}
	if p.NeedsSecret && n.Secret.IsZero() {
		wrong = append(wrong, fault.Field{Pointer: "/secret", Code: "required", Message: p.Name + " needs a key."})
	}
	if p.Practice && !n.Secret.IsZero() {
		wrong = append(wrong, fault.Field{Pointer: "/secret", Code: "not_for_this_kind", Message: "The practice provider takes no key."})
	}
	if p.Practice && n.BaseURL != "" {
		wrong = append(wrong, fault.Field{Pointer: "/base_url", Code: "not_for_this_kind", Message: "The practice provider has no address: it is part of this installation."})
	}
	if p.NeedsBaseURL && n.BaseURL == "" {
		wrong = append(wrong, fault.Field{Pointer: "/base_url", Code: "required", Message: p.Name + " needs its base URL, such as " + p.ExampleURL() + "."})
	}
	wrong = append(wrong, checkSecret(n.Secret)...)
	wrong = append(wrong, checkTier(n.Tier)...)
	for i := range n.Limits {
		n.Limits[i] = limits.Default(n.Limits[i])
	}
	wrong = append(wrong, checkModels(n.Models)...)
	wrong = append(wrong, limits.Check(n.Limits)...)
	wrong = append(wrong, checkProviderLimits(n.Limits)...)
	if len(wrong) > 0 {
		return p, n, fault.InvalidFields(wrong...)
	}
	if n.BaseURL == "" {
		n.BaseURL = p.BaseURL
		return p, n, nil
	}
	u, err := s.guard.CheckURL(n.BaseURL)
	if err != nil {
		f := fault.Of(err)
		return p, n, f.With(fault.Field{Pointer: "/base_url", Code: f.Code, Message: f.Message})
	}
	n.BaseURL = u.String()
	return p, n, nil
}

// checkSecret refuses what could not stand in a header.
func checkSecret(s keyring.Secret) []fault.Field {
	if !s.Printable() {
		return []fault.Field{{Pointer: "/secret", Code: "bad_characters", Message: "A provider key is printable ASCII without spaces, at most 4,096 characters."}}
	}
	return nil
}

func checkTier(tier string) []fault.Field {
	if len(tier) > 60 {
		return []fault.Field{{Pointer: "/tier", Code: "too_long", Message: "A tier has at most 60 characters."}}
	}
	return CheckText("/tier", tier)
}

func checkModels(models []string) (wrong []fault.Field) {
	if models != nil && len(models) == 0 {
		wrong = append(wrong, fault.Field{Pointer: "/models", Code: "empty", Message: "An empty list would reach no model; leave it out to have the models discovered."})
	}
	if len(models) > catalogue.MaxModels {
		wrong = append(wrong, fault.Field{Pointer: "/models", Code: "too_many", Message: "A provider key lists at most 2,000 models."})
	}
	for i, m := range models {
		if !catalogue.ValidModel(m) {
			wrong = append(wrong, fault.Field{Pointer: "/models/" + strconv.Itoa(i), Code: "bad_model", Message: "This is not a model name."})
		}
	}
	return wrong
}

// verified asks the provider, and returns k with what it said.
func (s *Service) verified(ctx context.Context, k ProviderKey, e catalogue.Endpoint) ProviderKey {
	found, err := s.client.Models(ctx, e)
	switch {
	case err == nil:
		now := s.now().UTC().Truncate(time.Microsecond)
		k.Status, k.StatusReason, k.VerifiedAt = Active, "", &now
		if !k.ModelsListed {
			k.Models = found
		}
	case fault.Of(err).Code == "provider_key_invalid":
		k.Status, k.StatusReason = Invalid, fault.Of(err).Message
	default:
		k.Status, k.StatusReason = Unverified, fault.Of(err).Message
	}
	if k.Models == nil {
		k.Models = []string{}
	}
	return k
}
