package billing

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/tenants"
)

// FindPlans are the newest plans whose name holds text, in whatever case, or
// whose id is exact. They come without their versions.
func (s *Service) FindPlans(ctx context.Context, tenant uuid.UUID, text string, exact uuid.UUID, limit int) ([]Plan, error) {
	var list []Plan
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select plan_id, name, created_at from plans
			where tenant_id = $1 and removed_at is null and quote_id is null and (name ilike $2 or plan_id = $3)
			order by plan_id desc limit $4`, tenant, tenants.Containing(text), exact, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Plan, err error) {
			err = row.Scan(&p.ID, &p.Name, &p.CreatedAt)
			return p, err
		})
		return err
	})
	return list, err
}
