package tenants

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// readLearned reads what was learned of keys.
func readLearned(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, keys []uuid.UUID) (map[uuid.UUID][]limits.Learned, error) {
	rows, err := tx.Query(ctx, `
		select provider_key_id, model, dimension, win, amount, stated_in, detail, learned_at, seen_at from learned_limits
		where tenant_id = $1 and provider_key_id = any($2)
		order by provider_key_id, model, dimension, win`, tenant, keys)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]limits.Learned{}
	var key uuid.UUID
	var l limits.Learned
	_, err = pgx.ForEachRow(rows, []any{&key, &l.Model, &l.Dimension, &l.Window, &l.Amount, &l.From, &l.Detail, &l.LearnedAt, &l.SeenAt}, func() error {
		l.LearnedAt, l.SeenAt = l.LearnedAt.UTC(), l.SeenAt.UTC()
		out[key] = append(out[key], l)
		return nil
	})
	return out, err
}

// Learn keeps what a provider stated of its limits, as limits.Learn found it.
// Every replica counts by it within a second.
func (s *Service) Learn(ctx context.Context, tenant, key uuid.UUID, list []limits.Learned) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		for _, l := range list {
			_, err := tx.Exec(ctx, `
				insert into learned_limits (tenant_id, provider_key_id, model, dimension, win, amount, stated_in, detail, learned_at, seen_at)
				values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
				on conflict (tenant_id, provider_key_id, model, dimension, win) do update
				set amount = excluded.amount, stated_in = excluded.stated_in, detail = excluded.detail, seen_at = excluded.seen_at,
				    learned_at = case when learned_limits.amount = excluded.amount then learned_limits.learned_at else excluded.learned_at end
				where learned_limits.seen_at <= excluded.seen_at`,
				tenant, key, l.Model, string(l.Dimension), string(l.Window), l.Amount, string(l.From), l.Detail, l.LearnedAt, l.SeenAt)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Forgotten is which learned limits of a provider key a person forgets; what is
// left empty stands for any.
type Forgotten struct {
	Model     string
	Dimension limits.Dimension
	Window    limits.Window
}

var learnable = []limits.Dimension{limits.DimensionRequests, limits.DimensionTokens, limits.DimensionInputTokens, limits.DimensionOutputTokens}

// ForgetLearned drops learned limits and says how many. What the provider still
// states is learned again by the next answer that does.
func (s *Service) ForgetLearned(ctx context.Context, tenant, key uuid.UUID, f Forgotten) (n int, err error) {
	wrong := checkOneModel(f.Model)
	if f.Dimension != "" && !slices.Contains(learnable, f.Dimension) {
		wrong = append(wrong, fault.Field{Pointer: "/dimension", Code: "unknown_value", Message: "No such dimension is learned: use requests, tokens, input_tokens or output_tokens."})
	}
	if f.Window != "" && f.Window != limits.WindowMinute && f.Window != limits.WindowDay {
		wrong = append(wrong, fault.Field{Pointer: "/window", Code: "unknown_value", Message: "No such window is learned: use minute or day."})
	}
	if len(wrong) > 0 {
		return 0, fault.InvalidFields(wrong...)
	}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		n = 0
		if _, err := readProviderKey(ctx, tx, tenant, key); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			delete from learned_limits
			where tenant_id = $1 and provider_key_id = $2 and $3 in ('', model) and $4 in ('', dimension) and $5 in ('', win)`,
			tenant, key, f.Model, string(f.Dimension), string(f.Window))
		if n = int(tag.RowsAffected()); err != nil || n == 0 {
			return err
		}
		return Audit(ctx, tx, tenant, "provider_key.learned_forgotten", id.ProviderKey.Format(key),
			map[string]string{"model": f.Model, "dimension": string(f.Dimension), "window": string(f.Window)})
	})
	return n, err
}
