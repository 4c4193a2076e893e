package usage

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue"
)

var testKeys = SigningKeys{Current: "k1", Keys: map[string][]byte{"k1": []byte(strings.Repeat("s", 32)), "k0": []byte(strings.Repeat("o", 32))}}

// books is a database with a worker that ingests by hand.
type books struct {
	t *testing.T
	postgrestest.Database
	w *Worker
}

func newBooks(t *testing.T) books {
	t.Helper()
	db := postgrestest.New(t)
	return books{t, db, NewWorker(db.Worker, nil, testKeys, WorkerOptions{Log: quiet(t)})}
}

// source gives events the numbers of an instance, as a spool would.
type source struct {
	instance uuid.UUID
	next     map[int]int64
}

func newSource() *source { return &source{id.New(), map[int]int64{}} }

// run is a signed message of events of one tenant, numbered on.
func (s *source) run(t testing.TB, events ...Event) queue.Message {
	t.Helper()
	lines := make([]string, len(events))
	for i := range events {
		events[i].clean()
		b, err := encode(&events[i])
		must(t, err)
		lines[i] = string(b)
	}
	return s.raw(ShardOf(events[0].Tenant), lines...)
}

func (s *source) raw(shard int, lines ...string) queue.Message {
	first := s.next[shard] + 1
	s.next[shard] += int64(len(lines))
	return testKeys.message(run{instance: s.instance, shard: shard, first: first, last: s.next[shard], body: []byte(strings.Join(lines, "\n"))})
}

func (b books) ingest(m queue.Message) {
	b.t.Helper()
	must(b.t, b.w.ingest(b.t.Context(), m))
}

// marks are the committed numbers of an instance's shard.
func (b books) marks(s *source, shard int) string {
	b.t.Helper()
	return query[string](b.t, b.Worker, "select coalesce((select committed::text from usage_marks where instance_id = $1 and shard = $2), '')", s.instance, shard)
}

// letters are the reasons of all dead letters, in order.
func (b books) letters() string {
	b.t.Helper()
	return query[string](b.t, b.Worker, "select coalesce(string_agg(reason, ' ' order by reason), '') from dead_letters")
}

func query[T any](t testing.TB, db *postgres.DB, sql string, args ...any) (v T) {
	t.Helper()
	must(t, db.Tx(t.Context(), func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(&v) }))
	return v
}

// balanced fails unless rollups, cap totals and events agree, and returns how
// many events there are, their requests, tokens and charge by the quarters, and
// what the caps hold.
func balanced(t testing.TB, db *postgres.DB) totals {
	t.Helper()
	from := time.Now().Add(-400 * day) // tests keep every minute
	diffs, err := Reconcile(context.WithoutCancel(t.Context()), db, uuid.Nil, from, time.Now().Add(30*day), from)
	must(t, err)
	for _, d := range diffs {
		t.Errorf("the books differ: %+v", d)
	}
	return totals{
		Events:   query[int64](t, db, "select count(*) from usage_events"),
		Requests: query[int64](t, db, "select coalesce(sum(requests), 0)::bigint from usage_quarter"),
		Refused:  query[int64](t, db, "select coalesce(sum(refused), 0)::bigint from usage_minute"),
		Tokens:   query[int64](t, db, "select coalesce(sum(input_tokens + cached_input_tokens + cache_write_tokens + output_tokens + reasoning_tokens), 0)::bigint from usage_day"),
		Caps:     query[int64](t, db, "select coalesce(sum(used), 0)::bigint from cap_totals"),
	}
}

type totals struct{ Events, Requests, Refused, Tokens, Caps int64 }

func calls(n int64) totals { return totals{Events: n, Requests: n, Tokens: 10 * n, Caps: 10 * n} }

func wantTotals(t testing.TB, db *postgres.DB, want totals) {
	t.Helper()
	if diff := cmp.Diff(want, balanced(t, db)); diff != "" {
		t.Fatal(diff)
	}
}

func TestBatchCountsEachEventOnceWhateverItRepeats(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	e0, e1, e2 := call(tenant, time.Now()), call(tenant, time.Now()), call(tenant, time.Now())
	b.ingest(s.run(t, e0))
	m := s.run(t, e1, e1, e2, e0)
	b.ingest(m)
	wantTotals(t, b.Worker, calls(3))
	b.ingest(m)
	wantTotals(t, b.Worker, calls(3))
	if got := b.marks(s, ShardOf(tenant)); got != "{[1,6)}" {
		t.Fatalf("marks are %s", got)
	}
	if got := b.letters(); got != "" {
		t.Fatalf("a duplicate left dead letters: %s", got)
	}
}

