package usage

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// learnKey is one row of usage_estimates.
type learnKey struct {
	learner
	model string
}

// learner is a key on one day.
type learner struct {
	tenant, counter uuid.UUID
	day             int64 // Unix seconds
}

// learned are the sums of such a row.
type learned struct {
	calls, reservedInput, reservedOutput, input, output int64
	guesses, guessed, guessedInput                      int64
	outputs                                             outputs
}

// teaches tells whether an event says what calls of its key really take: a call
// of the gateway that was served, and whose provider stated the usage.
func (e *Event) teaches() bool {
	return e.Outcome == OK && e.Estimated == "" && !e.SelfReported && e.Kind != KindDecision && e.Kind != KindImported && e.Counter != uuid.Nil && e.ModelAsked != ""
}

func (l *learned) add(e *Event) {
	input, output := e.Tokens.Input+e.Tokens.CachedInput+e.Tokens.CacheWrite, e.Tokens.Output+e.Tokens.Reasoning
	r := e.Estimate.Tokens
	l.calls++
	l.reservedInput += r.Input + r.CachedInput + r.CacheWrite
	l.reservedOutput += r.Output + r.Reasoning
	l.input += input
	l.output += output
	if e.Guess > 0 {
		l.guesses++
		l.guessed += e.Guess
		l.guessedInput += input
	}
	l.outputs.add(bucketOf(output), 1)
}

func (l *learned) plus(o *learned) {
	l.calls += o.calls
	l.reservedInput += o.reservedInput
	l.reservedOutput += o.reservedOutput
	l.input += o.input
	l.output += o.output
	l.guesses += o.guesses
	l.guessed += o.guessed
	l.guessedInput += o.guessedInput
	l.outputs.plus(o.outputs)
}

// lessons adds the events up.
func lessons(events []*Event) map[learnKey]*learned {
	rows := make(map[learnKey]*learned)
	for _, e := range events {
		if !e.teaches() {
			continue
		}
		k := learnKey{learner{e.Tenant, e.Counter, partition(e.ID).Unix()}, e.ModelAsked}
		if rows[k] == nil {
			rows[k] = &learned{}
		}
		rows[k].add(e)
	}
	return rows
}

// mostModels is about how many models of a key have a row of their own on one
// day; the rest share one.
const (
	mostModels  = 50
	otherModels = ""
)

// classes remembers which models of which keys have rows, so that few messages
// have to ask. What another worker adds meanwhile is not seen: the bound is soft.
type classes struct {
	mu     sync.Mutex
	models map[learner]map[string]bool
}

// mostLearners is how many keys are remembered.
const mostLearners = 20_000

// seat gives the models for which there is no room to the others.
func (c *classes) seat(ctx context.Context, tx pgx.Tx, rows map[learnKey]*learned) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.models) > mostLearners || c.models == nil {
		c.models = map[learner]map[string]bool{}
	}
	if err := c.ask(ctx, tx, rows); err != nil {
		return err
	}
	for _, k := range rowsInOrder(rows) {
		known := c.models[k.learner]
		if known[k.model] || len(known) < mostModels {
			known[k.model] = true
			continue
		}
		others := learnKey{k.learner, otherModels}
		if rows[others] == nil {
			rows[others] = &learned{}
		}
		rows[others].plus(rows[k])
		delete(rows, k)
	}
	return nil
}

// ask finds out about keys that are not remembered.
func (c *classes) ask(ctx context.Context, tx pgx.Tx, rows map[learnKey]*learned) error {
	var tenants, counters [][16]byte
	var days []time.Time
	for k := range rows {
		if c.models[k.learner] == nil {
			c.models[k.learner] = map[string]bool{}
			tenants, counters, days = append(tenants, k.tenant), append(counters, k.counter), append(days, time.Unix(k.day, 0).UTC())
		}
	}
	if len(days) == 0 {
		return nil
	}
	found, err := tx.Query(ctx, `
		select e.tenant_id, e.counter_id, e.day_utc, e.model
		from unnest($1::uuid[], $2::uuid[], $3::date[]) as k (tenant_id, counter_id, day_utc)
		join usage_estimates e using (tenant_id, counter_id, day_utc)
		where e.model <> ''`, tenants, counters, days)
	if err != nil {
		c.models = nil
		return err
	}
	var l learner
	var day time.Time
	var model string
	_, err = pgx.ForEachRow(found, []any{&l.tenant, &l.counter, &day, &model}, func() error {
		l.day = day.Unix()
		c.models[l][model] = true
		return nil
	})
	if err != nil {
		c.models = nil
	}
	return err
}

