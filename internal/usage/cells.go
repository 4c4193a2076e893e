package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/limits"
)

// cell is what the database sums up: one bucket, group and pair of currencies.
type cell struct {
	Sums
	bucket       int
	group        Group
	charge, cost Money
}

// groupColumns are the id and the name that rows are told apart by.
var groupColumns = map[GroupBy]struct{ id, name string }{
	ByNothing:     {noID, "''"},
	ByCustomer:    {"customer_id", "''"},
	ByKey:         {"counter_id", "''"},
	ByModel:       {noID, "model_asked"},
	ByProviderKey: {"provider_key_id", "''"},
	ByOutcome:     {noID, "outcome"},
}

const noID = "'00000000-0000-0000-0000-000000000000'::uuid"

// cellSums add up rows of a rollup, or events, which have the same columns.
// What costs nothing or was never sent has no price to miss: refusals, errors
// and calls that are never billed.
const cellSums = `
		sum(requests)::bigint, sum(refused)::bigint,
		coalesce(sum(requests) filter (where outcome in ('client_error', 'provider_error', 'provider_limited')), 0)::bigint,
		coalesce(sum(requests) filter (where coalesce(cost_currency, '') = '' and not test and outcome in ('ok', 'aborted', 'expired')), 0)::bigint,
		sum(input_tokens)::bigint, sum(cached_input_tokens)::bigint, sum(cache_write_tokens)::bigint,
		sum(output_tokens)::bigint, sum(reasoning_tokens)::bigint, sum(units)::bigint, sum(charge_pico)::text, coalesce(sum(cost_pico), 0)::text, sum(latency)::text`

// outcomeIs keeps an outcome, or every refusal.
const outcomeIs = `($9 = '' or outcome = $9 or $9 = 'refused' and starts_with(outcome, 'refused_'))`

// table is the coarsest rollup that has the buckets. Quarters of an hour serve
// every bucket but the minute: the offsets of all zones are multiples of them.
// Days are right only where each bucket is a civil day of the tenant as it was
// counted when its calls were admitted, which is known for as long as changes of
// zone are remembered.
func (q Query) table(starts []time.Time, end, now time.Time) string {
	switch {
	case q.Bucket == Minute:
		return "usage_minute"
	case q.Bucket != Day || q.Days.Zone == "" || starts[0].Before(now.Add(-limits.ZoneMemory+2*day)):
		return "usage_quarter"
	}
	for i, start := range starts {
		next := end
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		if s, e, _ := q.Days.Day(start); !s.Equal(start) || !e.Equal(next) {
			return "usage_quarter"
		}
	}
	return "usage_day"
}

// readSums sums the rollup that has the buckets, and before that is kept the
// tenant's civil days, where days are asked for. Both meet where a civil day
// begins, so that no call is in both.
func readSums(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q Query, starts []time.Time, end, now time.Time) ([]cell, error) {
	table := q.table(starts, end, now)
	if table == "usage_day" {
		return readCells(ctx, tx, tenant, q, table, "bucket", starts, starts[0], end)
	}
	var since, meet time.Time // meet: where the first civil day begins that is kept in quarters; end if there is none
	err := tx.QueryRow(ctx, `
		select usage_kept_since(), coalesce((select min(bucket) from usage_day where tenant_id = $1 and bucket >= usage_kept_since()), $2)`, tenant, end).Scan(&since, &meet)
	if table == "usage_minute" {
		since = now.Add(-MinutesKept)
	}
	switch {
	case err != nil:
		return nil, err
	case !starts[0].Before(since):
		return readCells(ctx, tx, tenant, q, table, "bucket", starts, starts[0], end)
	case q.Bucket != Day:
		return nil, fault.InvalidFields(fault.Field{Pointer: "?from", Code: "not_kept", Message: "Buckets of " + string(q.Bucket) + " are no longer kept so far back. Days are: bucket=1d."})
	}
	cells, err := readCells(ctx, tx, tenant, q, table, "bucket", starts, meet, end)
	if err != nil {
		return nil, err
	}
	noon := "bucket + interval '12 hours'" // a day stands in the bucket that has most of it
	days, err := readCells(ctx, tx, tenant, q, "(select * from usage_day where tenant_id = $1 and bucket < '"+meet.UTC().Format(time.RFC3339)+"') as d", noon, starts, starts[0], end)
	return append(cells, days...), err
}

// readCells sums the rows of a rollup that are in [from, to), each in the bucket
// that its instant at is in.
func readCells(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q Query, table, at string, starts []time.Time, from, to time.Time) ([]cell, error) {
	by, f := groupColumns[q.GroupBy], q.Filter
	rows, err := tx.Query(ctx, fmt.Sprintf(`
		select width_bucket(%[6]s, $4::timestamptz[]) - 1, %[1]s, %[2]s, false, currency, cost_currency, %[3]s
		from %[4]s
		where tenant_id = $1 and %[6]s >= $2 and %[6]s < $3
		  and ($5 = %[5]s or customer_id = $5) and ($6 = %[5]s or counter_id = $6) and ($7 = %[5]s or provider_key_id = $7)
		  and ($8 = '' or model_asked = $8) and `+outcomeIs+`
		  and ($10 = 1 or test = ($10 = 2))
		group by 1, 2, 3, 4, 5, 6`, by.id, by.name, cellSums, table, noID, at),
		tenant, from, to, starts, f.Customer, f.Counter, f.ProviderKey, f.Model, string(f.Outcome), int(f.Tests))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanCell)
}

func scanCell(row pgx.CollectableRow) (cell, error) {
	var c cell
	var charge, cost, latency string
	err := row.Scan(&c.bucket, &c.group.ID, &c.group.Name, &c.group.Rest, &c.charge.Currency, &c.cost.Currency,
		&c.Requests, &c.Refused, &c.Errors, &c.Unpriced, &c.Tokens.Input, &c.Tokens.CachedInput, &c.Tokens.CacheWrite,
		&c.Tokens.Output, &c.Tokens.Reasoning, &c.Units, &charge, &cost, &latency)
	if err != nil {
		return c, err
	}
	c.Latency, err = readLatency(latency)
	return c, errors.Join(err, c.charge.Amount.UnmarshalText([]byte(charge)), c.cost.Amount.UnmarshalText([]byte(cost)))
}

// complete is up to when the books are complete: the least of what the instances
// say, since each only knows of its own calls. One that ended cleanly has no
// more to say, nor has one that an operator retired. Calls that were admitted
// before until have ended and are stored; a call that an instance has just
// admitted may not show as open for as long as it may take to be written.
func complete(ctx context.Context, tx pgx.Tx, now time.Time) (asOf, until time.Time, err error) {
	asOf, until = now, now
	err = tx.QueryRow(ctx, `
		select least($1, min(coalesce(fresh_at, started_at))),
		       least($1, min(least(coalesce(fresh_at, started_at) - make_interval(secs => $2), oldest_open)))
		from instances
		where stopped_at is null and retired_at is null`, now, writing.Seconds()).Scan(&asOf, &until)
	return asOf.UTC(), until.UTC(), err
}
