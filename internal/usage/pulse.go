package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Pulse changes when calls of a tenant are stored. Two are compared, and mean
// nothing else.
type Pulse struct {
	Since  time.Time
	Calls  int64
	Tokens int64
}

// Pulse reads the rollups of the last hour or two: cheap enough to be asked for
// once a second.
func (r *Reports) Pulse(ctx context.Context, tenant uuid.UUID) (Pulse, error) {
	p := Pulse{Since: r.now().UTC().Truncate(time.Hour).Add(-time.Hour)}
	err := r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			select coalesce(sum(requests + refused), 0)::bigint,
			       coalesce(sum(input_tokens + cached_input_tokens + cache_write_tokens + output_tokens + reasoning_tokens), 0)::bigint
			from usage_minute
			where tenant_id = $1 and bucket >= $2`, tenant, p.Since).Scan(&p.Calls, &p.Tokens)
	})
	return p, err
}
