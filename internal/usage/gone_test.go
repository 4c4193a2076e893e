package usage

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
)

// keeps has a tenant keep its calls for so many days; 0: as long as the
// installation.
func (b books) keeps(tenant uuid.UUID, days int) {
	b.t.Helper()
	must(b.t, b.App.WithTenant(b.t.Context(), tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `
			insert into tenants (tenant_id, name, usage_days, zone, currency) values ($1, 'short', nullif($2, 0), 'UTC', 'USD')
			on conflict (tenant_id) do update set usage_days = excluded.usage_days`, tenant, days)
		return err
	}))
}

func (b books) keeper(days int, now func() time.Time) *Keeper {
	return NewKeeper(b.Worker, days, quiet(b.t), now)
}

func (b books) day(tenant uuid.UUID, day time.Time) int64 {
	b.t.Helper()
	return query[int64](b.t, b.Worker, "select coalesce(sum(requests), 0)::bigint from usage_day where tenant_id = $1 and bucket = $2", tenant, day)
}

// TestADayWhoseCallsWentIsNotSummedAgain, also where a tenant, or the
// installation, keeps calls for longer again since.
func TestADayWhoseCallsWentIsNotSummedAgain(t *testing.T) {
	t.Parallel()
	b, s, short, long := newBooks(t), newSource(), id.New(), id.New()
	b.keeps(short, 30)
	old := time.Now().UTC().AddDate(0, 0, -70)
	from := old.Truncate(day)
	for _, tenant := range []uuid.UUID{short, long} {
		b.ingest(s.run(t, call(tenant, old)))
		b.ingest(s.run(t, call(tenant, old.AddDate(0, 0, 30))))
	}
	must(t, b.keeper(60, time.Now).Drop(t.Context()))
	b.keeps(short, 0)
	keeper := b.keeper(400, time.Now)
	must(t, keeper.Drop(t.Context()))
	for tenant, days := range map[uuid.UUID][]time.Time{short: {from, from.AddDate(0, 0, 30)}, long: {from}} {
		for _, d := range days {
			if err := b.reports().AskRebuild(t.Context(), tenant, d, d.Add(day), unaudited); fault.Of(err).Code != "day_not_kept" {
				t.Errorf("asked for a day that is gone: %v", err)
			}
			execute(t, b.Worker, `insert into reconciliations (tenant_id, day, day_end, asked_at) values ($1, $2, $3, now())`, tenant, d, d.Add(day)) // just before it went
			must(t, keeper.RebuildAsked(t.Context()))
			if n := b.day(tenant, d); n != 1 {
				t.Errorf("a day whose calls are gone was summed from nothing: %d", n)
			}
			checks := b.reports().checks(t, tenant, d)
			if len(checks) != 1 || checks[0].Asked || !checks[0].RebuiltAt.IsZero() {
				t.Errorf("it says of such a day %+v", checks)
			}
			books, err := b.reports().DayBooks(t.Context(), tenant, d, d.Add(day))
			if err != nil || !books.Gone || len(books.Differences) > 0 || books.Days.Requests != 1 {
				t.Errorf("and shows %+v, %v", books, err)
			}
		}
	}
	there := from.AddDate(0, 0, 30)
	execute(t, b.Worker, `delete from usage_day where tenant_id = $1 and bucket = $2`, long, there)
	must(t, b.reports().AskRebuild(t.Context(), long, there, there.Add(day), unaudited))
	must(t, keeper.RebuildAsked(t.Context()))
	if n := b.day(long, there); n != 1 {
		t.Errorf("a day whose calls are there has %d calls", n)
	}
	must(t, keeper.CheckDays(t.Context()))
	if n := query[int64](t, b.Worker, `select count(*) from reconciliations where differences <> '[]'`); n != 0 {
		t.Errorf("%d days differ from calls that are gone", n)
	}
}

