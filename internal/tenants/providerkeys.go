package tenants

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/outbound"
)

const providerKeyColumns = `provider_key_id, provider, name, base_url, last4, fingerprint, status, status_reason, zone,
	models, models_listed, created_at, verified_at, past_zones, pool_id, tier`

func scanProviderKey(row pgx.CollectableRow) (k ProviderKey, err error) {
	var pool *uuid.UUID
	err = row.Scan(&k.ID, &k.Provider, &k.Name, &k.BaseURL, &k.Last4, &k.Fingerprint, &k.Status, &k.StatusReason, &k.Zone,
		&k.Models, &k.ModelsListed, &k.CreatedAt, &k.VerifiedAt, &k.PastZones, &pool, &k.Tier)
	if pool != nil {
		k.Pool.ID = *pool
	}
	return k, err
}

// ProviderKey reads one provider key with its limits.
func (s *Service) ProviderKey(ctx context.Context, tenant, key uuid.UUID) (ProviderKey, error) {
	var k ProviderKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		k, err = readProviderKey(ctx, tx, tenant, key)
		return err
	})
	return k, err
}

func readProviderKey(ctx context.Context, tx pgx.Tx, tenant, key uuid.UUID) (ProviderKey, error) {
	rows, err := tx.Query(ctx, `
		select `+providerKeyColumns+` from provider_keys
		where tenant_id = $1 and provider_key_id = $2 and removed_at is null`, tenant, key)
	if err != nil {
		return ProviderKey{}, err
	}
	k, err := pgx.CollectExactlyOneRow(rows, scanProviderKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, NotFound("provider key")
	}
	if err != nil {
		return k, err
	}
	one := []ProviderKey{k}
	err = placeAll(ctx, tx, tenant, one)
	return one[0], err
}

// ProviderKeys lists provider keys with their limits, newest first, after an
// id.
func (s *Service) ProviderKeys(ctx context.Context, tenant, after uuid.UUID, limit int) (Page[ProviderKey], error) {
	var list []ProviderKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+providerKeyColumns+` from provider_keys
			where tenant_id = $1 and removed_at is null and provider_key_id < $2
			order by provider_key_id desc limit $3`, tenant, After(after), limit+1)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, scanProviderKey); err != nil {
			return err
		}
		return placeAll(ctx, tx, tenant, list)
	})
	return PageOf(list, limit, func(k ProviderKey) uuid.UUID { return k.ID }), err
}

// placeAll adds to keys their limits, their health, what was learned, and their
// pools.
func placeAll(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []ProviderKey) error {
	ids := make([]uuid.UUID, len(list))
	for i, k := range list {
		ids[i] = k.ID
	}
	byOwner, err := LimitsOf(ctx, tx, tenant, OwnedByProviderKey, ids)
	if err != nil {
		return err
	}
	health, err := readHealth(ctx, tx, tenant, ids)
	if err != nil {
		return err
	}
	learned, err := readLearned(ctx, tx, tenant, ids)
	if err != nil {
		return err
	}
	pools, err := poolsOf(ctx, tx, tenant, list)
	for i, k := range list {
		list[i].Pool = pools[k.Pool.ID]
		list[i].Limits, list[i].Health, list[i].Learned = k.placed(byOwner[k.ID]), health[k.ID], learned[k.ID]
	}
	return err
}

// VerifyProviderKey asks the provider again and stores what it said. A key that
// is switched off stays so.
func (s *Service) VerifyProviderKey(ctx context.Context, tenant, key uuid.UUID) (ProviderKey, error) {
	k, e, err := s.Endpoint(ctx, tenant, key)
	if err != nil {
		return k, err
	}
	said := s.verified(ctx, k, e)
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update provider_keys set status = case when status = 'disabled' then status else $3 end, status_reason = $4, models = $5, verified_at = $6
			where tenant_id = $1 and provider_key_id = $2 and removed_at is null and fingerprint = $7 and base_url = $8`,
			tenant, key, string(said.Status), said.StatusReason, said.Models, said.VerifiedAt, k.Fingerprint, k.BaseURL)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 { // else it has another secret by now, or is gone
			if err := checked(ctx, tx, tenant, said); err != nil {
				return err
			}
			if err := Audit(ctx, tx, tenant, "provider_key.verified", id.ProviderKey.Format(key), map[string]string{"status": string(said.Status)}); err != nil {
				return err
			}
		}
		k, err = readProviderKey(ctx, tx, tenant, key)
		return err
	})
	return k, err
}

// RemoveProviderKey takes a provider key out of use and forgets its secret. Its
// name stays in history.
func (s *Service) RemoveProviderKey(ctx context.Context, tenant, key uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update provider_keys set removed_at = $3, sealed_secret = null
			where tenant_id = $1 and provider_key_id = $2 and removed_at is null`, tenant, key, s.now())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return NotFound("provider key")
		}
		return Audit(ctx, tx, tenant, "provider_key.removed", id.ProviderKey.Format(key), struct{}{})
	})
}

