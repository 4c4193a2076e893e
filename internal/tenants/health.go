package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/limits"
)

// EveryModel is the model of a bench that stands for all models of its key.
const EveryModel = ""

// KeyHealth is what calls through a provider key have shown of one of its
// models, or of EveryModel. Of two that are known, the higher version is newer.
type KeyHealth struct {
	limits.Health
	Key        uuid.UUID
	Model      string
	Version    int64
	Checks     int        // our own, since a call last passed
	CheckAt    *time.Time // when our next one is due; nil: none is
	CheckModel string     // with which model
}

// marked tells that there is something that a success ends.
func (h KeyHealth) marked() bool { return h.Health != limits.Health{} || h.Checks > 0 }

const healthColumns = `provider_key_id, model, version, coalesce(source, ''), reason, status, detail, since, until, step, limited_at, failed_at,
	checks, check_at, check_model`

func scanHealth(row pgx.CollectableRow) (h KeyHealth, err error) {
	var since, until, limited, last *time.Time
	err = row.Scan(&h.Key, &h.Model, &h.Version, &h.Bench.Source, &h.Bench.Reason, &h.Bench.Status, &h.Bench.Detail, &since, &until, &h.Step, &limited, &last,
		&h.Checks, &h.CheckAt, &h.CheckModel)
	h.Bench.Since, h.Bench.Until, h.Limited, h.Last = orZero(since), orZero(until), orZero(limited), orZero(last)
	return h, err
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// readHealth reads what is known of keys.
func readHealth(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, keys []uuid.UUID) (map[uuid.UUID][]KeyHealth, error) {
	rows, err := tx.Query(ctx, `
		select `+healthColumns+` from provider_health
		where tenant_id = $1 and provider_key_id = any($2)
		order by provider_key_id, model`, tenant, keys)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanHealth)
	out := map[uuid.UUID][]KeyHealth{}
	for _, h := range list {
		out[h.Key] = append(out[h.Key], h)
	}
	return out, err
}

// makeHealth makes sure that there are rows for these keys and a model.
func makeHealth(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, keys []uuid.UUID, model string) error {
	_, err := tx.Exec(ctx, `
		insert into provider_health (tenant_id, provider_key_id, model, version)
		select $1, k, $3, 0 from unnest($2::uuid[]) k order by k
		on conflict do nothing`, tenant, keys, model)
	return err
}

// lockHealth reads the rows of these keys and models for a change, in one order.
func lockHealth(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, keys []uuid.UUID, models ...string) ([]KeyHealth, error) {
	rows, err := tx.Query(ctx, `
		select `+healthColumns+` from provider_health
		where tenant_id = $1 and provider_key_id = any($2) and model = any($3)
		order by provider_key_id, model for update`, tenant, keys, models)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanHealth)
}

// writeHealth stores h, which was read under a lock, as a newer version.
func writeHealth(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, h *KeyHealth) error {
	h.Version++
	b := h.Bench
	var source *string
	if b.Source != "" {
		source = (*string)(&b.Source)
	}
	_, err := tx.Exec(ctx, `
		update provider_health
		set version = $4, source = $5, reason = $6, status = $7, detail = $8, since = $9, until = $10, step = $11, limited_at = $12, failed_at = $13,
		    checks = $14, check_at = $15, check_model = $16
		where tenant_id = $1 and provider_key_id = $2 and model = $3`,
		tenant, h.Key, h.Model, h.Version, source, string(b.Reason), b.Status, b.Detail, orNull(b.Since), orNull(b.Until), h.Step, orNull(h.Limited), orNull(h.Last),
		h.Checks, h.CheckAt, h.CheckModel)
	return err
}
