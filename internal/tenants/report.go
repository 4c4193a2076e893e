package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/message"
	"weir/internal/outbound"
)

// ReportFailure notes that a call of a model through a provider key failed, and
// rests what the failure says to rest (limits.Health). It returns what is new,
// which every replica sees within a second. A 401 makes the key invalid until a
// check passes.
func (s *Service) ReportFailure(ctx context.Context, tenant, key uuid.UUID, model string, f limits.Failure) (changed []KeyHealth, err error) {
	f.Sent, f.At = f.Sent.UTC().Truncate(time.Microsecond), f.At.UTC().Truncate(time.Microsecond)
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		changed = nil // a transaction may run again
		if f.Failing() {
			rested, err := s.restFailing(ctx, tx, tenant, model, f)
			if err != nil {
				return err
			}
			changed = append(changed, rested...)
		}
		concerned := model
		if f.WholeKey() {
			concerned = EveryModel
		}
		h, err := failed(ctx, tx, tenant, key, concerned, model, f)
		if h != nil {
			changed = append(changed, *h)
		}
		return err
	})
	return changed, err
}

// Knew tells that a failure of a burst says nothing that is not known of the
// key: hundreds of parallel ones are not stored one by one.
func (k ProviderKey) Knew(model string, f limits.Failure) bool {
	h := k.Concerned(model, f)
	next := h.Failed(f)
	return !f.Failing() && h.Bench.Runs(f.At) && next.Bench == h.Bench && next.Step == h.Step && f.At.Sub(h.Last) < time.Second
}

// Concerned is what is known of what a failure of a model is about.
func (k ProviderKey) Concerned(model string, f limits.Failure) KeyHealth {
	if f.WholeKey() {
		model = EveryModel
	}
	return k.HealthOf(model)
}

// Daily is what is known of the day's quota when a call failed that the key's
// own limits had let through: that one is known, and not spent.
func (k ProviderKey) Daily(model string) limits.Daily {
	for _, l := range k.LimitsFor(model) {
		if l.Window == limits.WindowDay && l.Applies(model) {
			return limits.DailyLeft
		}
	}
	return limits.DailyUnknown
}

// failed stores what a failure changes of what it concerns; nil is nothing.
func failed(ctx context.Context, tx pgx.Tx, tenant, key uuid.UUID, concerned, model string, f limits.Failure) (*KeyHealth, error) {
	if (limits.Health{}).Failed(f).Bench.Source == "" {
		return nil, nil
	}
	keys := []uuid.UUID{key}
	if err := makeHealth(ctx, tx, tenant, keys, concerned); err != nil {
		return nil, err
	}
	list, err := lockHealth(ctx, tx, tenant, keys, concerned)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	h := list[0]
	was := h.Bench
	next := h.Failed(f)
	if next == h.Health {
		return nil, nil
	}
	h.Health = next
	if h.Bench != was {
		h.CheckAt, h.CheckModel = nil, model
		if wait, ok := limits.CheckAfter(h.Bench.Source, h.Checks); ok {
			at := f.At.Add(wait)
			h.CheckAt = &at
		}
	}
	if h.Bench.Source == limits.BenchAuth && was.Source != limits.BenchAuth {
		if err := refused(ctx, tx, tenant, h); err != nil {
			return nil, err
		}
	}
	if err := writeHealth(ctx, tx, tenant, &h); err != nil {
		return nil, err
	}
	return &h, tellChange(ctx, tx, tenant, h, was, f.At)
}

// refused makes a key invalid that its provider accepted before.
func refused(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, h KeyHealth) error {
	tag, err := tx.Exec(ctx, `
		update provider_keys set status = 'invalid', status_reason = 'The provider refused this key on a call (status 401). It is checked again by itself.'
		where tenant_id = $1 and provider_key_id = $2 and removed_at is null and status in ('active', 'unverified')`, tenant, h.Key)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if err := tellBench(ctx, tx, tenant, message.ProviderKeyFailed, h, h.Bench); err != nil {
		return err
	}
	return Audit(ctx, tx, tenant, "provider_key.refused", id.ProviderKey.Format(h.Key), map[string]int{"status": 401})
}