// Endpoint opens one provider key for calling.
func (s *Service) Endpoint(ctx context.Context, tenant, key uuid.UUID) (ProviderKey, catalogue.Endpoint, error) {
	var k ProviderKey
	var e catalogue.Endpoint
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if k, err = readProviderKey(ctx, tx, tenant, key); err != nil {
			return err
		}
		e, err = s.endpoint(ctx, tx, tenant, k)
		return err
	})
	return k, e, err
}

func (s *Service) endpoint(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k ProviderKey) (catalogue.Endpoint, error) {
	var sealed []byte
	err := tx.QueryRow(ctx, `
		select sealed_secret from provider_keys
		where tenant_id = $1 and provider_key_id = $2`, tenant, k.ID).Scan(&sealed)
	if err != nil {
		return catalogue.Endpoint{}, err
	}
	secret, err := s.Open(ctx, tx, tenant, k.ID, sealed)
	if err != nil {
		return catalogue.Endpoint{}, err
	}
	p, _ := catalogue.Lookup(k.Provider)
	return catalogue.Endpoint{Tenant: tenant, Provider: p, BaseURL: k.BaseURL, Secret: secret}, nil
}

// Route is a provider key as calls take it. Broken says that its secret does
// not open: such a key is never called.
type Route struct {
	Key      ProviderKey
	Endpoint catalogue.Endpoint
	Vendor   catalogue.Provider // who is really called
	Pool     Pool               // whose quota the key shares; zero: none
	Limits   *limits.Set        // the pool's and the key's, ready for decisions
	Broken   error
	Local    bool // it reaches this machine or a private network

	learned map[string]*limits.Set // of models of which something was learned
	streaks map[string]bool        // models that failed last, over any keys
}

// LimitsFor are the limits of pool and key for calls of a model, with what was
// learned: compiled once.
func (r Route) LimitsFor(model string) *limits.Set {
	if s, ok := r.learned[model]; ok {
		return s
	}
	return r.Limits
}

// Marked tells whether a success of a model through the key changes what is
// known: it ends a guess, or clears ladder or streak.
func (r Route) Marked(model string) bool {
	return r.streaks[model] || slices.ContainsFunc(r.Key.Health, func(h KeyHealth) bool {
		return (h.Model == model || h.Model == EveryModel) && h.marked()
	})
}

// counted is what was learned that counts for the key: of any key of its pool.
func (k ProviderKey) counted() []limits.Learned {
	if k.Pool.ID != uuid.Nil {
		return k.Pool.Learned
	}
	return k.Learned
}

func (k ProviderKey) withLearned() map[string]*limits.Set {
	out := map[string]*limits.Set{}
	for _, l := range k.counted() {
		if out[l.Model] == nil {
			out[l.Model] = limits.Compile(k.LimitsFor(l.Model))
		}
	}
	return out
}

// Configured are the limits that somebody set for calls through the key: its
// pool's and its own.
func (k ProviderKey) Configured() []limits.Limit { return slices.Concat(k.Pool.Limits, k.Limits) }

// LimitsFor is what counts for calls of a model: what is configured of pool and
// key, and what was learned where that is tighter. What was learned of a key of a
// pool is the pool's.
func (k ProviderKey) LimitsFor(model string) []limits.Limit {
	if k.Pool.ID != uuid.Nil {
		return append(k.Pool.LimitsFor(model), k.Limits...)
	}
	return limits.WithLearned(k.Limits, k.Learned, model, limits.Scope{Kind: limits.ScopeProviderKey, ID: k.ID, Name: k.Name}, k.Zones())
}

// Routes opens every provider key of a tenant that is not switched off, oldest
// first, the practice provider last. Whether the provider accepts a key is in
// its status.
func (s *Service) Routes(ctx context.Context, tenant uuid.UUID) ([]Route, error) {
	var out []Route
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		out = nil // a transaction may run again
		rows, err := tx.Query(ctx, `
			select `+providerKeyColumns+` from provider_keys
			where tenant_id = $1 and removed_at is null and status <> 'disabled'
			order by provider = 'practice', provider_key_id`, tenant)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, scanProviderKey)
		if err != nil {
			return err
		}
		if err := placeAll(ctx, tx, tenant, list); err != nil {
			return err
		}
		streaks, err := readStreaks(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for _, k := range list {
			e, err := s.endpoint(ctx, tx, tenant, k)
			if err != nil && fault.Of(err).Code != "credential_unavailable" {
				return err
			}
			out = append(out, Route{
				Key: k, Pool: k.Pool, Endpoint: e, Vendor: e.Vendor(), Limits: limits.Compile(k.Pool.Limits, k.Limits), Broken: err, Local: outbound.Local(k.BaseURL), learned: k.withLearned(), streaks: streaks,
			})
		}
		return nil
	})
	return out, err
}
