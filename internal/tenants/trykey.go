package tenants

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
)

// NoteTry writes down that somebody makes a live call with a key from inside,
// without its secret: the call counts, and is billed, as its customer's.
func (s *Service) NoteTry(ctx context.Context, tenant, key uuid.UUID, model string) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		return Audit(ctx, tx, tenant, "api_key.tried", id.APIKey.Format(key), map[string]string{"model": model})
	})
}
