package tenants

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// NewPool is what a pool starts from.
type NewPool struct {
	Provider string // "": that of its keys
	Name     string
	Zone     string // IANA, in which its days end; "": as the catalogue says
	Limits   []limits.Limit
	Keys     []uuid.UUID
}

// PoolChange is what of a pool may be changed; nil leaves it as it is. Limits and
// Keys are the whole new set.
type PoolChange struct {
	Name   *string
	Limits *[]limits.Limit
	Zone   *string
	Keys   *[]uuid.UUID
}

// AddPool makes a pool of provider keys. A taken name and a key of another pool
// are a Conflict.
func (s *Service) AddPool(ctx context.Context, tenant uuid.UUID, n NewPool) (Pool, error) {
	c := PoolChange{Name: &n.Name, Limits: &n.Limits}
	if n.Zone != "" {
		c.Zone = &n.Zone
	}
	if err := c.check(); err != nil {
		return Pool{}, err
	}
	var p Pool
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		provider, err := providerOfPool(ctx, tx, tenant, n)
		if err != nil {
			return err
		}
		p = Pool{ID: id.New(), Provider: provider.Slug, Name: n.Name, Zone: provider.Zone, CreatedAt: s.now().UTC().Truncate(time.Microsecond)}
		if n.Zone != "" {
			p.Zone = n.Zone
		}
		if _, err := tx.Exec(ctx, `
			insert into pools (tenant_id, pool_id, provider, name, zone, created_at)
			values ($1, $2, $3, $4, $5, $6)`, tenant, p.ID, p.Provider, p.Name, p.Zone, p.CreatedAt); err != nil {
			return err
		}
		if _, err := AddLimits(ctx, tx, tenant, OwnedByPool, p.ID, *c.Limits); err != nil {
			return err
		}
		if err := setMembers(ctx, tx, tenant, p, n.Keys); err != nil {
			return err
		}
		if p, err = readPool(ctx, tx, tenant, p.ID); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "pool.created", id.Pool.Format(p.ID), poolDiff{Name: p.Name, Limits: p.Limits, Keys: p.keyIDs()})
	})
	return p, conflict(err)
}

// providerOfPool is the one named, else that of the first key.
func providerOfPool(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, n NewPool) (catalogue.Provider, error) {
	slug := n.Provider
	if slug == "" && len(n.Keys) > 0 {
		k, err := readMember(ctx, tx, tenant, n.Keys[0], 0)
		if err != nil {
			return catalogue.Provider{}, err
		}
		slug = k.Provider
	}
	p, known := catalogue.Lookup(slug)
	if !known {
		return p, fault.InvalidFields(fault.Field{Pointer: "/provider", Code: "unknown_provider", Message: "Say which provider the pool's account is at, or which provider keys share it."})
	}
	return p, nil
}

func (c *PoolChange) check() error {
	common := KeyChange{Name: c.Name, Limits: c.Limits, Zone: c.Zone}
	if err := common.check(); err != nil {
		return err
	}
	if c.Limits = common.Limits; c.Limits != nil {
		if wrong := checkProviderLimits(*c.Limits); len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
	}
	return nil
}

// ChangePool changes a pool's name, limits, zone and keys; everywhere within a
// second, the zone when the running day ends. What its ledgers hold stays. A
// taken name, a key of another pool, and a zone that is changed too often are a
// Conflict.
func (s *Service) ChangePool(ctx context.Context, tenant, pool uuid.UUID, c PoolChange) (Pool, error) {
	if err := c.check(); err != nil {
		return Pool{}, err
	}
	var p Pool
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		before, err := lockPool(ctx, tx, tenant, pool)
		if err != nil {
			return err
		}
		if err := s.applyToPool(ctx, tx, tenant, before, c); err != nil {
			return err
		}
		if p, err = readPool(ctx, tx, tenant, pool); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "pool.changed", id.Pool.Format(pool), poolDiff{
			NameBefore: before.Name, Name: p.Name, LimitsBefore: before.Limits, Limits: p.Limits,
			ZoneBefore: before.Zone, Zone: p.Zone, KeysBefore: before.keyIDs(), Keys: p.keyIDs(),
		})
	})
	return p, conflict(err)
}

func (s *Service) applyToPool(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, p Pool, c PoolChange) error {
	if c.Name != nil {
		if _, err := tx.Exec(ctx, `update pools set name = $3 where tenant_id = $1 and pool_id = $2`, tenant, p.ID, *c.Name); err != nil {
			return err
		}
	}
	if c.Zone != nil && *c.Zone != p.Zone {
		z, err := moved(p.Zones(), *c.Zone, s.now().Add(zoneNotice))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update pools set zone = $3, past_zones = $4 where tenant_id = $1 and pool_id = $2`, tenant, p.ID, z.Zone, z.Past); err != nil {
			return err
		}
	}
	if c.Limits != nil {
		if _, err := ReplaceLimits(ctx, tx, tenant, OwnedByPool, p.ID, *c.Limits); err != nil {
			return err
		}
	}
	if c.Keys != nil {
		return setMembers(ctx, tx, tenant, p, *c.Keys)
	}
	return nil
}

// RemovePool takes a pool apart: from then on each of its keys counts by its own
// limits and what was learned of it.
func (s *Service) RemovePool(ctx context.Context, tenant, pool uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		p, err := lockPool(ctx, tx, tenant, pool)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update pools set removed_at = $3 where tenant_id = $1 and pool_id = $2`, tenant, pool, s.now()); err != nil {
			return err
		}
		if err := setMembers(ctx, tx, tenant, p, nil); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "pool.removed", id.Pool.Format(pool), poolDiff{NameBefore: p.Name, KeysBefore: p.keyIDs()})
	})
}

