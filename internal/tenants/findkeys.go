package tenants

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// FindAPIKeys are the newest keys of some kinds whose name holds text, in
// whatever case, whose shown end is text, or whose id is exact. They come
// without their limits.
func (s *Service) FindAPIKeys(ctx context.Context, tenant uuid.UUID, kinds []KeyKind, text string, exact uuid.UUID, limit int) ([]APIKey, error) {
	var list []APIKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+keyColumns+` from api_keys
			where tenant_id = $1 and kind = any($2) and (name ilike $3 or last4 = $4 or api_key_id = $5)
			order by revoked_at is not null, api_key_id desc limit $6`, tenant, kinds, Containing(text), storable(text), exact, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanKey)
		return err
	})
	return list, err
}

// FindProviderKeys are the newest provider keys whose name or provider holds
// text, in whatever case, or whose id is exact. They come without their limits.
func (s *Service) FindProviderKeys(ctx context.Context, tenant uuid.UUID, text string, exact uuid.UUID, limit int) ([]ProviderKey, error) {
	var list []ProviderKey
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+providerKeyColumns+` from provider_keys
			where tenant_id = $1 and removed_at is null and (name ilike $2 or provider ilike $2 or provider_key_id = $3)
			order by provider_key_id desc limit $4`, tenant, Containing(text), exact, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanProviderKey)
		return err
	})
	return list, err
}
