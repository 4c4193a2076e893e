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

	"weir/internal/id"
	"weir/internal/postgres"
)

// wholeBooks is every row of rollups and caps, as text.
const wholeBooks = `
	select string_agg(r, E'\n' order by r) from (
		select 'minute ' || m::text from usage_minute m union all select 'quarter ' || q::text from usage_quarter q
		union all select 'day ' || d::text from usage_day d union all select 'cap ' || c::text from cap_totals c) b (r)`

func execute(t testing.TB, db *postgres.DB, sql string, args ...any) {
	t.Helper()
	must(t, db.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	}))
}

// TestBooksThatAreSummedAgainAreWhatTheyWere, whatever was wrong with them, and
// while workers go on adding to them.
func TestBooksThatAreSummedAgainAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	b, s, r := newBooks(t), newSource(), random(t)
	now := time.Now().UTC()
	tenants := []uuid.UUID{id.New(), id.New()}
	some := func(n int) (events []Event) {
		for range n {
			e := call(tenants[0], now.Add(-time.Duration(r.Int64N(int64(20*time.Hour)))))
			e.ModelAsked, e.EndedAt = fmt.Sprint("m", r.IntN(3)), e.StartedAt.Add(anyDuration(r))
			events = append(events, e)
		}
		return events
	}
	b.ingest(s.run(t, some(200)...))
	b.ingest(newSource().run(t, call(tenants[1], now)))
	before := query[string](t, b.Worker, wholeBooks)
	execute(t, b.Worker, `update usage_quarter set requests = requests + 1, charge_pico = 0, latency = latency + 1 where tenant_id = $1`, tenants[0])
	execute(t, b.Worker, `delete from usage_day where tenant_id = $1`, tenants[0])
	execute(t, b.Worker, `update cap_totals set used = used * 2 where tenant_id = $1`, tenants[0])
	execute(t, b.Worker, `insert into usage_minute select tenant_id, bucket, customer_id, counter_id, provider_key_id, 'nobody', model_served, outcome, test, currency, cost_currency,
		1, 0, 0, 0, 0, 0, 0, 0, 0, 0 from usage_minute where tenant_id = $1 limit 1`, tenants[0])
	from, to := now.Truncate(day).AddDate(0, 0, -1), now.Truncate(day).AddDate(0, 0, 1)
	must(t, Rebuild(t.Context(), b.Worker, tenants[0], from, to, now))
	if diff := cmp.Diff(before, query[string](t, b.Worker, wholeBooks)); diff != "" {
		t.Fatal(diff)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for range 30 {
			b.ingest(s.run(t, some(10)...))
		}
	})
	group.Go(func() {
		for range 30 {
			if err := Rebuild(t.Context(), b.Worker, tenants[0], from, to, now); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	if got := balanced(t, b.Worker); got.Events != 501 || got.Requests != 501 || got.Caps != 5010 {
		t.Fatalf("%+v", got)
	}
}

// TestADayThatDiffersIsFoundAndPutRightOnceSomebodyAsks: the nightly check sees
// it, says what differs, and finds nothing after the day was summed again.
func TestADayThatDiffersIsFoundAndPutRightOnceSomebodyAsks(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	noon := time.Now().UTC().Truncate(day).AddDate(0, 0, -3).Add(12 * time.Hour)
	for d := range 3 {
		b.ingest(s.run(t, call(tenant, noon.AddDate(0, 0, d)), call(tenant, noon.AddDate(0, 0, d).Add(time.Minute))))
	}
	wrong := noon.Truncate(day).AddDate(0, 0, 1)
	execute(t, b.Worker, `update usage_day set output_tokens = output_tokens - 1 where bucket = $1`, wrong)
	keeper := NewKeeper(b.Worker, 0, quiet(t), time.Now)
	must(t, keeper.CheckDays(t.Context()))
	must(t, NewKeeper(b.Worker, 0, quiet(t), time.Now).CheckDays(t.Context()))
	day := b.reports().checks(t, tenant, noon)
	if len(day) < 2 || day[0].Differs != 0 || !day[1].Day.Equal(wrong) || day[1].Differs != 1 {
		t.Fatalf("%+v", day)
	}
	apart := func() (days []DayApart) {
		t.Helper()
		must(t, b.App.WithTenant(t.Context(), tenant, func(tx pgx.Tx) (err error) {
			days, err = DaysApart(t.Context(), tx, tenant, time.Time{})
			return err
		}))
		return days
	}
	if got := apart(); len(got) != 1 || !got[0].Day.Equal(wrong) || got[0].Rows != 1 {
		t.Fatalf("%+v", got)
	}
	must(t, b.reports().AskRebuild(t.Context(), tenant, wrong, wrong.Add(24*time.Hour), unaudited))
	must(t, keeper.RebuildAsked(t.Context()))
	day = b.reports().checks(t, tenant, noon)
	if day[1].Differs != 0 || day[1].RebuiltAt.IsZero() || day[1].Asked {
		t.Fatalf("%+v", day)
	}
	if got := apart(); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	balanced(t, b.Worker)
}

func unaudited(context.Context, pgx.Tx, uuid.UUID, string, string, any) error { return nil }

func (r *Reports) checks(t testing.TB, tenant uuid.UUID, around time.Time) []DayCheck {
	t.Helper()
	days, err := r.DayChecks(t.Context(), tenant, around.AddDate(0, 0, -1), around.AddDate(0, 0, 5))
	must(t, err)
	return days
}

// TestWhatIsPastItsTimeGoesAndSumsOfDaysStay: by the installation's days and by
// those of a tenant that keeps less.
func TestWhatIsPastItsTimeGoesAndSumsOfDaysStay(t *testing.T) {
	t.Parallel()
	b, s := newBooks(t), newSource()
	short, long := id.New(), id.New()
	must(t, b.App.WithTenant(t.Context(), short, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into tenants (tenant_id, name, usage_days, zone, currency) values ($1, 'short', 30, 'UTC', 'USD')`, short)
		return err
	}))
	now := time.Now().UTC()
	for _, ago := range []int{0, 20, 40, 100} {
		b.ingest(s.run(t, call(long, now.AddDate(0, 0, -ago))))
		b.ingest(s.run(t, call(short, now.AddDate(0, 0, -ago))))
	}
	keeper := NewKeeper(b.Worker, 60, quiet(t), time.Now)
	for range 2 {
		must(t, keeper.Drop(t.Context()))
	}
	for table, want := range map[string]int64{"usage_events": 5, "usage_day": 8, "usage_quarter": 6, "usage_minute": 2} {
		if n := query[int64](t, b.Worker, "select count(*) from "+table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	if n := query[int64](t, b.Worker, "select count(*) from pg_inherits where inhparent = 'usage_events'::regclass"); n != 3+3 {
		t.Errorf("%d partitions", n)
	}
}

// TestAnErasedCustomersCallsNameNobodyAndCountWhatTheyDid: those in the books and
// those that come later; other customers' calls are as they were.
func TestAnErasedCustomersCallsNameNobodyAndCountWhatTheyDid(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	named := func(customer uuid.UUID, ago time.Duration) Event {
		e := call(tenant, time.Now().Add(-ago))
		e.Customer, e.EndUser, e.Tags = customer, "ann@x.example", map[string]string{"who": "ann"}
		return e
	}
	gone, other := sub(tenant, 1), id.New()
	b.ingest(s.run(t, named(gone, 50*time.Hour), named(gone, time.Minute), named(other, time.Minute)))
	must(t, b.App.WithTenant(t.Context(), tenant, func(tx pgx.Tx) error { return Erase(t.Context(), tx, tenant, gone) }))
	clock := newClock()
	keeper := NewKeeper(b.Worker, 0, quiet(t), clock.now)
	persons := func() int64 {
		return query[int64](t, b.Worker, `select count(*) from usage_events where end_user is not null or tags is not null`)
	}
	must(t, keeper.EraseAsked(t.Context()))
	if n := persons(); n != 1 {
		t.Fatalf("%d calls name somebody, want the other customer's", n)
	}
	b.ingest(s.run(t, named(gone, time.Minute)))
	clock.advance(time.Hour)
	must(t, keeper.EraseAsked(t.Context()))
	if n := persons(); n != 1 {
		t.Fatalf("%d calls name somebody after one came late", n)
	}
	clock.advance(20 * day)
	must(t, keeper.EraseAsked(t.Context()))
	late := s.run(t, named(gone, time.Minute), named(other, time.Minute)) // of a spool that was found much later
	b.ingest(late)
	if n := persons(); n != 2 {
		t.Fatalf("%d calls name somebody after one came very late", n)
	}
	b.ingest(late)
	if got := balanced(t, b.Worker); got.Events != 6 || got.Tokens != 60 || b.letters() != "" {
		t.Fatalf("%+v, dead letters %q", got, b.letters())
	}
}
