package billing

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/tenants"
)

// Forget takes what was written about a customer out of its overrides, in the
// transaction that erases the customer. Limits and times stay.
func Forget(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		update overrides set reason = $3 where tenant_id = $1 and customer_id = $2`, tenant, customer, tenants.ErasedName)
	return err
}
