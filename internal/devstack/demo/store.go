package demo

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
)

// addProvider writes the row of a provider key that reaches nobody: no secret
// is kept, and no provider is asked about one.
func (f filler) addProvider(ctx context.Context, tenant uuid.UUID, k provider) error {
	return f.app.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into provider_keys (tenant_id, provider_key_id, provider, name, base_url, last4, status, status_reason, models, models_listed, created_at, verified_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, $10, case when $7 = 'active' then $10::timestamptz end)`,
			tenant, id.New(), k.slug, k.name, k.baseURL, k.last4, k.status, k.reason, k.models, f.o.Now.AddDate(0, 0, -f.o.Days))
		return err
	})
}

// tenantOf is the tenant that a person of the cast owns.
func (f filler) tenantOf(ctx context.Context, email string) (tenant uuid.UUID, err error) {
	err = f.app.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			select m.tenant_id from users u cross join lateral lookup_memberships(u.user_id) m
			where u.email = $1
			order by m.tenant_id limit 1`, email).Scan(&tenant)
	})
	return tenant, err
}
