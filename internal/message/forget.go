package message

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Forget deletes every message that is about one of these objects, by their public
// ids, or about an override of one, in the transaction that erases whom they name.
// One that waits is not sent.
func Forget(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, objects ...string) error {
	_, err := tx.Exec(ctx, `
		delete from webhook_messages
		where tenant_id = $1 and (body::jsonb #>> '{data,id}' = any($2) or type like 'override.%' and body::jsonb #>> '{data,customer}' = any($2))`, tenant, objects)
	return err
}