// TestWhatCameAgainIsCountedWhereItIsCommitted: per instance and shard, across
// messages that one transaction commits, and neither what is new nor what is dead.
func TestWhatCameAgainIsCountedWhereItIsCommitted(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	one, two, other := call(tenant, time.Now()), call(tenant, time.Now()), call(tenant, time.Now())
	m := s.run(t, one, two)
	want := func(messages, events int64) {
		t.Helper()
		state, err := NewPipeline(b.App).State(t.Context())
		must(t, err)
		if state.Again != (Again{messages, events}) {
			t.Errorf("again: %+v, not %d messages and %d events", state.Again, messages, events)
		}
	}
	b.ingest(m)
	want(0, 0)
	b.ingest(m)
	want(1, 2)
	b.ingest(s.run(t, two, other)) // under another number
	want(1, 3)
	changed := other
	changed.EndUser = "another body"
	b.ingest(s.run(t, changed))
	b.ingest(s.raw(ShardOf(tenant), "{}"))
	want(1, 3)
	last := call(tenant, time.Now())
	must(t, b.w.ingest(t.Context(), s.run(t, last, last), s.run(t, last), m))
	want(2, 7)
}

func TestAnotherBodyUnderATakenIDIsAConflictAndMovesOn(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	e, other := call(tenant, time.Now()), call(tenant, time.Now())
	forked := e
	forked.Tokens.Output = 1000
	b.ingest(s.run(t, e))
	m := s.run(t, forked, other)
	b.ingest(m)
	b.ingest(m)
	inOne := call(tenant, time.Now())
	twin := inOne
	twin.Outcome = ProviderError
	b.ingest(s.run(t, inOne, twin))
	wantTotals(t, b.Worker, calls(3))
	if got := b.letters(); got != "conflict conflict" {
		t.Fatalf("dead letters: %s", got)
	}
	if got := b.marks(s, ShardOf(tenant)); got != "{[1,6)}" {
		t.Fatalf("marks are %s", got)
	}
}

func TestForgedMessageMovesNoMarkAndCountsNothing(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	good := s.run(t, call(tenant, time.Now()))
	forgeries := map[string]func(m *queue.Message){
		"no signature":   func(m *queue.Message) { delete(m.Header, headerSignature) },
		"another key":    func(m *queue.Message) { m.Header[headerKey] = "k0" },
		"an unknown key": func(m *queue.Message) { m.Header[headerKey] = "" },
		"another body": func(m *queue.Message) {
			m.Body = []byte(strings.Replace(string(m.Body), `"input_tokens":7`, `"input_tokens":8`, 1))
		},
		"another number":  func(m *queue.Message) { m.Header[headerFirst], m.Header[headerLast] = "7", "7" },
		"another subject": func(m *queue.Message) { m.Subject = queue.Subject((ShardOf(tenant) + 1) % Shards) },
		"no headers":      func(m *queue.Message) { m.Header = nil },
	}
	for what, forge := range forgeries {
		m := good
		m.Header = map[string]string{}
		for k, v := range good.Header {
			m.Header[k] = v
		}
		forge(&m)
		b.ingest(m)
		if n := query[int64](t, b.Worker, "select count(*) from usage_events"); n != 0 {
			t.Fatalf("%s: counted", what)
		}
		if n := query[int64](t, b.Worker, "select count(*) from usage_marks"); n != 0 {
			t.Fatalf("%s: moved a mark", what)
		}
	}
	if !strings.Contains(b.letters(), badSignature) {
		t.Fatal("forgeries left no dead letter")
	}
	b.ingest(good)
	wantTotals(t, b.Worker, calls(1))
}

