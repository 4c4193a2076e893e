package usage

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/money"
)

const storedEvents = `select string_agg((to_jsonb(e) - 'stored_at')::text, E'\n' order by event_id) from usage_events e`

// TestACopiedEventIsWhatAnInsertedOneIs, in every column, and counts the same.
func TestACopiedEventIsWhatAnInsertedOneIs(t *testing.T) {
	t.Parallel()
	r, tenant, now := random(t), id.New(), time.Now().UTC()
	var all batch
	for i := range 300 {
		e := call(tenant, now.Add(-time.Duration(r.Int64N(int64(30*time.Hour)))))
		for _, id := range []*uuid.UUID{&e.Customer, &e.Subscription, &e.PlanVersion, &e.Key, &e.Counter, &e.ProviderKey} {
			if *id = sub(tenant, byte(r.IntN(6))); r.IntN(3) == 0 {
				*id = uuid.Nil
			}
		}
		var amount money.Pico
		must(t, amount.UnmarshalText([]byte(new(big.Int).Exp(big.NewInt(1+r.Int64N(99)), big.NewInt(r.Int64N(16)), nil).String())))
		e.Charge, e.EndUser, e.Estimated, e.Stream = amount, []string{"", "Zoë", `"\`}[r.IntN(3)], []string{"", "no usage"}[r.IntN(2)], r.IntN(2) == 0
		e.Units, e.Tags = r.Int64N(1e15), []map[string]string{nil, {"team": "röt", "a": `"`}}[r.IntN(2)]
		switch r.IntN(4) {
		case 0:
			e.Cost, e.CostCurrency = nil, ""
		case 1:
			e.Outcome, e.Refused, e.Requests, e.Test = "refused_tokens_minute", 20, 0, true
		case 2:
			e.Outcome, e.Corrects, e.Requests, e.Tokens.Input, e.Charge = Correction, sub(e.ID, 1), -1, -40, money.Pico{}.Sub(amount)
		}
		e.clean()
		e.Instance, e.Shard, e.Number = tenant, ShardOf(tenant), int64(i+1)
		if reason := e.wrong(); reason != "" {
			t.Fatal(reason)
		}
		line, err := encode(&e)
		must(t, err)
		all.items = append(all.items, &item{event: e, line: line, hash: [32]byte{byte(i), 0xff}})
	}
	all.instance, all.shard, all.first, all.last = tenant, ShardOf(tenant), 1, 300
	all.settle()
	got := map[string][2]string{}
	copied := func(ctx context.Context, tx pgx.Tx, b batch) ([]*Event, []letter, error) {
		if expected, err := allNew(ctx, tx, b); err != nil || !expected {
			t.Errorf("new events are taken for old: %v", err)
		}
		return copyNew(ctx, tx, b)
	}
	for name, store := range map[string]storing{"copied": copied, "inserted": insertNew} {
		b := newBooks(t)
		must(t, b.w.ensureDays(t.Context(), all))
		must(t, b.w.write(t.Context(), all, store))
		got[name] = [2]string{query[string](t, b.Worker, storedEvents), query[string](t, b.Worker, wholeBooks)}
	}
	if diff := cmp.Diff(got["inserted"], got["copied"]); diff != "" {
		t.Fatal(diff)
	}
}

// TestWhatIsInTheBooksAlreadyIsNotTakenForNew, told by its number, its id or its
// day, and counts once.
func TestWhatIsInTheBooksAlreadyIsNotTakenForNew(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	first := s.run(t, call(tenant, time.Now()), call(tenant, time.Now()))
	again := call(tenant, time.Now())
	b.ingest(first)
	b.ingest(s.run(t, again))
	b.ingest(first)
	b.ingest(newSource().run(t, again, call(tenant, time.Now())))
	b.ingest(newSource().run(t, call(tenant, time.Now()), call(tenant, time.Now().Add(-25*day))))
	wantTotals(t, b.Worker, calls(6))
}
