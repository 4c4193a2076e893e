package usage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"weir/internal/id"
	"weir/internal/limits"
)

func TestABucketOfOutputsIsAtMostAnEighthWide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(0, maxTokens).Draw(rt, "tokens")
		b := bucketOf(n)
		if top := topOf(b); top < n || top > n+n/8 || b > 0 && topOf(b-1) >= n {
			rt.Fatalf("%d tokens are in bucket %d, from %d to %d", n, b, topOf(max(b-1, 0)), top)
		}
	})
}

// taught is a call that was guessed and took something.
func taught(tenant, counter uuid.UUID, at time.Time, model string, guess, input, output int64) Event {
	e := call(tenant, at)
	e.Counter, e.ModelAsked, e.Guess = counter, model, guess
	e.Tokens = limits.Tokens{Input: input, Output: output}
	e.Estimate.Tokens = limits.Tokens{Input: guess, Output: 1000}
	return e
}

// learning are estimates of b's books, read by a goroutine.
func (b books) learning(now func() time.Time) *Estimates {
	e := NewEstimates(b.App, quiet(b.t), now)
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = e.Run(ctx) })
	b.t.Cleanup(func() { stop(); group.Wait() })
	return e
}

// settled is what e says once it has read.
func (e *Estimates) settled(t *testing.T, tenant, counter uuid.UUID, model string) string {
	t.Helper()
	of := estimateOf{tenant, counter, model}
	e.Of(tenant, counter, model)
	eventually(t, "the estimate is read", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !e.known[of].asked
	})
	p95, factor, ok := e.Of(tenant, counter, model)
	return fmt.Sprintf("%d × %.2f %v", p95, factor, ok)
}