func TestPoisonIsKeptAsideAndBlocksNothing(t *testing.T) {
	t.Parallel()
	b, s := newBooks(t), newSource()
	tenant, stranger := id.New(), id.New()
	for ShardOf(stranger) == ShardOf(tenant) {
		stranger = id.New()
	}
	line := func(spoil func(*Event)) string {
		e := call(tenant, time.Now())
		e.clean()
		spoil(&e)
		body, err := encode(&e)
		must(t, err)
		return string(body)
	}
	fine := func(*Event) {}
	m := s.raw(ShardOf(tenant),
		line(fine),
		`{"v":1,`,
		line(func(e *Event) { e.Version = 9 }),
		line(func(e *Event) { e.Tenant = stranger }),
		line(func(e *Event) { e.Tokens.Input = 2_000_000_000 }),
		line(func(e *Event) { e.Tokens.Output = -5 }),
		line(func(e *Event) { e.StartedAt = e.StartedAt.Add(-3 * time.Hour) }),
		strings.Replace(line(fine), `"v":1`, `"v":1,"surprise":true`, 1),
		line(fine),
	)
	b.ingest(m)
	b.ingest(m)
	wantTotals(t, b.Worker, calls(2))
	if got, want := b.letters(), "absurd_count absurd_count absurd_time bad_body bad_body other_shard unknown_version"; got != want {
		t.Fatalf("dead letters: %s\nwant %s", got, want)
	}
	if got := b.marks(s, ShardOf(tenant)); got != "{[1,10)}" {
		t.Fatalf("marks are %s", got)
	}
	short := testKeys.message(run{instance: s.instance, shard: ShardOf(tenant), first: 10, last: 12, body: []byte("{}\n{}")})
	b.ingest(short)
	if got := b.marks(s, ShardOf(tenant)); got != "{[1,13)}" {
		t.Fatalf("after a run of the wrong length marks are %s", got)
	}
}

func TestEventThatTheDatabaseRefusesIsTheOnlyOneRefused(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	bad := id.New()
	owner(t, b.Database, fmt.Sprintf("alter table usage_events add constraint unlucky check (request_id <> '%s')", bad))
	events := make([]Event, 9)
	for i := range events {
		events[i] = call(tenant, time.Now())
	}
	events[5].RequestID = bad
	b.ingest(s.run(t, events...))
	wantTotals(t, b.Worker, calls(8))
	if got := b.letters(); got != refusedByDatabase {
		t.Fatalf("dead letters: %s", got)
	}
	if got := b.marks(s, ShardOf(tenant)); got != "{[1,10)}" {
		t.Fatalf("marks are %s", got)
	}
}

// TestMessagesThatAreCommittedTogetherCountAsOnTheirOwn: an event that several of
// them have is counted once, another body under its id and a forged message are
// dead letters, and what the database refuses in one keeps nothing of the others.
func TestMessagesThatAreCommittedTogetherCountAsOnTheirOwn(t *testing.T) {
	t.Parallel()
	b, s, other, tenant, bad := newBooks(t), newSource(), newSource(), id.New(), id.New()
	owner(t, b.Database, fmt.Sprintf("alter table usage_events add constraint unlucky check (request_id <> '%s')", bad))
	one, two, three, four := call(tenant, time.Now()), call(tenant, time.Now()), call(tenant, time.Now()), call(tenant, time.Now())
	refused, forked := call(tenant, time.Now()), one
	refused.RequestID = bad
	forked.Tokens.Output = 1000
	first, again := s.run(t, one, two), s.run(t, two, three)
	fork, lone := other.run(t, forked, four), s.run(t, refused)
	forgery := other.run(t, one)
	delete(forgery.Header, headerSignature)
	for range 2 {
		must(t, b.w.ingest(t.Context(), first, fork, forgery, again, first))
	}
	wantTotals(t, b.Worker, calls(4))
	five := call(tenant, time.Now())
	must(t, b.w.ingest(t.Context(), lone, other.run(t, five), first))
	wantTotals(t, b.Worker, calls(5))
	if got, want := b.letters(), strings.Join([]string{badSignature, conflict, refusedByDatabase}, " "); got != want {
		t.Errorf("dead letters: %s, want %s", got, want)
	}
	if got, want := b.marks(s, ShardOf(tenant))+b.marks(other, ShardOf(tenant)), "{[1,6)}{[1,3),[4,5)}"; got != want {
		t.Errorf("marks are %s, want %s", got, want)
	}
}

func TestEventWhosePartitionWasDroppedOrCannotBeMade(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	b.ingest(s.run(t, call(tenant, time.Now())))
	owner(t, b.Database, "drop table usage_events_"+time.Now().UTC().Format("20060102"))
	late := call(tenant, time.Now())
	edge := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	never := call(tenant, edge)
	never.ID = id.At(edge.Add(-time.Minute))
	b.ingest(s.run(t, late, never))
	if n := query[int](t, b.Worker, "select count(*) from usage_events"); n != 1 {
		t.Fatalf("%d events", n)
	}
	if got := b.letters(); got != refusedByDatabase {
		t.Fatalf("dead letters: %s", got)
	}
}

// owner runs a statement as the role that owns the tables.
func owner(t testing.TB, db postgrestest.Database, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), sql)
	must(t, err)
}

