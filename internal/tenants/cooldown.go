package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
)

// Cooldowns are the benches of a provider key that run now, that of every model
// first.
func (k ProviderKey) Cooldowns(now time.Time) (out []KeyHealth) {
	for _, h := range k.Health {
		if h.Bench.Runs(now) {
			out = append(out, h)
		}
	}
	return out
}

// HealthOf is what is known of a model, or of EveryModel; of one that is well
// its version may be 0.
func (k ProviderKey) HealthOf(model string) KeyHealth {
	for _, h := range k.Health {
		if h.Model == model {
			return h
		}
	}
	return KeyHealth{Key: k.ID, Model: model}
}

// Cools is the bench that keeps calls of a model away from the key the longest;
// ok is false where none does.
func (k ProviderKey) Cools(model string, now time.Time) (b limits.Bench, ok bool) {
	for _, h := range k.Health {
		if h.Model != EveryModel && h.Model != model || !h.Bench.Runs(now) {
			continue
		}
		if !ok || !b.Until.IsZero() && (h.Bench.Until.IsZero() || h.Bench.Until.After(b.Until)) {
			b, ok = h.Bench, true
		}
	}
	return b, ok
}

// Resting tells whether the key serves no model at all now, and until when; the
// zero time is until a check passes.
func (k ProviderKey) Resting(now time.Time) (until time.Time, ok bool) {
	if b, all := k.Cools(EveryModel, now); all {
		return b.Until, true
	}
	for i, m := range k.Models {
		b, cools := k.Cools(m, now)
		if !cools {
			return time.Time{}, false
		}
		if i == 0 || b.Until.Before(until) {
			until = b.Until
		}
	}
	return until, len(k.Models) > 0
}

// Cleared is which cooldowns a person clears: of every key, of one, or of one
// model of it (EveryModel: of the key as a whole).
type Cleared struct {
	Key   uuid.UUID // zero: every key
	Model *string   // nil: every one of the key
}

// ClearCooldowns ends benches before their time, forgets ladders, and says how
// many benches ran. A key that was refused is called again, unchecked. Calls go
// out within a second.
func (s *Service) ClearCooldowns(ctx context.Context, tenant uuid.UUID, c Cleared) (n int, err error) {
	if c.Model != nil {
		if wrong := checkOneModel(*c.Model); len(wrong) > 0 {
			return 0, fault.InvalidFields(wrong...)
		}
	}
	now := s.now().UTC()
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		n = 0
		object := id.Tenant.Format(tenant)
		if c.Key != uuid.Nil {
			object = id.ProviderKey.Format(c.Key)
			if _, err := readProviderKey(ctx, tx, tenant, c.Key); err != nil {
				return err
			}
		}
		list, err := c.lock(ctx, tx, tenant)
		if err != nil {
			return err
		}
		var ended []clearedBench
		for _, h := range list {
			if h.Bench.Runs(now) {
				if err := tellBench(ctx, tx, tenant, message.ProviderKeyRecovered, h, h.Bench); err != nil {
					return err
				}
				ended = append(ended, clearedBench{id.ProviderKey.Format(h.Key), h.Model, h.Bench.Source, h.Bench.Reason})
			}
			if err := clearHealth(ctx, tx, tenant, h, 0); err != nil {
				return err
			}
			if err := uncheck(ctx, tx, tenant, h); err != nil {
				return err
			}
		}
		if n = len(ended); n == 0 {
			return nil
		}
		return Audit(ctx, tx, tenant, "provider_key.cooldowns_cleared", object, ended)
	})
	return n, err
}

// checkOneModel refuses what no model is called; "" stands for none.
func checkOneModel(m string) []fault.Field {
	if m == "" || catalogue.ValidModel(m) {
		return nil
	}
	return []fault.Field{{Pointer: "/model", Code: "bad_model", Message: "This is not a model name."}}
}

// clearedBench is what the audit says of each.
type clearedBench struct {
	Key    string             `json:"provider_key"`
	Model  string             `json:"model,omitempty"`
	Source limits.BenchSource `json:"source"`
	Reason limits.BenchReason `json:"reason"`
}

func (c Cleared) lock(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]KeyHealth, error) {
	rows, err := tx.Query(ctx, `
		select `+healthColumns+` from provider_health
		where tenant_id = $1 and ($2::uuid is null or provider_key_id = $2) and ($3::text is null or model = $3)
		  and (source is not null or step > 0 or limited_at is not null or checks > 0)
		order by provider_key_id, model for update`, tenant, optional(c.Key), c.Model)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanHealth)
}

// clearHealth leaves nothing of a row but how often it was checked.
func clearHealth(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, h KeyHealth, checks int) error {
	h.Health, h.Checks, h.CheckAt, h.CheckModel = limits.Health{}, checks, nil, ""
	return writeHealth(ctx, tx, tenant, &h)
}

// uncheck lets a refused key be called without a check.
func uncheck(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, h KeyHealth) error {
	if h.Bench.Source != limits.BenchAuth {
		return nil
	}
	_, err := tx.Exec(ctx, `
		update provider_keys set status = 'unverified', status_reason = 'A refusal by the provider was cleared by a person; the key was not checked since.'
		where tenant_id = $1 and provider_key_id = $2 and removed_at is null and status = 'invalid'`, tenant, h.Key)
	return err
}
