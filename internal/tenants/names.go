package tenants

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Named is what a thing is or was called. Gone tells that it was removed, or of
// a key, that none of its counter works any more.
type Named struct {
	Name  string
	Of    string // of a key: its customer's name; of a provider key or pool: the provider
	Last4 string // of keys and provider keys
	Gone  bool
}

// Names are the names of customers, API key counters, provider keys and pools by
// their ids, removed ones included. An id that is not the tenant's is not in it.
func (s *Service) Names(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Named, error) {
	names := map[uuid.UUID]Named{}
	if len(ids) == 0 {
		return names, nil
	}
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select customer_id, name, '', '', removed_at is not null
			from customers
			where tenant_id = $1 and customer_id = any($2)
			union all
			select * from (
				select distinct on (k.counter_id) k.counter_id, k.name, coalesce(c.name, ''), k.last4,
				       k.revoked_at is not null or coalesce(k.expires_at <= $3, false) as gone
				from api_keys k
				left join customers c on c.tenant_id = k.tenant_id and c.customer_id = k.customer_id
				where k.tenant_id = $1 and k.counter_id = any($2)
				order by k.counter_id, gone, k.api_key_id desc
			) keys
			union all
			select provider_key_id, name, provider, last4, removed_at is not null
			from provider_keys
			where tenant_id = $1 and provider_key_id = any($2)
			union all
			select pool_id, name, provider, '', removed_at is not null
			from pools
			where tenant_id = $1 and pool_id = any($2)`, tenant, ids, s.now())
		if err != nil {
			return err
		}
		var id uuid.UUID
		var n Named
		_, err = pgx.ForEachRow(rows, []any{&id, &n.Name, &n.Of, &n.Last4, &n.Gone}, func() error {
			names[id] = n
			return nil
		})
		return err
	})
	return names, err
}
