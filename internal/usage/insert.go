package usage

import (
	"context"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"weir/internal/limits"
)

// detail is what pages show of one call and no sum needs.
type detail struct {
	Stream       bool            `json:"stream,omitzero"`
	SelfReported bool            `json:"self_reported,omitzero"`
	Estimate     limits.Cost     `json:"estimate"`
	Guess        int64           `json:"guess,omitzero"`
	Attempts     []Attempt       `json:"attempts,omitzero"`
	Charges      []limits.Charge `json:"charges,omitzero"`
	Refusal      *Refusal        `json:"refusal,omitzero"`
	Prices       []uuid.UUID     `json:"prices,omitzero"`
	Unsettled    *Unsettled      `json:"unsettled,omitzero"`
	Settled      Outcome         `json:"settled,omitzero"`
}

// columns are the values of many events, a slice for each column.
type columns struct {
	tenants, events, requests, customers, subscriptions, plans, keys, counters, providerKeys, corrects, instances [][16]byte
	endUsers, tags, asked, served, kinds, outcomes, estimated, currencies, costCurrencies, details                []string
	days, started, ended, localDays                                                                               []time.Time
	counts                                                                                                        [8][]int64
	charges, costs                                                                                                []pgtype.Numeric
	tests                                                                                                         []bool
	hashes                                                                                                        [][]byte
	shards                                                                                                        []int32
	numbers                                                                                                       []int64
}

func (c *columns) add(it *item) error {
	e := &it.event
	d := appendDetail(nil, &detail{e.Stream, e.SelfReported, e.Estimate, e.Guess, e.Attempts, e.Charges, e.Refusal, e.Prices, e.Unsettled, e.Settled})
	tags := ""
	if len(e.Tags) > 0 {
		b, err := encode(e.Tags)
		if err != nil {
			return err
		}
		tags = string(b)
	}
	c.tenants, c.events, c.requests = append(c.tenants, e.Tenant), append(c.events, e.ID), append(c.requests, e.RequestID)
	c.customers, c.subscriptions, c.plans = append(c.customers, e.Customer), append(c.subscriptions, e.Subscription), append(c.plans, e.PlanVersion)
	c.keys, c.counters, c.providerKeys = append(c.keys, e.Key), append(c.counters, e.Counter), append(c.providerKeys, e.ProviderKey)
	c.corrects, c.instances = append(c.corrects, e.Corrects), append(c.instances, e.Instance)
	c.endUsers, c.tags, c.details = append(c.endUsers, e.EndUser), append(c.tags, tags), append(c.details, string(d))
	c.asked, c.served, c.kinds = append(c.asked, e.ModelAsked), append(c.served, e.ModelServed), append(c.kinds, e.Kind)
	c.outcomes, c.estimated = append(c.outcomes, string(e.Outcome)), append(c.estimated, e.Estimated)
	c.currencies, c.costCurrencies = append(c.currencies, e.Currency), append(c.costCurrencies, e.CostCurrency)
	c.days, c.localDays = append(c.days, partition(e.ID)), append(c.localDays, e.LocalDay)
	c.started, c.ended = append(c.started, e.StartedAt), append(c.ended, e.EndedAt)
	for i, n := range counts(e) {
		c.counts[i] = append(c.counts[i], n)
	}
	c.charges, c.costs = append(c.charges, numeric(e.Charge.Big())), append(c.costs, cost(e))
	c.tests, c.hashes = append(c.tests, e.Test), append(c.hashes, it.hash[:])
	c.shards, c.numbers = append(c.shards, int32(e.Shard)), append(c.numbers, e.Number)
	return nil
}

// counts are the columns that are whole numbers, in the order of the table.
func counts(e *Event) [8]int64 {
	t := e.Tokens
	return [...]int64{e.Requests, e.Refused, t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning, e.Units}
}

func numeric(n *big.Int) pgtype.Numeric { return pgtype.Numeric{Int: n, Valid: true} }

