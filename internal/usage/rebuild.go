package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// MinutesKept is how long rollups of minutes are kept.
const MinutesKept = 48 * time.Hour

// Rebuild sums the rollups of every bucket and the totals of every calendar
// window that starts in [from, to) again from the stored events of a tenant, bit
// for bit, in one transaction: readers see the sums before or after, and what
// workers commit meanwhile waits for it and is added. Where calls may have been
// dropped after their retention it is ErrGone and nothing changes, and none are
// dropped meanwhile. db is a pool of the worker role.
func Rebuild(ctx context.Context, db *postgres.DB, tenant uuid.UUID, from, to, now time.Time) error {
	return db.Tx(ctx, func(tx pgx.Tx) error {
		if err := stays(ctx, tx, tenant, from); err != nil {
			return err
		}
		// In the order of the workers, so that none waits for us while we wait for it.
		if _, err := tx.Exec(ctx, `lock table usage_minute, usage_quarter, usage_day, cap_totals in share row exclusive mode`); err != nil {
			return err
		}
		minutes := from
		if kept := now.Add(-MinutesKept).Truncate(time.Minute).Add(time.Minute); kept.After(minutes) {
			minutes = kept
		}
		for _, r := range []struct {
			table, bucket string
			from          time.Time
		}{{"usage_minute", minuteBucket, minutes}, {"usage_quarter", quarterBucket, from}, {"usage_day", dayBucket, from}} {
			if !r.from.Before(to) {
				continue
			}
			if err := rebuildRollup(ctx, tx, r.table, r.bucket, tenant, r.from, to); err != nil {
				return fmt.Errorf("usage: rebuild %s: %w", r.table, err)
			}
		}
		return rebuildCaps(ctx, tx, tenant, from, to)
	})
}

func rebuildRollup(ctx context.Context, tx pgx.Tx, table, bucket string, tenant uuid.UUID, from, to time.Time) error {
	if _, err := tx.Exec(ctx, fmt.Sprintf(`delete from %s where tenant_id = $1 and bucket >= $2 and bucket < $3`, table), tenant, from, to); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`
		insert into %[1]s (
			tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency,
			requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico, latency)
		select tenant_id, %[2]s, coalesce(customer_id, %[3]s), coalesce(counter_id, %[3]s), coalesce(provider_key_id, %[3]s),
		       model_asked, model_served, outcome, test, currency, coalesce(cost_currency, ''),
		       sum(requests), sum(refused), sum(input_tokens), sum(cached_input_tokens), sum(cache_write_tokens),
		       sum(output_tokens), sum(reasoning_tokens), sum(units), sum(charge_pico), sum(coalesce(cost_pico, 0)), sum(`+latencyOf+`)
		from usage_events
		where tenant_id = $1 and day_utc between $2::timestamptz::date - 1 and $3::timestamptz::date + 3 and %[2]s >= $2 and %[2]s < $3
		group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11`, table, bucket, noID), tenant, from, to)
	return err
}

func rebuildCaps(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, from, to time.Time) error {
	if _, err := tx.Exec(ctx, `delete from cap_totals where tenant_id = $1 and window_start >= $2 and window_start < $3`, tenant, from, to); err != nil {
		return fmt.Errorf("usage: rebuild cap_totals: %w", err)
	}
	_, err := tx.Exec(ctx, `
		insert into cap_totals (tenant_id, ledger, window_start, used, used_pico)
		select tenant_id, c ->> 'ledger', (c ->> 'window_start')::timestamptz, sum((c ->> 'amount')::bigint), sum(coalesce((c ->> 'pico')::bigint, 0))
		from usage_events, json_array_elements(detail -> 'charges') c
		where tenant_id = $1 and day_utc between $2::timestamptz::date - 2 and $3::timestamptz::date + 33
		  and (c ->> 'window_start')::timestamptz >= $2 and (c ->> 'window_start')::timestamptz < $3
		group by 1, 2, 3`, tenant, from, to)
	if err != nil {
		return fmt.Errorf("usage: rebuild cap_totals: %w", err)
	}
	return nil
}
