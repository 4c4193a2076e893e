package faults

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/test/stack"
)

// booksBalance recomputes every sum from the events, in one query each.
func booksBalance(t *testing.T, s *stack.Stack, w stack.World) {
	t.Helper()
	tenant := tenantUUID(t, w)
	for table, bucket := range map[string]string{
		"usage_minute": "date_trunc('minute', started_at)", "usage_day": "local_day",
		"usage_quarter": "date_bin('15 minutes', started_at, '2000-01-01Z')",
	} {
		query := strings.NewReplacer("{table}", table, "{bucket}", bucket).Replace(rollupSQL)
		for _, row := range stack.Rows[string](t, s, query, tenant) {
			t.Errorf("%s is not the sum of the events: %s", table, row)
		}
	}
	for _, row := range stack.Rows[string](t, s, capSQL, tenant) {
		t.Errorf("a cap total is not the sum of the events: %s", row)
	}
	for _, row := range stack.Rows[string](t, s, ownSQL, tenant) {
		t.Errorf("a cap total is not what its calls took: %s", row)
	}
	for _, row := range stack.Rows[string](t, s, numberSQL) {
		t.Errorf("numbers are missing or doubled: %s", row)
	}
	if n := stack.Value[int64](t, s, `select count(*) from dead_letters`); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	if n := stack.Value[int64](t, s, `select count(*) from instances`); n != 1 {
		t.Errorf("%d instances have registered, want the one", n)
	}
}

const rollupSQL = `
	with dims as (
		select {bucket} as bucket, coalesce(customer_id, '00000000-0000-0000-0000-000000000000') as customer_id,
		       coalesce(counter_id, '00000000-0000-0000-0000-000000000000') as counter_id,
		       coalesce(provider_key_id, '00000000-0000-0000-0000-000000000000') as provider_key_id,
		       model_asked, model_served, outcome, test, currency,
		       sum(requests) as requests, sum(refused) as refused, sum(input_tokens) as input_tokens, sum(cached_input_tokens) as cached_input_tokens,
		       sum(cache_write_tokens) as cache_write_tokens, sum(output_tokens) as output_tokens, sum(reasoning_tokens) as reasoning_tokens,
		       sum(units) as units, sum(charge_pico) as charge_pico
		from usage_events where tenant_id = $1
		group by 1, 2, 3, 4, 5, 6, 7, 8, 9),
	rolled as (
		select bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency,
		       requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico
		from {table} where tenant_id = $1)
	(select 'only by events: ' || d::text from (select * from dims except select * from rolled) d)
	union all
	(select 'only in the table: ' || r::text from (select * from rolled except select * from dims) r)`

const capSQL = `
	with charged as (
		select c ->> 'ledger' as ledger, (c ->> 'window_start')::timestamptz as window_start, sum((c ->> 'amount')::bigint) as used
		from usage_events, json_array_elements(detail -> 'charges') c
		where tenant_id = $1
		group by 1, 2)
	select coalesce(e.ledger, b.ledger) || ': ' || coalesce(e.used, 0) || ' by events, ' || coalesce(b.used, 0) || ' in the books'
	from charged e
	full join (select * from cap_totals where tenant_id = $1) b on b.ledger = e.ledger and b.window_start = e.window_start
	where coalesce(e.used, 0) <> coalesce(b.used, 0)`

// ownSQL knows what a ledger counts from its name alone. Decisions are made with
// a management key, which no key's limit counts.
const ownSQL = `
	with caps as (
		select ledger, split_part(ledger, ':', 1) as scope, split_part(ledger, '/', 2) as dimension, sum(used) as used
		from cap_totals where tenant_id = $1
		group by 1),
	wanted as (
		select c.ledger, c.used, (
			select sum(case c.dimension
				when 'requests' then requests
				when 'output_tokens' then output_tokens + reasoning_tokens
				when 'tokens' then input_tokens + cached_input_tokens + cache_write_tokens + output_tokens + reasoning_tokens end)
			from usage_events e
			where e.tenant_id = $1 and (c.scope <> 'api_key' or e.kind = 'chat')) as want
		from caps c)
	select ledger || ': ' || used || ', want ' || coalesce(want::text, 'another dimension')
	from wanted where used is distinct from want
	union all
	select 'there are only ' || count(*) || ' ledgers' from caps having count(*) < 9`

const numberSQL = `
	select e.shard || ': ' || count(*) || ' events, numbers ' || min(e.number) || ' to ' || max(e.number) || ', given ' || max(i.numbers[e.shard + 1])
	from usage_events e join instances i using (instance_id)
	group by e.instance_id, e.shard
	having count(*) <> max(e.number) or count(distinct e.number) <> count(*) or min(e.number) <> 1 or max(e.number) <> max(i.numbers[e.shard + 1])`

// nothingIsHeld looks at the limits engine: no slot is taken, and every daily or
// monthly limit stands where the books say.
func nothingIsHeld(t *testing.T, s *stack.Stack, w stack.World) {
	t.Helper()
	var live struct {
		Data []struct {
			Scope, Dimension, Window string
			Used                     int64
		}
	}
	if err := json.Unmarshal(s.Want(t, 200, "GET", "/v1/limits", w.Key, nil).Body, &live); err != nil {
		t.Fatal(err)
	}
	if len(live.Data) < 8 {
		t.Errorf("only %d limits are shown", len(live.Data))
	}
	for _, l := range live.Data {
		want := int64(0)
		if l.Window != "none" {
			want = stack.Value[int64](t, s, `select coalesce(sum(used), 0)::bigint from cap_totals where tenant_id = $1 and ledger like $2`,
				tenantUUID(t, w), fmt.Sprintf("%s:%%/%s/%s", l.Scope, l.Dimension, l.Window))
		}
		if l.Used != want {
			t.Errorf("%s on %s a %s: %d used, %d in the books", l.Scope, l.Dimension, l.Window, l.Used, want)
		}
	}
}