// cost is null where the call has no price at the provider.
func cost(e *Event) pgtype.Numeric {
	if e.Cost == nil {
		return pgtype.Numeric{}
	}
	return numeric(e.Cost.Big())
}

// insertEvents stores the events whose id is new, and says which those are. None
// is stored of a day whose events are gone, or go while this runs: it may have
// been counted then. Those of erased customers name nobody.
func insertEvents(ctx context.Context, tx pgx.Tx, items []*item) (map[uuid.UUID]bool, error) {
	stored := make(map[uuid.UUID]bool, len(items))
	if len(items) == 0 {
		return stored, nil
	}
	var c columns
	for _, it := range items {
		if err := c.add(it); err != nil {
			return nil, err
		}
	}
	rows, err := tx.Query(ctx, insertSQL,
		c.tenants, c.days, c.events, c.requests, c.customers, c.subscriptions, c.plans, c.keys, c.counters, c.providerKeys,
		c.endUsers, c.tags, c.asked, c.served, c.kinds, c.started, c.ended, c.localDays, c.outcomes,
		c.counts[0], c.counts[1], c.counts[2], c.counts[3], c.counts[4], c.counts[5], c.counts[6], c.counts[7],
		c.estimated, c.charges, c.currencies, c.costs, c.costCurrencies, c.tests, c.corrects, c.details, c.hashes, c.instances, c.shards, c.numbers)
	if err != nil {
		return nil, err
	}
	var event uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&event}, func() error { stored[event] = true; return nil })
	return stored, err
}

const insertSQL = `
	insert into usage_events (
		tenant_id, day_utc, event_id, request_id, customer_id, subscription_id, plan_version_id, api_key_id, counter_id, provider_key_id,
		end_user, tags, model_asked, model_served, kind, started_at, ended_at, local_day, outcome,
		requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units,
		estimated, charge_pico, currency, cost_pico, cost_currency, test, corrects, detail, body_hash, instance_id, shard, number)
	select
		tenant_id, day_utc, event_id, request_id, nullif(customer_id, nil), nullif(subscription_id, nil), nullif(plan_version_id, nil),
		nullif(api_key_id, nil), nullif(counter_id, nil), nullif(provider_key_id, nil),
		case when erased then null else nullif(end_user, '') end, case when erased then null else nullif(tags, '')::jsonb end, model_asked, model_served, kind, started_at, ended_at, local_day, outcome,
		requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units,
		estimated, charge_pico, currency, cost_pico, nullif(cost_currency, ''), test, nullif(corrects, nil), detail::json, body_hash, instance_id, shard, number
	from unnest(
		$1::uuid[], $2::date[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::uuid[], $9::uuid[], $10::uuid[],
		$11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::text[],
		$20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[],
		$28::text[], $29::numeric[], $30::text[], $31::numeric[], $32::text[], $33::boolean[], $34::uuid[], $35::text[], $36::bytea[], $37::uuid[], $38::integer[], $39::bigint[]
	) as e (
		tenant_id, day_utc, event_id, request_id, customer_id, subscription_id, plan_version_id, api_key_id, counter_id, provider_key_id,
		end_user, tags, model_asked, model_served, kind, started_at, ended_at, local_day, outcome,
		requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units,
		estimated, charge_pico, currency, cost_pico, cost_currency, test, corrects, detail, body_hash, instance_id, shard, number),
	(select '00000000-0000-0000-0000-000000000000'::uuid as nil) as zero,
	lateral (select exists (select from usage_erasures x where x.tenant_id = e.tenant_id and x.customer_id = e.customer_id) as erased) as person
	where not exists (select from usage_retention r where e.day_utc <= r.gone_before)
	  and not exists (select from usage_gone g where g.tenant_id = e.tenant_id and e.day_utc <= g.gone_before)
	on conflict do nothing
	returning event_id`
