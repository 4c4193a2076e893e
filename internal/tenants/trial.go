package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
)

// Guessed is the bench that keeps calls of a model away, where each that does is
// a guess of ours; ok is false where the key does not cool, or something stated
// keeps it back.
func (k ProviderKey) Guessed(model string, now time.Time) (h KeyHealth, ok bool) {
	for _, x := range k.Health {
		if x.Model != EveryModel && x.Model != model || !x.Bench.Runs(now) {
			continue
		}
		if x.Bench.Source != limits.BenchHeuristic {
			return KeyHealth{}, false
		}
		if !ok || x.Bench.Until.After(h.Bench.Until) {
			h, ok = x, true
		}
	}
	return h, ok
}

// ClaimTrial tells whether the caller is the one whose call tries a model that
// cools: of all processes one, and none for so long after another.
func (s *Service) ClaimTrial(ctx context.Context, tenant, key uuid.UUID, model string, now time.Time, after time.Duration) (claimed bool, err error) {
	now = now.UTC().Truncate(time.Microsecond)
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update provider_health set tried_at = $4
			where tenant_id = $1 and provider_key_id = $2 and model = $3 and (tried_at is null or tried_at <= $5)`,
			tenant, key, model, now, now.Add(-after))
		claimed = tag.RowsAffected() == 1
		return err
	})
	return claimed, err
}