func TestWhatCallsTookIsLearnedByKeyAndModelOnceForEachEvent(t *testing.T) {
	t.Parallel()
	b, s, clock := newBooks(t), newSource(), newClock()
	tenant, counter := id.New(), id.New()
	var events []Event
	for i := range 40 {
		output := int64(100)
		if i >= 38 { // one in twenty is longer
			output = 5000
		}
		events = append(events, taught(tenant, counter, clock.now(), "m", 200, 300, output))
	}
	failed, estimated, decided, few := taught(tenant, counter, clock.now(), "m", 1, 1, 9000), taught(tenant, counter, clock.now(), "m", 1, 1, 9000), taught(tenant, counter, clock.now(), "m", 1, 1, 9000), taught(tenant, counter, clock.now(), "few", 1, 1, 9000)
	failed.Outcome, estimated.Estimated, decided.Kind = ProviderError, "usage_absent", KindDecision
	m := s.run(t, append(events, failed, estimated, decided, few)...)
	e := b.learning(clock.now)
	if _, _, ok := e.Of(tenant, counter, "m"); ok {
		t.Fatal("the first call waited")
	}
	if got := e.settled(t, tenant, counter, "m"); got != "0 × 1.00 false" {
		t.Fatalf("of nothing it learned %s", got)
	}
	b.ingest(m)
	b.ingest(m)
	balanced(t, b.Worker)
	if got := e.settled(t, tenant, counter, "m"); got != "0 × 1.00 false" {
		t.Fatalf("it was read again too soon: %s", got)
	}
	clock.advance(askedEvery)
	for of, want := range map[estimateOf]string{
		{tenant, counter, "m"}:   "103 × 1.50 true",
		{tenant, counter, "few"}: "0 × 1.00 false",
		{tenant, id.New(), "m"}:  "0 × 1.00 false",
		{id.New(), counter, "m"}: "0 × 1.00 false",
	} {
		if got := e.settled(t, of.tenant, of.counter, of.model); got != want {
			t.Errorf("%v: %s, want %s", of, got, want)
		}
	}
	list, err := NewReports(b.App, clock.now).Expected(t.Context(), tenant, clock.now(), clock.now())
	must(t, err)
	want := []Expected{
		{Counter: counter, Model: "m", Calls: 40, ReservedInput: 8000, ReservedOutput: 40_000, Input: 12_000, Output: 13_800, Guesses: 40, Guessed: 8000, GuessedInput: 12_000},
		{Counter: counter, Model: "few", Calls: 1, ReservedInput: 1, ReservedOutput: 1000, Input: 1, Output: 9000, Guesses: 1, Guessed: 1, GuessedInput: 1},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

func TestAGuessIsCorrectedWithinBounds(t *testing.T) {
	t.Parallel()
	b, s, clock := newBooks(t), newSource(), newClock()
	tenant, counter := id.New(), id.New()
	var events []Event
	for range 20 {
		events = append(events, taught(tenant, counter, clock.now(), "low", 1000, 10, 0), taught(tenant, counter, clock.now(), "high", 10, 1000, 7), taught(tenant, counter, clock.now(), "no guess", 0, 1000, 7))
	}
	b.ingest(s.run(t, events...))
	e := b.learning(clock.now)
	for model, want := range map[string]string{"low": "0 × 0.50 true", "high": "7 × 3.00 true", "no guess": "7 × 1.00 true"} {
		if got := e.settled(t, tenant, counter, model); got != want {
			t.Errorf("%s: %s", model, got)
		}
	}
}

func TestWhatWasLearnedFadesAndNewDaysWeighMore(t *testing.T) {
	t.Parallel()
	b, s, clock := newBooks(t), newSource(), newClock()
	tenant, counter := id.New(), id.New()
	now := clock.now()
	var events []Event
	for range 100 { // weighs a sixteenth of today
		events = append(events, taught(tenant, counter, now.Add(-8*day), "m", 100, 100, 4000))
	}
	for range 300 {
		events = append(events, taught(tenant, counter, now, "m", 100, 100, 50))
	}
	b.ingest(s.run(t, events...))
	e := b.learning(clock.now)
	if got := e.settled(t, tenant, counter, "m"); got != "51 × 1.00 true" {
		t.Errorf("now: %s", got)
	}
	clock.advance(learnedOver)
	if got := e.settled(t, tenant, counter, "m"); got != "0 × 1.00 false" {
		t.Errorf("after two weeks without calls: %s", got)
	}
}

func TestAKeyHasABoundedNumberOfModelsAndTheRestLearnTogether(t *testing.T) {
	t.Parallel()
	b, s, clock := newBooks(t), newSource(), newClock()
	tenant, counter := id.New(), id.New()
	for round := range 2 {
		b.w.classes = classes{} // another worker, or a new life
		var events []Event
		for i := range 3 * mostModels {
			events = append(events, taught(tenant, counter, clock.now(), fmt.Sprintf("m%03d", i), 10, 10, 30))
		}
		b.ingest(s.run(t, events...))
		got := query[[]int64](t, b.Worker, `select array[count(*), count(*) filter (where model = ''), sum(calls), max(calls)]::bigint[] from usage_estimates`)
		if diff := cmp.Diff([]int64{mostModels + 1, 1, int64(3 * mostModels * (round + 1)), int64(2 * mostModels * (round + 1))}, got); diff != "" {
			t.Fatal(diff)
		}
	}
	balanced(t, b.Worker)
	e := b.learning(clock.now)
	if got := e.settled(t, tenant, counter, "m149"); got != "30 × 1.00 true" && got != "31 × 1.00 true" {
		t.Errorf("one of the rest: %s", got)
	}
	if got := e.settled(t, tenant, counter, "m000"); got != "0 × 1.00 false" {
		t.Errorf("one with few calls of its own: %s", got)
	}
}

func TestWhatWasLearnedIsMadeAnewFromTheEvents(t *testing.T) {
	t.Parallel()
	b, s, r := newBooks(t), newSource(), random(t)
	tenant := id.New()
	at := time.Now().UTC().Truncate(day).Add(time.Hour)
	for range 5 {
		var events []Event
		for range 100 {
			events = append(events, taught(tenant, sub(tenant, byte(r.IntN(3))), at.Add(-time.Duration(r.IntN(3))*day), fmt.Sprint("m", r.IntN(4)), r.Int64N(500), r.Int64N(500), r.Int64N(10_000)))
		}
		b.ingest(s.run(t, events...))
	}
	const all = `select string_agg(e::text, E'\n' order by e::text) from usage_estimates e`
	before := query[string](t, b.Worker, all)
	must(t, b.Worker.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update usage_estimates set calls = calls + 1, outputs = '{9}'`)
		return err
	}))
	if diffs, err := Reconcile(t.Context(), b.Worker, uuid.Nil, at.Add(-10*day), at.Add(day), at); err != nil || len(diffs) == 0 {
		t.Fatalf("a wrong figure is not found: %v", err)
	}
	must(t, b.w.Relearn(t.Context(), at.Add(-5*day), at.Add(day)))
	if diff := cmp.Diff(before, query[string](t, b.Worker, all)); diff != "" {
		t.Fatal(diff)
	}
	balanced(t, b.Worker)
}
