package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// mostLabels is how many end users or values of a tag a report tells apart,
// where its buckets leave room for so many; the others are one.
const mostLabels = 100

// labelled tells whether only events can answer: rollups know neither end users
// nor tags.
func (q Query) labelled() bool {
	_, tag := q.GroupBy.Tag()
	return tag || q.GroupBy == ByEndUser || q.Filter.EndUser != "" || q.Filter.Tag.Name != ""
}

// label is the expression that events are grouped by, $13 being a tag's name.
func (g GroupBy) label() (id, name string) {
	switch _, tag := g.Tag(); {
	case tag:
		return noID, "coalesce(tags ->> $13, '')"
	case g == ByEndUser:
		return noID, "coalesce(end_user, '')"
	case g == ByNothing || g == ByModel || g == ByOutcome:
		return noID, groupColumns[g].name
	}
	return "coalesce(" + groupColumns[g].id + ", " + noID + ")", "''"
}

// readLabelled sums events as readCells sums rollups: a call belongs to the
// bucket of its admission. Beyond the largest groups by tokens the rest is
// summed into one, so that totals are those of all.
func readLabelled(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q Query, starts []time.Time, end time.Time) ([]cell, error) {
	f := q.Filter
	id, name := q.GroupBy.label()
	tag, _ := q.GroupBy.Tag()
	rows, err := tx.Query(ctx, fmt.Sprintf(`
		with one as materialized (
			select width_bucket(started_at, $4::timestamptz[]) - 1 as bucket, %s as id, %s as name, currency, coalesce(cost_currency, '') as cost_currency, outcome, test,
			       sum(requests) as requests, sum(refused) as refused, sum(input_tokens) as input_tokens, sum(cached_input_tokens) as cached_input_tokens,
			       sum(cache_write_tokens) as cache_write_tokens, sum(output_tokens) as output_tokens, sum(reasoning_tokens) as reasoning_tokens,
			       sum(units) as units, sum(charge_pico) as charge_pico, sum(cost_pico) as cost_pico, sum(`+latencyOf+`) as latency
			from usage_events
			where tenant_id = $1 and day_utc between $2::timestamptz::date - 1 and $3::timestamptz::date + 1 and started_at >= $2 and started_at < $3
			  and ($5 = %[4]s or customer_id = $5) and ($6 = %[4]s or counter_id = $6) and ($7 = %[4]s or provider_key_id = $7)
			  and ($8 = '' or model_asked = $8) and `+outcomeIs+`
			  and ($10 = 1 or test = ($10 = 2)) and ($11 = '' or end_user = $11)
			  and ($12 = '' or tags ->> $12 = $15) and ($13::text = $13)
			group by 1, 2, 3, 4, 5, 6, 7
		), largest as (
			select id, name
			from one
			group by id, name
			order by sum(input_tokens + cached_input_tokens + cache_write_tokens + output_tokens + reasoning_tokens) desc, sum(requests + refused) desc, id, name
			limit $14
		)
		select bucket, coalesce(largest.id, %[4]s), coalesce(largest.name, ''), largest.id is null, currency, cost_currency, %[3]s
		from one
		left join largest using (id, name)
		group by 1, 2, 3, 4, 5, 6`, id, name, cellSums, noID),
		tenant, starts[0], end, starts, f.Customer, f.Counter, f.ProviderKey, f.Model, string(f.Outcome), int(f.Tests), f.EndUser,
		f.Tag.Name, tag, max(10, min(mostLabels, maxRows/len(starts)-1)), f.Tag.Value)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanCell)
}

// tagsFrom is how many of the latest calls are looked through for tags.
const tagsFrom = 5000

// TagNames are the names of the tags that the latest calls of a range carry, in
// order, at most 20.
func (r *Reports) TagNames(ctx context.Context, tenant uuid.UUID, from, to time.Time) (names []string, err error) {
	err = r.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select distinct jsonb_object_keys(tags)
			from (
				select tags from usage_events
				where tenant_id = $1 and day_utc between $2::timestamptz::date - 1 and $3::timestamptz::date + 1 and started_at >= $2 and started_at < $3
				order by started_at desc
				limit $4
			) as latest
			where tags is not null
			order by 1
			limit 20`, tenant, from, to, tagsFrom)
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}
