package exports

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Forget takes away a tenant's files, which may name a customer that is erased
// and its end users, in the transaction of whoever erases it. Files that are being
// made, or wait, are begun a minute later, when its calls name nobody any more.
func Forget(ctx context.Context, tx pgx.Tx, tenant, _ uuid.UUID) error {
	for _, sql := range []string{
		`delete from export_chunks where tenant_id = $1`, `
		update exports
		set state = 'failed', reason = 'A customer was erased after this file was made. Ask for another one.', sha256 = null, bytes = 0, written = 0
		where tenant_id = $1 and state = 'ready'`, `
		update exports
		set state = 'queued', lease = null, begun = greatest(begun - 1, 0), progress = 0, written = 0, bytes = 0, next_at = now() + interval '1 minute'
		where tenant_id = $1 and state in ('queued', 'running')`,
	} {
		if _, err := tx.Exec(ctx, sql, tenant); err != nil {
			return err
		}
	}
	return nil
}