func lockPool(ctx context.Context, tx pgx.Tx, tenant, pool uuid.UUID) (Pool, error) {
	if _, err := tx.Exec(ctx, `select from pools where tenant_id = $1 and pool_id = $2 for update`, tenant, pool); err != nil {
		return Pool{}, err
	}
	return readPool(ctx, tx, tenant, pool)
}

// setMembers makes these the keys of a locked pool.
func setMembers(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, p Pool, keys []uuid.UUID) error {
	for i, key := range keys {
		k, err := readMember(ctx, tx, tenant, key, i)
		if err != nil {
			return err
		}
		if wrong := p.refuses(k, "/provider_keys/"+strconv.Itoa(i)); wrong != nil {
			return wrong
		}
	}
	if keys == nil {
		keys = []uuid.UUID{} // null would be any
	}
	if _, err := tx.Exec(ctx, `
		update provider_keys set pool_id = case when provider_key_id = any($3) then $2::uuid end
		where tenant_id = $1 and removed_at is null and (pool_id = $2 or provider_key_id = any($3))`, tenant, p.ID, keys); err != nil {
		return err
	}
	return oneAddress(ctx, tx, tenant, p, "/provider_keys")
}

// oneAddress refuses a pool of keys of different custom providers: there, the
// address is the provider.
func oneAddress(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, p Pool, pointer string) error {
	if known, _ := catalogue.Lookup(p.Provider); !known.NeedsBaseURL {
		return nil
	}
	var addresses int
	err := tx.QueryRow(ctx, `
		select count(distinct base_url) from provider_keys
		where tenant_id = $1 and pool_id = $2 and removed_at is null`, tenant, p.ID).Scan(&addresses)
	if err == nil && addresses > 1 {
		return otherProvider(pointer)
	}
	return err
}

func otherProvider(pointer string) error {
	return fault.InvalidFields(fault.Field{Pointer: pointer, Code: "other_provider", Message: "Keys of a pool share one account, so they are all of one provider, and of custom ones all at one address."})
}

// member is what of a provider key says whether it may be in a pool.
type member struct {
	Provider string
	Pool     uuid.UUID // zero: none
}

func readMember(ctx context.Context, tx pgx.Tx, tenant, key uuid.UUID, i int) (m member, err error) {
	err = tx.QueryRow(ctx, `
		select provider, coalesce(pool_id, '00000000-0000-0000-0000-000000000000') from provider_keys
		where tenant_id = $1 and provider_key_id = $2 and removed_at is null for update`, tenant, key).Scan(&m.Provider, &m.Pool)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, Missing("/provider_keys/"+strconv.Itoa(i), "provider key")
	}
	return m, err
}

// refuses says why a key cannot be in the pool.
func (p Pool) refuses(m member, pointer string) error {
	switch {
	case m.Provider != p.Provider:
		return otherProvider(pointer)
	case m.Pool != uuid.Nil && m.Pool != p.ID:
		const taken = "This key is in another pool. Take it out there first."
		return fault.New(fault.Conflict, "in_other_pool", taken).With(fault.Field{Pointer: pointer, Code: "in_other_pool", Message: taken})
	}
	return nil
}

// join puts a key into a pool, out of any other it was in; zero: into none.
func join(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, k ProviderKey, pool uuid.UUID) (Pool, error) {
	if pool == uuid.Nil {
		_, err := tx.Exec(ctx, `
			update provider_keys set pool_id = null where tenant_id = $1 and provider_key_id = $2 and pool_id is not null`, tenant, k.ID)
		return Pool{}, err
	}
	p, err := lockPool(ctx, tx, tenant, pool)
	if fault.Is(err, fault.NotFound) {
		return p, Missing("/pool", "pool")
	}
	if err != nil {
		return p, err
	}
	if wrong := p.refuses(member{Provider: k.Provider}, "/pool"); wrong != nil {
		return p, wrong
	}
	if _, err := tx.Exec(ctx, `
		update provider_keys set pool_id = $3 where tenant_id = $1 and provider_key_id = $2`, tenant, k.ID, pool); err != nil {
		return p, err
	}
	if err := oneAddress(ctx, tx, tenant, p, "/pool"); err != nil {
		return p, err
	}
	return readPool(ctx, tx, tenant, pool)
}

func (p Pool) keyIDs() []string {
	out := make([]string, len(p.Keys))
	for i, k := range p.Keys {
		out[i] = id.ProviderKey.Format(k)
	}
	return out
}

// poolDiff is what the audit keeps of a change.
type poolDiff struct {
	NameBefore   string         `json:"name_before,omitempty"`
	Name         string         `json:"name,omitempty"`
	LimitsBefore []limits.Limit `json:"limits_before,omitempty"`
	Limits       []limits.Limit `json:"limits,omitempty"`
	ZoneBefore   string         `json:"zone_before,omitempty"`
	Zone         string         `json:"zone,omitempty"`
	KeysBefore   []string       `json:"provider_keys_before,omitempty"`
	Keys         []string       `json:"provider_keys,omitempty"`
}
