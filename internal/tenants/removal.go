package tenants

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Removal is what the end of a provider key would mean now.
type Removal struct {
	Models    []string // that no other usable provider key serves
	Others    int64    // usable provider keys that stay
	Keys      int64    // customers' keys that work
	Customers int64    // to whom those belong
	Lines     int64    // of aliases, that name the key alone
}

// RemovalOf counts what taking a provider key out of use would mean. NotFound
// for one that is not there.
func (s *Service) RemovalOf(ctx context.Context, tenant, key uuid.UUID) (Removal, error) {
	var r Removal
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := readProviderKey(ctx, tx, tenant, key); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			with others as (
				select models from provider_keys
				where tenant_id = $1 and provider_key_id <> $2 and removed_at is null and status in ('active', 'unverified')
			), working as (
				select customer_id from api_keys
				where tenant_id = $1 and kind = 'customer' and revoked_at is null and (expires_at is null or expires_at > $3)
			)
			select
				array(select m from provider_keys k, unnest(k.models) m
					where k.tenant_id = $1 and k.provider_key_id = $2 and not exists (select from others o where m = any(o.models))
					order by m),
				(select count(*) from others), (select count(*) from working), (select count(distinct customer_id) from working),
				(select count(*) from alias_candidates where tenant_id = $1 and provider_key_id = $2)`,
			tenant, key, s.now()).Scan(&r.Models, &r.Others, &r.Keys, &r.Customers, &r.Lines)
	})
	return r, err
}
