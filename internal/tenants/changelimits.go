package tenants

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/limits"
)

// KeyChange is what of a key may be changed. nil leaves it as it is. Limits are
// the whole new set; ledgers hang on what a limit counts, so what is used stays.
type KeyChange struct {
	Name   *string
	Limits *[]limits.Limit
	Zone   *string    // of a provider key or pool: in which the provider's days end
	Pool   *uuid.UUID // of a provider key: whose quota it shares; zero: none

	Secret   *keyring.Secret // of a provider key: another one, in the place of the old
	BaseURL  *string         // of a provider key; "": the catalogue's
	Disabled *bool           // of a provider key: switched off by a person
	Tier     *string         // of a provider key: by whose published limits it is judged
}

func (c *KeyChange) check() error {
	var wrong []fault.Field
	if c.Name != nil {
		wrong = CheckName("/name", *c.Name)
	}
	if c.Zone != nil {
		wrong = append(wrong, CheckZone("/zone", *c.Zone)...)
	}
	if c.Tier != nil {
		wrong = append(wrong, checkTier(*c.Tier)...)
	}
	if c.Limits != nil {
		list := make([]limits.Limit, len(*c.Limits))
		for i, l := range *c.Limits {
			list[i] = limits.Default(l)
		}
		c.Limits = &list
		wrong = append(wrong, limits.Check(list)...)
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

// ReplaceLimits puts a set in the place of an owner's limits, as AddLimits does.
func ReplaceLimits(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, owner LimitOwner, ownerID uuid.UUID, list []limits.Limit) ([]limits.Limit, error) {
	_, err := tx.Exec(ctx, `
		delete from limits where tenant_id = $1 and owner_kind = $2 and owner_id = $3`, tenant, string(owner), ownerID)
	if err != nil {
		return nil, err
	}
	return AddLimits(ctx, tx, tenant, owner, ownerID, list)
}

// checkProviderLimits says which limits a provider key cannot have.
func checkProviderLimits(list []limits.Limit) (wrong []fault.Field) {
	for i, l := range list {
		at := "/limits/" + strconv.Itoa(i)
		if l.Dimension == limits.DimensionSpend {
			wrong = append(wrong, fault.Field{
				Pointer: at + "/dimension", Code: "not_allowed",
				Message: "What a provider charges is not known here, so it cannot be limited. Limit what customers pay: in a plan or on an API key.",
			})
		}
		if l.EachEndUser() {
			wrong = append(wrong, fault.Field{Pointer: at + "/scope", Code: "not_allowed", Message: "A provider does not limit each end user. A plan, an API key or a client token can."})
		}
	}
	return wrong
}

// ChangeProviderKey changes a provider key's name, its limits, its pool, the zone
// of its days, its secret and where it calls, and switches it off and on;
// everywhere within a second, the zone when the running day ends. Ledgers stay. A
// taken name is a Conflict, and so is a zone that is changed too often. Another
// secret, another address and a key that is switched on are checked live first: a
// secret that the provider refuses changes nothing (Refused
// provider_key_invalid), nor does another host without the secret (Refused
// secret_required).
func (s *Service) ChangeProviderKey(ctx context.Context, tenant, key uuid.UUID, c KeyChange) (ProviderKey, error) {
	if err := c.check(); err != nil {
		return ProviderKey{}, err
	}
	if c.Limits != nil {
		if wrong := checkProviderLimits(*c.Limits); len(wrong) > 0 {
			return ProviderKey{}, fault.InvalidFields(wrong...)
		}
	}
	to, err := s.readdressed(ctx, tenant, key, c)
	if err != nil {
		return ProviderKey{}, err
	}
	var k ProviderKey
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `
			select from provider_keys where tenant_id = $1 and provider_key_id = $2 for update`, tenant, key); err != nil {
			return err
		}
		before, err := readProviderKey(ctx, tx, tenant, key)
		if err != nil {
			return err
		}
		if to != nil {
			if err := s.readdress(ctx, tx, tenant, before, *to); err != nil {
				return err
			}
		}
		if err := s.rewriteProviderKey(ctx, tx, tenant, before, c); err != nil {
			return err
		}
		if k, err = readProviderKey(ctx, tx, tenant, key); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "provider_key.changed", id.ProviderKey.Format(key), diffOf(before, k))
	})
	return k, conflict(err)
}

