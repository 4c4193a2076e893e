package tenants

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
)

// Pool is provider keys of one provider that share one account there, and so
// one quota: its ledgers are the same for all of them. The zero Pool is none.
type Pool struct {
	ID        uuid.UUID
	Provider  string
	Name      string
	Zone      string // in which the provider's day ends, as it was last corrected
	PastZones []limits.PastZone
	Limits    []limits.Limit
	Learned   []limits.Learned // of any of its keys, as it was stated last
	Keys      []uuid.UUID      // that are in use, oldest first
	CreatedAt time.Time
}

// Zones are those in which the provider's days have ended and end.
func (p Pool) Zones() limits.Zones { return limits.Zones{Zone: p.Zone, Past: p.PastZones} }

func (p Pool) scope() limits.Scope {
	return limits.Scope{Kind: limits.ScopePool, ID: p.ID, Name: p.Name}
}

// LimitsFor is what counts for calls of a model through any of the pool's keys:
// what is configured, and what was learned where that is tighter.
func (p Pool) LimitsFor(model string) []limits.Limit {
	return limits.WithLearned(p.Limits, p.Learned, model, p.scope(), p.Zones())
}

const poolColumns = `pool_id, provider, name, zone, past_zones, created_at`

func scanPool(row pgx.CollectableRow) (p Pool, err error) {
	err = row.Scan(&p.ID, &p.Provider, &p.Name, &p.Zone, &p.PastZones, &p.CreatedAt)
	p.CreatedAt = p.CreatedAt.UTC()
	return p, err
}

// Pool reads one pool.
func (s *Service) Pool(ctx context.Context, tenant, pool uuid.UUID) (Pool, error) {
	var p Pool
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		p, err = readPool(ctx, tx, tenant, pool)
		return err
	})
	return p, err
}

func readPool(ctx context.Context, tx pgx.Tx, tenant, pool uuid.UUID) (Pool, error) {
	rows, err := tx.Query(ctx, `
		select `+poolColumns+` from pools
		where tenant_id = $1 and pool_id = $2 and removed_at is null`, tenant, pool)
	if err != nil {
		return Pool{}, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPool)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, NotFound("pool")
	}
	if err != nil {
		return p, err
	}
	one := []Pool{p}
	err = fillPools(ctx, tx, tenant, one)
	return one[0], err
}

// Pools lists pools, newest first, after an id.
func (s *Service) Pools(ctx context.Context, tenant, after uuid.UUID, limit int) (Page[Pool], error) {
	var list []Pool
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+poolColumns+` from pools
			where tenant_id = $1 and removed_at is null and pool_id < $2
			order by pool_id desc limit $3`, tenant, After(after), limit+1)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, scanPool); err != nil {
			return err
		}
		return fillPools(ctx, tx, tenant, list)
	})
	return PageOf(list, limit, func(p Pool) uuid.UUID { return p.ID }), err
}

// poolsOf are the pools of keys, by id.
func poolsOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, keys []ProviderKey) (map[uuid.UUID]Pool, error) {
	var ids []uuid.UUID
	for _, k := range keys {
		if k.Pool.ID != uuid.Nil && !slices.Contains(ids, k.Pool.ID) {
			ids = append(ids, k.Pool.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		select `+poolColumns+` from pools
		where tenant_id = $1 and pool_id = any($2) and removed_at is null`, tenant, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanPool)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID]Pool{}
	err = fillPools(ctx, tx, tenant, list)
	for _, p := range list {
		out[p.ID] = p
	}
	return out, err
}

// fillPools adds to pools their limits, their keys, and what was learned.
func fillPools(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, list []Pool) error {
	ids := make([]uuid.UUID, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	byOwner, err := LimitsOf(ctx, tx, tenant, OwnedByPool, ids)
	if err != nil {
		return err
	}
	members, err := readMembers(ctx, tx, tenant, ids)
	if err != nil {
		return err
	}
	learned, err := readLearned(ctx, tx, tenant, slices.Concat(mapValues(members)...))
	for i, p := range list {
		list[i].Limits = InZones(Placed(byOwner[p.ID], p.scope()), p.Zones())
		list[i].Keys = members[p.ID]
		list[i].Learned = lastStated(members[p.ID], learned)
	}
	return err
}

func mapValues(m map[uuid.UUID][]uuid.UUID) (out [][]uuid.UUID) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func readMembers(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, pools []uuid.UUID) (map[uuid.UUID][]uuid.UUID, error) {
	rows, err := tx.Query(ctx, `
		select pool_id, provider_key_id from provider_keys
		where tenant_id = $1 and pool_id = any($2) and removed_at is null
		order by provider_key_id`, tenant, pools)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]uuid.UUID{}
	var pool, key uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&pool, &key}, func() error {
		out[pool] = append(out[pool], key)
		return nil
	})
	return out, err
}

// lastStated is what was learned of several keys of one account: of each limit
// what was stated last, and of two stated at once the smaller.
func lastStated(keys []uuid.UUID, learned map[uuid.UUID][]limits.Learned) []limits.Learned {
	var all []limits.Learned
	for _, k := range keys {
		all = append(all, learned[k]...)
	}
	same := func(a, b limits.Learned) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Window, b.Window))
	}
	slices.SortStableFunc(all, func(a, b limits.Learned) int {
		return cmp.Or(same(a, b), b.SeenAt.Compare(a.SeenAt), cmp.Compare(a.Amount, b.Amount))
	})
	return slices.CompactFunc(all, func(a, b limits.Learned) bool { return same(a, b) == 0 })
}
