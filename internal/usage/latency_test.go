package usage

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	migrations "weir/db/migrations"
	"weir/internal/id"
	"weir/internal/limits"
)

// anyDuration is one that a call may take, often right at the bound of a bucket.
func anyDuration(r *rand.Rand) time.Duration {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return time.Duration(r.Int64N(int64(20 * time.Minute))).Truncate(time.Microsecond)
	case 2, 3:
		return latencyBounds[r.IntN(len(latencyBounds))] + time.Duration(r.IntN(3)-1)*time.Microsecond
	}
	return time.Duration(float64(time.Millisecond) * 8 * (1 + r.ExpFloat64()*float64(int(1)<<r.IntN(16)))).Truncate(time.Microsecond)
}

// exactly is the nearest-rank percentile.
func exactly(p int, took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[(len(took)*p+99)/100-1]
}

func TestAPercentileIsWithinAnEighthOfTheExactOne(t *testing.T) {
	t.Parallel()
	r := random(t)
	for range 2000 {
		var l Latency
		var all []time.Duration
		for range 1 + r.IntN(300) {
			e := Event{Outcome: OK, Requests: 1, EndedAt: time.Time{}.Add(anyDuration(r))}
			if bucket, ok := e.measured(); ok {
				l.count(bucket, 1)
				all = append(all, e.EndedAt.Sub(e.StartedAt))
			}
		}
		for _, p := range []int{1, 50, 95, 99, 100} {
			got, ok := l.Percentile(p)
			if ok != (len(all) > 0) {
				t.Fatalf("p%d of %d is there: %v", p, len(all), ok)
			}
			if !ok {
				continue
			}
			want := min(max(exactly(p, all), 10*time.Millisecond), 630*time.Second)
			if (got - want).Abs() > want/8 {
				t.Fatalf("p%d is %v, exactly %v", p, got, want)
			}
		}
	}
}

func TestAHistogramIsOneNumberAndBack(t *testing.T) {
	t.Parallel()
	r := random(t)
	b := newBooks(t)
	for range 100 {
		var one, other Latency
		for range r.IntN(30) {
			one.count(r.IntN(len(latencyBounds)+1), r.Int64N(1e9))
			other.count(r.IntN(len(latencyBounds)+1), 1+r.Int64N(100))
		}
		got, err := readLatency(query[string](t, b.Worker, "select ($1::text::numeric + $2::text::numeric)::text", one.number(), other.number()))
		must(t, err)
		one.plus(other)
		for n := len(one); n > 0 && one[n-1] == 0; n-- {
			one = one[:n-1]
		}
		if diff := cmp.Diff(one, got); diff != "" && len(one)+len(got) > 0 {
			t.Fatal(diff)
		}
	}
}

// TestReportsTellHowLongCallsTook that reached a provider, whatever table they are
// read from, and the books confirm it.
func TestReportsTellHowLongCallsTook(t *testing.T) {
	t.Parallel()
	b, s, r := newBooks(t), newSource(), random(t)
	tenant, now := id.New(), time.Now().UTC()
	from := now.Truncate(day)
	if now.Sub(from) < time.Hour {
		from = from.Add(-day)
	}
	models, users := []string{"gpt-4o", "o3", "free"}, []string{"ann", "ben"}
	want := map[string]Latency{}
	var events []Event
	for i := range 900 {
		e := call(tenant, from.Add(time.Duration(r.Int64N(int64(time.Hour)))))
		took := anyDuration(r)
		e.ModelAsked, e.EndUser, e.EndedAt = models[i%3], users[i%2], e.StartedAt.Add(took)
		e.Outcome = []Outcome{OK, OK, OK, ClientError, ProviderError, ProviderLimited, Aborted, Expired, "refused_tokens_minute"}[r.IntN(9)]
		if e.Outcome.Refused() {
			e.Requests, e.Refused = 0, 1
		}
		if bucket := slices.IndexFunc(latencyBounds, func(b time.Duration) bool { return b > took }); took > 0 && e.Requests > 0 && e.Outcome != Expired {
			if bucket < 0 {
				bucket = len(latencyBounds)
			}
			for _, name := range []string{"", e.ModelAsked, e.EndUser} {
				l := want[name]
				l.count(bucket, 1)
				want[name] = l
			}
		}
		events = append(events, e)
	}
	for part := range slices.Chunk(events, 300) {
		b.ingest(s.run(t, part...))
	}
	for _, bucket := range []Bucket{Minute, Quarter, Hour, Day} {
		for _, by := range []GroupBy{ByNothing, ByModel, ByEndUser} {
			q := Query{From: from, To: from.Add(time.Hour), Bucket: bucket, GroupBy: by, Filter: Filter{Tests: WithTests}, Zone: time.UTC, Days: limits.Zones{Zone: "UTC"}}
			rep := b.report(tenant, q)
			got := map[string]Latency{"": rep.Totals.Latency}
			for _, row := range rep.Rows {
				if by != ByNothing {
					l := got[row.Group.Name]
					l.plus(row.Latency)
					got[row.Group.Name] = l
				}
			}
			for name, l := range got {
				if diff := cmp.Diff(want[name], l); diff != "" {
					t.Errorf("%s by %q, %q: %s", bucket, by, name, diff)
				}
			}
		}
	}
	b.wantReconciled(tenant, from)
}

// wantReconciled holds the books of two days to their events.
func (b books) wantReconciled(tenant uuid.UUID, from time.Time) {
	b.t.Helper()
	differ, err := Reconcile(b.t.Context(), b.Worker, tenant, from.Add(-day), from.Add(2*day), time.Now())
	must(b.t, err)
	if len(differ) > 0 {
		b.t.Fatalf("the books differ: %v", differ)
	}
}

func TestCallsFromBeforeBooksHadLatenciesAreInThem(t *testing.T) {
	t.Parallel()
	b, s, r := newBooks(t), newSource(), random(t)
	tenant, now := id.New(), time.Now().UTC()
	var events []Event
	for range 200 {
		e := call(tenant, now.Add(-time.Duration(r.Int64N(int64(20*time.Hour)))))
		e.EndedAt = e.StartedAt.Add(anyDuration(r))
		events = append(events, e)
	}
	b.ingest(s.run(t, events...))
	before := query[string](t, b.Worker, wholeBooks)
	file, err := migrations.FS.ReadFile("00032_latency.sql")
	must(t, err)
	up, down, _ := strings.Cut(string(file), "-- +goose Down")
	owner, err := pgx.Connect(t.Context(), b.SuperURL)
	must(t, err)
	defer owner.Close(context.Background())
	for _, sql := range []string{down, up} {
		_, err = owner.Exec(t.Context(), sql)
		must(t, err)
	}
	if diff := cmp.Diff(before, query[string](t, b.Worker, wholeBooks)); diff != "" {
		t.Fatal(diff)
	}
}
