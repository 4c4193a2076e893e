package demo

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/tenants"
)

// addProvider writes the row of a provider key that reaches nobody: no secret
// is kept, and no provider is asked about one.
func (f filler) addProvider(ctx context.Context, tenant uuid.UUID, k provider) error {
	key := id.New()
	err := f.app.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into provider_keys (tenant_id, provider_key_id, provider, name, base_url, last4, status, status_reason, models, models_listed, created_at, verified_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, $10, case when $7 = 'active' then $10::timestamptz end)`,
			tenant, key, k.slug, k.name, k.baseURL, k.last4, k.status, k.reason, k.models, f.o.Now.AddDate(0, 0, -f.o.Days))
		if err != nil {
			return err
		}
		return f.addHealth(ctx, tx, tenant, key, k)
	})
	if err != nil || k.limits == nil {
		return err
	}
	_, err = f.then.ChangeProviderKey(ctx, tenant, key, tenants.KeyChange{Limits: &k.limits})
	return err
}

// addHealth is what the calls of such a key have shown.
func (f filler) addHealth(ctx context.Context, tx pgx.Tx, tenant, key uuid.UUID, k provider) error {
	for _, r := range k.rests {
		var until *time.Time
		if r.until != 0 {
			at := f.o.Now.Add(r.until)
			until = &at
		}
		_, err := tx.Exec(ctx, `
			insert into provider_health (tenant_id, provider_key_id, model, source, reason, status, detail, since, until, step, limited_at, failed_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $8, $8)`,
			tenant, key, r.model, r.source, r.reason, r.status, r.detail, f.o.Now.Add(r.since), until, r.step)
		if err != nil {
			return err
		}
	}
	for _, l := range k.learned {
		_, err := tx.Exec(ctx, `
			insert into learned_limits (tenant_id, provider_key_id, model, dimension, win, amount, stated_in, detail, learned_at, seen_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`,
			tenant, key, l.model, l.dimension, l.window, l.amount, l.from, l.detail, f.o.Now.Add(-3*time.Hour))
		if err != nil {
			return err
		}
	}
	return nil
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