// restFailing counts a failure of a model over all keys, and rests it on every
// key that serves it once there are enough.
func (s *Service) restFailing(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, model string, f limits.Failure) ([]KeyHealth, error) {
	streak, err := lockStreak(ctx, tx, tenant, model)
	if err != nil {
		return nil, err
	}
	next, full := streak.Failed(f)
	if err := writeStreak(ctx, tx, tenant, model, next); err != nil || !full {
		return nil, err
	}
	local, err := s.serving(ctx, tx, tenant, model)
	if err != nil || len(local) == 0 {
		return nil, err
	}
	keys := make([]uuid.UUID, 0, len(local))
	for k := range local {
		keys = append(keys, k)
	}
	if err := makeHealth(ctx, tx, tenant, keys, model); err != nil {
		return nil, err
	}
	list, err := lockHealth(ctx, tx, tenant, keys, model)
	for i := range list {
		was := list[i].Bench
		if err == nil {
			list[i].Health = list[i].Rest(f.At, local[list[i].Key], f.Status)
			err = writeHealth(ctx, tx, tenant, &list[i])
		}
		if err == nil {
			err = tellChange(ctx, tx, tenant, list[i], was, f.At)
		}
	}
	return list, err
}

// serving are the keys that serve a model, each with whether it is local.
func (s *Service) serving(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, model string) (map[uuid.UUID]bool, error) {
	rows, err := tx.Query(ctx, `
		select provider_key_id, base_url from provider_keys
		where tenant_id = $1 and removed_at is null and provider <> 'practice' and $2 = any(models)`, tenant, model)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID]bool{}
	var key uuid.UUID
	var base string
	_, err = pgx.ForEachRow(rows, []any{&key, &base}, func() error {
		out[key] = outbound.Local(base)
		return nil
	})
	return out, err
}

func lockStreak(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, model string) (limits.Streak, error) {
	if _, err := tx.Exec(ctx, `insert into model_streaks (tenant_id, model) values ($1, $2) on conflict do nothing`, tenant, model); err != nil {
		return nil, err
	}
	var list []time.Time
	err := tx.QueryRow(ctx, `select failures from model_streaks where tenant_id = $1 and model = $2 for update`, tenant, model).Scan(&list)
	return list, err
}

func writeStreak(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, model string, s limits.Streak) error {
	_, err := tx.Exec(ctx, `
		update model_streaks set failures = coalesce($3, '{}'::timestamptz[])
		where tenant_id = $1 and model = $2`, tenant, model, []time.Time(s))
	return err
}

// readStreaks are the models that failed last.
func readStreaks(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `select model from model_streaks where tenant_id = $1 and failures <> '{}'`, tenant)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	var model string
	_, err = pgx.ForEachRow(rows, []any{&model}, func() error {
		out[model] = true
		return nil
	})
	return out, err
}

// ReportSuccess notes that a call that went out at sent was served: it ends what
// was only a guess, and clears ladder and streak. It is worth a call only where
// Route.Marked.
func (s *Service) ReportSuccess(ctx context.Context, tenant, key uuid.UUID, model string, sent time.Time) (changed []KeyHealth, err error) {
	now := s.now().UTC().Truncate(time.Microsecond)
	sent = sent.UTC().Truncate(time.Microsecond)
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		changed = nil
		streak, err := lockStreak(ctx, tx, tenant, model)
		if err != nil {
			return err
		}
		if err := writeStreak(ctx, tx, tenant, model, streak.Served(sent)); err != nil {
			return err
		}
		list, err := lockHealth(ctx, tx, tenant, []uuid.UUID{key}, EveryModel, model)
		for _, h := range list {
			next := h.Served(sent, now)
			if err != nil || next == h.Health && (next != limits.Health{} || h.Checks == 0) {
				continue
			}
			was := h.Bench
			if h.Health = next; h.Bench.Source == "" {
				h.Checks, h.CheckAt, h.CheckModel = 0, nil, ""
			}
			if err = writeHealth(ctx, tx, tenant, &h); err == nil {
				err = tellChange(ctx, tx, tenant, h, was, now)
			}
			changed = append(changed, h)
		}
		return err
	})
	return changed, err
}