// rowsInOrder is the order in which all workers lock rows.
func rowsInOrder(rows map[learnKey]*learned) []learnKey {
	return slices.SortedFunc(maps.Keys(rows), func(a, b learnKey) int {
		return cmp.Or(bytes.Compare(a.tenant[:], b.tenant[:]), bytes.Compare(a.counter[:], b.counter[:]), strings.Compare(a.model, b.model), cmp.Compare(a.day, b.day))
	})
}

// queueLessons adds what was learned to its rows.
func queueLessons(rest *pgx.Batch, rows map[learnKey]*learned) {
	if len(rows) == 0 {
		return
	}
	var tenants, counters [][16]byte
	var models, outputs []string
	var days []time.Time
	var sums [8][]int64
	for _, k := range rowsInOrder(rows) {
		l := rows[k]
		tenants, counters, models, days = append(tenants, k.tenant), append(counters, k.counter), append(models, k.model), append(days, time.Unix(k.day, 0).UTC())
		for i, n := range [...]int64{l.calls, l.reservedInput, l.reservedOutput, l.input, l.output, l.guesses, l.guessed, l.guessedInput} {
			sums[i] = append(sums[i], n)
		}
		outputs = append(outputs, l.outputs.array())
	}
	rest.Queue(`
		insert into usage_estimates as t (
			tenant_id, counter_id, model, day_utc, calls, reserved_input_tokens, reserved_output_tokens, input_tokens, output_tokens,
			guesses, guessed_tokens, guessed_input_tokens, outputs)
		select tenant_id, counter_id, model, day_utc, calls, reserved_input_tokens, reserved_output_tokens, input_tokens, output_tokens,
		       guesses, guessed_tokens, guessed_input_tokens, outputs::integer[]
		from unnest(
			$1::uuid[], $2::uuid[], $3::text[], $4::date[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
			$10::bigint[], $11::bigint[], $12::bigint[], $13::text[]) as n (
			tenant_id, counter_id, model, day_utc, calls, reserved_input_tokens, reserved_output_tokens, input_tokens, output_tokens,
			guesses, guessed_tokens, guessed_input_tokens, outputs)
		on conflict (tenant_id, counter_id, model, day_utc) do update
		set calls = t.calls + excluded.calls,
		    reserved_input_tokens = t.reserved_input_tokens + excluded.reserved_input_tokens,
		    reserved_output_tokens = t.reserved_output_tokens + excluded.reserved_output_tokens,
		    input_tokens = t.input_tokens + excluded.input_tokens, output_tokens = t.output_tokens + excluded.output_tokens,
		    guesses = t.guesses + excluded.guesses, guessed_tokens = t.guessed_tokens + excluded.guessed_tokens,
		    guessed_input_tokens = t.guessed_input_tokens + excluded.guessed_input_tokens,
		    outputs = (
			select array_agg(coalesce(a, 0) + coalesce(b, 0) order by i)
			from unnest(t.outputs, excluded.outputs) with ordinality as u (a, b, i))`,
		tenants, counters, models, days, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7], outputs)
}

// Relearn makes what was learned of the days from one to another, the last not
// included, anew from the events. Workers wait meanwhile. db is a pool of the
// worker role.
func (w *Worker) Relearn(ctx context.Context, from, to time.Time) error {
	return w.db.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table usage_estimates in share row exclusive mode`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from usage_estimates where day_utc >= $1::date and day_utc < $2::date`, from, to); err != nil {
			return err
		}
		var seats classes
		for d := from.UTC().Truncate(day); d.Before(to); d = d.Add(day) {
			rows, err := lessonsOf(ctx, tx, d)
			if err == nil {
				err = seats.seat(ctx, tx, rows)
			}
			var rest pgx.Batch
			queueLessons(&rest, rows)
			if err == nil && rest.Len() > 0 {
				err = tx.SendBatch(ctx, &rest).Close()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// lessonsOf adds the events of a day up.
func lessonsOf(ctx context.Context, tx pgx.Tx, d time.Time) (map[learnKey]*learned, error) {
	found, err := tx.Query(ctx, `select `+eventColumns+` from usage_events where day_utc = $1::date and outcome = 'ok' and estimated = ''`, d)
	if err != nil {
		return nil, err
	}
	rows := map[learnKey]*learned{}
	for found.Next() {
		e, err := scanEvent(found)
		if err != nil {
			found.Close()
			return nil, err
		}
		for k, l := range lessons([]*Event{&e}) {
			if rows[k] == nil {
				rows[k] = &learned{}
			}
			rows[k].plus(l)
		}
	}
	return rows, found.Err()
}
