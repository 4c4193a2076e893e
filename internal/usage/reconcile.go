package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/postgres"
)

// Difference is a row of the books that the stored events do not confirm. Booked
// or Events is empty where only the other exists.
type Difference struct {
	Table, Key     string
	Booked, Events string
}

// Reconcile recomputes, from the stored events, every rollup bucket and every
// calendar window that starts in [from, to), and returns what differs, by table
// and key, as one instant shows it. tenant uuid.Nil is every tenant: then db is
// a pool of the worker role. Retention bounds what can be asked: minutes are
// compared where they are kept.
func Reconcile(ctx context.Context, db *postgres.DB, tenant uuid.UUID, from, to, now time.Time) (all []Difference, err error) {
	err = db.Snapshot(ctx, tenant, func(tx pgx.Tx) (err error) {
		all, err = reconcile(ctx, tx, tenant, from, to, now)
		return err
	})
	return all, err
}

func reconcile(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, from, to, now time.Time) (all []Difference, err error) {
	var of *uuid.UUID
	if tenant != uuid.Nil {
		of = &tenant
	}
	for _, check := range checks {
		since := from
		if kept := now.Add(-MinutesKept + time.Hour); check.table == "usage_minute" && kept.After(since) {
			since = kept
		}
		rows, err := tx.Query(ctx, check.sql, since, to, of)
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Difference, error) {
			d := Difference{Table: check.table}
			return d, row.Scan(&d.Key, &d.Booked, &d.Events)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// The bucket of an event in each rollup, as SQL.
const (
	minuteBucket  = "date_trunc('minute', started_at)"
	quarterBucket = "date_bin('15 minutes', started_at, timestamptz '2000-01-01')"
	dayBucket     = "local_day"
)

const ofTenant = " and ($3::uuid is null or tenant_id = $3)"

type check struct{ table, sql string }

var checks = []check{
	rollupCheck("usage_minute", minuteBucket),
	rollupCheck("usage_quarter", quarterBucket),
	rollupCheck("usage_day", dayBucket),
	{"cap_totals", `
		with again as (
			select row(tenant_id, c ->> 'ledger', (c ->> 'window_start')::timestamptz)::text as k, row(sum((c ->> 'amount')::bigint), sum(coalesce((c ->> 'pico')::bigint, 0)))::text as v
			from usage_events, json_array_elements(detail -> 'charges') c
			where day_utc between $1::timestamptz::date - 2 and $2::timestamptz::date + 33
			  and (c ->> 'window_start')::timestamptz >= $1 and (c ->> 'window_start')::timestamptz < $2` + ofTenant + `
			group by tenant_id, c ->> 'ledger', (c ->> 'window_start')::timestamptz
		), booked as (
			select row(tenant_id, ledger, window_start)::text as k, row(used, used_pico)::text as v
			from cap_totals where window_start >= $1 and window_start < $2` + ofTenant + `
		)` + compare},
	{"usage_estimates", `
		with again as (
			select row(tenant_id, counter_id, day_utc)::text as k,
			       row(count(*), sum(` + reservedInput + `), sum(` + reservedOutput + `), sum(input_tokens + cached_input_tokens + cache_write_tokens), sum(output_tokens + reasoning_tokens),
			           count(*) filter (where guess > 0), sum(guess), sum((input_tokens + cached_input_tokens + cache_write_tokens) * (guess > 0)::int))::text as v
			from (select *, coalesce((detail ->> 'guess')::bigint, 0) as guess, detail -> 'estimate' -> 'tokens' as reserved from usage_events) e
			where day_utc >= $1::timestamptz::date and day_utc < $2::timestamptz::date and outcome = 'ok' and estimated = '' and kind <> 'decision'
			  and counter_id is not null and model_asked <> '' and detail -> 'self_reported' is null` + ofTenant + `
			group by tenant_id, counter_id, day_utc
		), booked as (
			select row(tenant_id, counter_id, day_utc)::text as k,
			       row(sum(calls), sum(reserved_input_tokens), sum(reserved_output_tokens), sum(input_tokens), sum(output_tokens),
			           sum(guesses), sum(guessed_tokens), sum(guessed_input_tokens))::text as v
			from usage_estimates where day_utc >= $1::timestamptz::date and day_utc < $2::timestamptz::date` + ofTenant + `
			group by tenant_id, counter_id, day_utc
		)` + compare},
}

// What was reserved of each side.
const (
	reservedInput  = "(reserved ->> 'input_tokens')::bigint + (reserved ->> 'cached_input_tokens')::bigint + (reserved ->> 'cache_write_tokens')::bigint"
	reservedOutput = "(reserved ->> 'output_tokens')::bigint + (reserved ->> 'reasoning_tokens')::bigint"
)

// A day of admission may begin a while before the instant of admission, so a
// window of events is read around the window of buckets.
func rollupCheck(table, bucket string) check {
	return check{table, `
		with again as (
			select row(tenant_id, ` + bucket + `, coalesce(customer_id, nil), coalesce(counter_id, nil), coalesce(provider_key_id, nil),
			           model_asked, model_served, outcome, test, currency, coalesce(cost_currency, ''))::text as k,
			       row(sum(requests), sum(refused), sum(input_tokens), sum(cached_input_tokens), sum(cache_write_tokens),
			           sum(output_tokens), sum(reasoning_tokens), sum(units), sum(charge_pico), sum(coalesce(cost_pico, 0)), sum(` + latencyOf + `))::text as v
			from usage_events, (select '00000000-0000-0000-0000-000000000000'::uuid as nil) zero
			where day_utc between $1::timestamptz::date - 1 and $2::timestamptz::date + 3 and ` + bucket + ` >= $1 and ` + bucket + ` < $2` + ofTenant + `
			group by tenant_id, ` + bucket + `, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency, nil
		), booked as (
			select row(tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency)::text as k,
			       row(requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico, latency)::text as v
			from ` + table + ` where bucket >= $1 and bucket < $2` + ofTenant + `
		)` + compare}
}

const compare = `
	select coalesce(booked.k, again.k), coalesce(booked.v, ''), coalesce(again.v, '')
	from booked full join again using (k)
	where booked.v is distinct from again.v
	order by 1`