func TestMarksRememberNumbersThatCommitOutOfOrder(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	var runs []queue.Message
	for range 3 {
		runs = append(runs, s.run(t, call(tenant, time.Now()), call(tenant, time.Now())))
	}
	shard := ShardOf(tenant)
	for i, want := range map[int]string{2: "{[5,7)}"} {
		b.ingest(runs[i])
		if got := b.marks(s, shard); got != want {
			t.Fatalf("marks are %s, want %s", got, want)
		}
	}
	b.ingest(runs[0])
	if got := b.marks(s, shard); got != "{[1,3),[5,7)}" {
		t.Fatalf("marks are %s", got)
	}
	b.ingest(runs[1])
	if got := b.marks(s, shard); got != "{[1,7)}" {
		t.Fatalf("marks are %s", got)
	}
	wantTotals(t, b.Worker, calls(6))
}

func TestRefusalsTestCallsAndCorrectionsAreAddedUpApart(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	at := time.Now()
	no := refusal(tenant, at)
	practice := call(tenant, at)
	practice.Test, practice.Charge = true, money.Pico{}
	expired := call(tenant, at)
	expired.Outcome = Expired
	fix := call(tenant, at)
	fix.Outcome, fix.Corrects, fix.Requests = Correction, expired.ID, 0
	fix.Tokens, fix.Charges[0].Amount = limits.Tokens{Input: -7, Output: 2}, -5
	fix.Charge = money.FromInt(-25)
	b.ingest(s.run(t, no, practice, expired, fix))
	wantTotals(t, b.Worker, totals{Events: 4, Requests: 2, Refused: 1, Tokens: 15, Caps: 15})
	if got := query[string](t, b.Worker, "select sum(charge_pico)::text from usage_day where not test"); got != "25" {
		t.Fatalf("charged %s", got)
	}
	if got := query[int64](t, b.Worker, "select sum(refused)::bigint from usage_quarter where outcome = 'refused_tokens_minute'"); got != 1 {
		t.Fatalf("%d refused", got)
	}
}

func TestShuffledRepeatedAndConcurrentMessagesLeaveSumsExact(t *testing.T) {
	t.Parallel()
	b, r := newBooks(t), random(t)
	tenants := []uuid.UUID{id.New(), id.New(), id.New()}
	var messages []queue.Message
	var n int64
	for range 3 {
		s := newSource()
		for range 20 {
			tenant := tenants[r.IntN(len(tenants))]
			events := make([]Event, 1+r.IntN(8))
			for i := range events {
				events[i] = call(tenant, time.Now().Add(-time.Duration(r.IntN(72))*time.Hour))
			}
			n += int64(len(events))
			m := s.run(t, events...)
			for range 1 + r.IntN(3) {
				messages = append(messages, m)
			}
		}
	}
	r.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	work := make(chan []queue.Message)
	done := make(chan error)
	for range 4 {
		go func() {
			w := NewWorker(b.Worker, nil, testKeys, WorkerOptions{Log: quiet(t)})
			for list := range work {
				if err := w.handle(t.Context(), list); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for len(messages) > 0 {
		n := 1 + r.IntN(min(5, len(messages)))
		work <- messages[:n]
		messages = messages[n:]
	}
	close(work)
	for range 4 {
		must(t, <-done)
	}
	wantTotals(t, b.Worker, calls(n))
}

func TestTenantsSeeTheirOwnUsageOnlyAndWriteNone(t *testing.T) {
	t.Parallel()
	b, s := newBooks(t), newSource()
	mine, theirs := id.New(), id.New()
	b.ingest(s.run(t, call(mine, time.Now())))
	b.ingest(s.run(t, call(theirs, time.Now()), call(theirs, time.Now())))
	for _, table := range []string{"usage_events", "usage_minute", "usage_quarter", "usage_day", "cap_totals", "usage_estimates"} {
		must(t, b.App.WithTenant(t.Context(), mine, func(tx pgx.Tx) error {
			var all, own int
			err := tx.QueryRow(t.Context(), "select count(*), count(*) filter (where tenant_id = $1) from "+table, mine).Scan(&all, &own)
			if all != own || own == 0 {
				t.Errorf("%s: sees %d rows, %d of them its own", table, all, own)
			}
			return err
		}))
		if n := query[int](t, b.App, "select count(*) from "+table); n != 0 {
			t.Errorf("%s: %d rows without a tenant", table, n)
		}
		for _, write := range []string{"delete from " + table, "update " + table + " set tenant_id = tenant_id", "insert into " + table + " (tenant_id) values (gen_random_uuid())"} {
			err := b.App.WithTenant(t.Context(), mine, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), write); return err })
			if postgres.Code(err) != "42501" {
				t.Errorf("%s: %v", write, err)
			}
		}
	}
}