// TestACallThatComesAgainAfterItsTimeCountsOnce: of the installation's days and
// of a tenant's own, in a message and as a dead letter.
func TestACallThatComesAgainAfterItsTimeCountsOnce(t *testing.T) {
	t.Parallel()
	b, s, short, long := newBooks(t), newSource(), id.New(), id.New()
	b.keeps(short, 30)
	now := time.Now().UTC()
	old := now.AddDate(0, 0, -40)
	mine, theirs := s.run(t, call(short, old)), s.run(t, call(long, now.AddDate(0, 0, -70)))
	b.ingest(mine)
	b.ingest(theirs)
	b.ingest(newSource().run(t, call(long, old)))
	must(t, b.keeper(60, time.Now).Drop(t.Context()))
	partitions := query[int64](t, b.Worker, "select count(*) from pg_inherits where inhparent = 'usage_events'::regclass")
	for range 2 {
		must(t, NewWorker(b.Worker, nil, testKeys, WorkerOptions{Log: quiet(t)}).ingest(t.Context(), mine, theirs))
		must(t, b.w.ingest(t.Context(), mine))
	}
	if n := query[int64](t, b.Worker, "select sum(requests)::bigint from usage_day"); n != 3 {
		t.Errorf("%d calls are counted, want 3", n)
	}
	if n := query[int64](t, b.Worker, "select sum(used)::bigint from cap_totals"); n != 30 {
		t.Errorf("caps hold %d, want 30", n)
	}
	if got := b.letters(); got != "too_late too_late" {
		t.Errorf("dead letters: %s", got)
	}
	if n := query[int64](t, b.Worker, "select count(*) from pg_inherits where inhparent = 'usage_events'::regclass"); n != partitions {
		t.Errorf("a partition that was dropped was made again: %d, want %d", n, partitions)
	}
	p, n := NewPipeline(b.App), &noted{}
	list, err := p.Letters(t.Context(), false)
	must(t, err)
	for _, l := range list {
		must(t, p.AskReplay(t.Context(), id.New(), l.ID, n.audit))
	}
	must(t, b.w.replayAsked(t.Context()))
	if n := query[int64](t, b.Worker, "select sum(requests)::bigint from usage_day"); n != 3 {
		t.Errorf("after a replay %d calls are counted, want 3", n)
	}
	list, err = p.Letters(t.Context(), false)
	must(t, err)
	if len(list) != 2 || list[0].Refused == nil || *list[0].Refused != tooLate {
		t.Errorf("after a replay: %+v", list)
	}
}

// TestNothingGoesWhileADayIsSummedAgain: a tenant keeps less while a sum is made,
// and the day is as it was.
func TestNothingGoesWhileADayIsSummedAgain(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	b.keeps(tenant, 0)
	old := time.Now().UTC().AddDate(0, 0, -40)
	from := old.Truncate(day)
	b.ingest(s.run(t, call(tenant, old)))
	waits := func(n int) func() bool {
		return func() bool {
			return query[int](t, b.Worker, "select count(*) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())") >= n
		}
	}
	var group sync.WaitGroup
	must(t, b.Worker.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "lock table usage_minute in row exclusive mode") // as a worker does
		group.Go(func() {
			if err := Rebuild(t.Context(), b.Worker, tenant, from, from.Add(day), time.Now()); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "the sum waits for a worker", waits(1))
		b.keeps(tenant, 30)
		group.Go(func() {
			if err := b.keeper(400, time.Now).Drop(t.Context()); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "what drops waits, or is done", func() bool {
			return waits(2)() || query[int](t, b.Worker, "select count(*) from usage_events") == 0
		})
		return err
	}))
	group.Wait()
	if n := b.day(tenant, from); n != 1 {
		t.Fatalf("the day has %d calls", n)
	}
	if n := query[int](t, b.Worker, "select count(*) from usage_events"); n != 0 {
		t.Fatalf("%d calls are still there", n)
	}
}

// TestAClockThatJumpsAheadDropsNothing: of the two clocks the earlier counts.
func TestAClockThatJumpsAheadDropsNothing(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	b.keeps(tenant, 30)
	b.ingest(s.run(t, call(tenant, time.Now())))
	before := query[string](t, b.Worker, wholeBooks)
	must(t, b.keeper(60, func() time.Time { return time.Now().AddDate(2, 0, 0) }).Drop(t.Context()))
	if after := query[string](t, b.Worker, wholeBooks); after != before {
		t.Error("sums were dropped")
	}
	b.ingest(s.run(t, call(tenant, time.Now())))
	wantTotals(t, b.Worker, calls(2))
}