// rewriteProviderKey stores what of a change needs no check.
func (s *Service) rewriteProviderKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k ProviderKey, c KeyChange) error {
	if c.Name != nil {
		if _, err := tx.Exec(ctx, `
			update provider_keys set name = $3 where tenant_id = $1 and provider_key_id = $2`, tenant, k.ID, *c.Name); err != nil {
			return err
		}
	}
	if c.Tier != nil {
		if _, err := tx.Exec(ctx, `
			update provider_keys set tier = $3 where tenant_id = $1 and provider_key_id = $2`, tenant, k.ID, *c.Tier); err != nil {
			return err
		}
	}
	if c.Disabled != nil && *c.Disabled {
		if _, err := tx.Exec(ctx, `
			update provider_keys set status = 'disabled', status_reason = '' where tenant_id = $1 and provider_key_id = $2`, tenant, k.ID); err != nil {
			return err
		}
	}
	if c.Zone != nil && *c.Zone != k.Zone {
		z, err := moved(k.Zones(), *c.Zone, s.now().Add(zoneNotice))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update provider_keys set zone = $3, past_zones = $4 where tenant_id = $1 and provider_key_id = $2`, tenant, k.ID, z.Zone, z.Past); err != nil {
			return err
		}
	}
	if c.Limits != nil {
		if _, err := ReplaceLimits(ctx, tx, tenant, OwnedByProviderKey, k.ID, *c.Limits); err != nil {
			return err
		}
	}
	if c.Pool != nil && *c.Pool != k.Pool.ID {
		if _, err := join(ctx, tx, tenant, k, *c.Pool); err != nil {
			return err
		}
	}
	return nil
}

func diffOf(before, k ProviderKey) keyDiff {
	return keyDiff{
		NameBefore: before.Name, Name: k.Name, LimitsBefore: before.Limits, Limits: k.Limits, ZoneBefore: before.Zone, Zone: k.Zone,
		PoolBefore: before.Pool.Name, Pool: k.Pool.Name, StatusBefore: string(before.Status), Status: string(k.Status), TierBefore: before.Tier, Tier: k.Tier,
		BaseURLBefore: before.BaseURL, BaseURL: k.BaseURL, Last4Before: before.Last4, Last4: k.Last4, FingerprintBefore: before.Fingerprint, Fingerprint: k.Fingerprint,
	}
}

// ChangeAPIKey changes a key's name and its own limits, and those of the keys
// that share its counter: a rotated pair stays alike. Everywhere within a second.
func (s *Service) ChangeAPIKey(ctx context.Context, tenant, key uuid.UUID, c KeyChange) (APIKey, error) {
	if err := c.check(); err != nil {
		return APIKey{}, err
	}
	var k APIKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := lockCounter(ctx, tx, tenant, key); err != nil {
			return err
		}
		before, err := ReadAPIKey(ctx, tx, tenant, key)
		if err != nil {
			return err
		}
		if c.Limits != nil && before.Kind != ForCustomer {
			return fault.InvalidFields(fault.Field{Pointer: "/limits", Code: "not_for_this_kind", Message: "A management key makes no calls to models, so it has no limits of its own."})
		}
		if err := c.applyToCounter(ctx, tx, tenant, before.Counter); err != nil {
			return err
		}
		if k, err = ReadAPIKey(ctx, tx, tenant, key); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "api_key.changed", id.APIKey.Format(key), keyDiff{NameBefore: before.Name, Name: k.Name, LimitsBefore: before.Limits, Limits: k.Limits})
	})
	return k, err
}

func (c KeyChange) applyToCounter(ctx context.Context, tx pgx.Tx, tenant, counter uuid.UUID) error {
	if c.Name != nil {
		if _, err := tx.Exec(ctx, `
			update api_keys set name = $3 where tenant_id = $1 and counter_id = $2`, tenant, counter, *c.Name); err != nil {
			return err
		}
	}
	if c.Limits == nil {
		return nil
	}
	rows, err := tx.Query(ctx, `
		select api_key_id from api_keys where tenant_id = $1 and counter_id = $2 order by api_key_id`, tenant, counter)
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	for _, k := range keys {
		if err == nil {
			_, err = ReplaceLimits(ctx, tx, tenant, OwnedByAPIKey, k, *c.Limits)
		}
	}
	return err
}

// keyDiff is what the audit keeps of a change.
type keyDiff struct {
	NameBefore        string         `json:"name_before"`
	Name              string         `json:"name"`
	LimitsBefore      []limits.Limit `json:"limits_before"`
	Limits            []limits.Limit `json:"limits"`
	ZoneBefore        string         `json:"zone_before,omitempty"`
	Zone              string         `json:"zone,omitempty"`
	PoolBefore        string         `json:"pool_before,omitempty"`
	Pool              string         `json:"pool,omitempty"`
	StatusBefore      string         `json:"status_before,omitempty"`
	Status            string         `json:"status,omitempty"`
	TierBefore        string         `json:"tier_before,omitempty"`
	Tier              string         `json:"tier,omitempty"`
	BaseURLBefore     string         `json:"base_url_before,omitempty"`
	BaseURL           string         `json:"base_url,omitempty"`
	Last4Before       string         `json:"last4_before,omitempty"`
	Last4             string         `json:"last4,omitempty"`
	FingerprintBefore string         `json:"fingerprint_before,omitempty"`
	Fingerprint       string         `json:"fingerprint,omitempty"`
}
