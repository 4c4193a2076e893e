package usage

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"weir/internal/limits"
)

// queueRollups adds events that are new to the three rollups and to the totals
// of their calendar ledgers.
func queueRollups(rest *pgx.Batch, events []*Event) {
	if len(events) == 0 {
		return
	}
	sums := tally(events)
	queueRollup(rest, "usage_minute", sums.minutes)
	queueRollup(rest, "usage_quarter", sums.quarters)
	queueRollup(rest, "usage_day", sums.days)
	queueCaps(rest, tallyCaps(events))
}

func queueRollup(rest *pgx.Batch, table string, rows map[rollupKey]*sums) {
	var (
		tenants, customers, counters, providerKeys          [][16]byte
		buckets                                             []time.Time
		asked, served, outcomes, currencies, costCurrencies []string
		tests                                               []bool
		requests, refused, units                            []int64
		input, cached, cacheWrite, output, reasoning        []int64
		charges, costs                                      []pgtype.Numeric
		latencies                                           []string
	)
	for _, k := range inOrder(rows) {
		s := rows[k]
		tenants, customers, counters, providerKeys = append(tenants, k.tenant), append(customers, k.customer), append(counters, k.counter), append(providerKeys, k.providerKey)
		buckets = append(buckets, time.Unix(k.bucket, 0))
		asked, served, outcomes = append(asked, k.asked), append(served, k.served), append(outcomes, string(k.outcome))
		tests, currencies, costCurrencies = append(tests, k.test), append(currencies, k.currency), append(costCurrencies, k.costCurrency)
		requests, refused, units = append(requests, s.requests), append(refused, s.refused), append(units, s.units)
		input, cached, cacheWrite = append(input, s.tokens.Input), append(cached, s.tokens.CachedInput), append(cacheWrite, s.tokens.CacheWrite)
		output, reasoning = append(output, s.tokens.Output), append(reasoning, s.tokens.Reasoning)
		charges, costs, latencies = append(charges, numeric(s.charge)), append(costs, numeric(s.cost)), append(latencies, s.latency.number())
	}
	rest.Queue(upsertSQL[table], tenants, buckets, customers, counters, providerKeys, asked, served, outcomes, tests, currencies, costCurrencies,
		requests, refused, input, cached, cacheWrite, output, reasoning, units, charges, costs, latencies)
}

var upsertSQL = map[string]string{
	"usage_minute":  upsert("usage_minute"),
	"usage_quarter": upsert("usage_quarter"),
	"usage_day":     upsert("usage_day"),
}

func upsert(table string) string {
	return fmt.Sprintf(`
		insert into %[1]s as t (
			tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency,
			requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico, latency)
		select * from unnest(
			$1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::text[], $11::text[],
			$12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::numeric[], $21::numeric[], $22::text[]::numeric[])
		on conflict (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency) do update
		set requests = t.requests + excluded.requests, refused = t.refused + excluded.refused,
		    input_tokens = t.input_tokens + excluded.input_tokens, cached_input_tokens = t.cached_input_tokens + excluded.cached_input_tokens,
		    cache_write_tokens = t.cache_write_tokens + excluded.cache_write_tokens, output_tokens = t.output_tokens + excluded.output_tokens,
		    reasoning_tokens = t.reasoning_tokens + excluded.reasoning_tokens, units = t.units + excluded.units,
		    charge_pico = t.charge_pico + excluded.charge_pico, cost_pico = t.cost_pico + excluded.cost_pico, latency = t.latency + excluded.latency`, table)
}

func queueCaps(rest *pgx.Batch, caps map[capKey]limits.Total) {
	if len(caps) == 0 {
		return
	}
	var tenants [][16]byte
	var ledgers []string
	var starts []time.Time
	var used, pico []int64
	for _, k := range capsInOrder(caps) {
		tenants, ledgers, starts, used = append(tenants, k.tenant), append(ledgers, k.ledger), append(starts, time.Unix(k.start, 0)), append(used, caps[k].Amount)
		pico = append(pico, caps[k].Pico)
	}
	rest.Queue(`
		insert into cap_totals as t (tenant_id, ledger, window_start, used, used_pico)
		select * from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[])
		on conflict (tenant_id, ledger, window_start) do update
		set used = t.used + excluded.used, used_pico = t.used_pico + excluded.used_pico`,
		tenants, ledgers, starts, used, pico)
}
