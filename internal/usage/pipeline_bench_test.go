package usage

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/postgres/postgrestest"
	"weir/internal/queue/queuetest"
)

// benchEvents is how many events each part of BenchmarkUsage ends or finds:
// WEIR_BENCH_EVENTS, or the default.
func benchEvents(b *testing.B, otherwise int) int {
	b.Helper()
	text := os.Getenv("WEIR_BENCH_EVENTS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		b.Fatalf("WEIR_BENCH_EVENTS is a whole number from 1,000, not %q", text)
	}
	return n
}

// manyCalls are n calls of sixteen tenants, each with twenty keys and four models.
func manyCalls(n int) []Event {
	var tenants [16]uuid.UUID
	for i := range tenants {
		tenants[i] = id.New()
	}
	at := time.Now()
	out := make([]Event, n)
	for i := range out {
		e := call(tenants[i%len(tenants)], at)
		e.Counter, e.Customer = sub(e.Tenant, byte(100+i/16%20)), sub(e.Tenant, byte(200+i/16%20))
		e.ModelAsked = []string{"gpt-4o", "gpt-4o-mini", "claude-sonnet-4", "o3"}[i/320%4]
		e.Charges[0].Ledger = "customer:" + e.Customer.String() + "/tokens/day"
		e.Charge, e.Prices = money.FromInt(1_234_500), []uuid.UUID{sub(e.Tenant, 9)}
		out[i] = e
	}
	return out
}

// BenchmarkUsage is the way of a settled call to a row that is there exactly once,
// and what is read of it after.
func BenchmarkUsage(b *testing.B) {
	for _, x := range []struct {
		name    string
		measure func(*testing.B)
	}{{"pipeline", benchPipeline}, {"lag", benchLag}, {"report", benchReport}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				x.measure(b)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// bookkeeping is a spool, a queue and a worker on books of their own.
func bookkeeping(b *testing.B) (s *Spool, p *Publisher, db postgrestest.Database) {
	b.Helper()
	db, q := postgrestest.New(b), queuetest.New(b).Connect()
	s, _ = spoolAt(b, b.TempDir(), SpoolOptions{SyncEvery: 100 * time.Millisecond})
	p = NewPublisher(s, q, db.App, testKeys, PublisherOptions{PollEvery: 50 * time.Millisecond, Log: quiet(b)})
	w := NewWorker(db.Worker, q, testKeys, WorkerOptions{Log: quiet(b)})
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = p.Run(ctx) })
	group.Go(func() { _ = w.Run(ctx) })
	b.Cleanup(func() { stop(); group.Wait() })
	return s, p, db
}

// benchPipeline takes turns: so many events from their settlement to the commit,
// and as many in bare transactions that insert the same rows into the same tables.
func benchPipeline(b *testing.B) {
	const rounds = 4
	n := benchEvents(b, 160_000) / rounds
	s, p, db := bookkeeping(b)
	bare := NewWorker(db.Worker, nil, testKeys, WorkerOptions{Log: quiet(b)})
	var whole, least time.Duration
	for range rounds {
		whole += endToEnd(b, s, p, manyCalls(n))
		least += bareInserts(b, bare, manyCalls(n))
	}
	per := float64(n * rounds)
	b.ReportMetric(per/whole.Seconds(), "events/s")
	b.ReportMetric(per/least.Seconds(), "bare-events/s")
	b.ReportMetric(least.Seconds()/whole.Seconds(), "of-bare")
	if got := query[int](b, db.Worker, "select count(*) from usage_events"); got != 2*n*rounds {
		b.Fatalf("the books have %d events of %d", got, 2*n*rounds)
	}
}

func endToEnd(b *testing.B, s *Spool, p *Publisher, events []Event) time.Duration {
	b.Helper()
	began := time.Now()
	var group sync.WaitGroup
	for part := range slices.Chunk(events, (len(events)+1)/2) {
		group.Go(func() {
			for i := range part {
				must(b, s.Admit(admission(part[i])))
				must(b, s.Finish(&part[i]))
			}
		})
	}
	group.Wait()
	must(b, p.Drained(b.Context()))
	return time.Since(began)
}

// bareInserts commits rows that are made already, 5,000 in a transaction, one after
// the other: what the tables themselves take.
func bareInserts(b *testing.B, w *Worker, events []Event) time.Duration {
	b.Helper()
	var parts [][]*item
	for part := range slices.Chunk(events, 5000) {
		var all batch
		for i := range part {
			part[i].Instance, part[i].Number = sub(part[i].ID, 1), 1
			all.items = append(all.items, &item{event: part[i]})
		}
		all.settle()
		parts = append(parts, all.items)
	}
	var took time.Duration
	for _, items := range parts {
		must(b, w.ensureDays(b.Context(), batch{items: items}))
		began := time.Now()
		must(b, w.db.Tx(b.Context(), func(tx pgx.Tx) error {
			stored, err := insertEvents(b.Context(), tx, items)
			if err != nil {
				return err
			}
			var rest pgx.Batch
			queueRollups(&rest, newOnes(items, stored))
			return tx.SendBatch(b.Context(), &rest).Close()
		}))
		took += time.Since(began)
	}
	return took
}

// benchLag ends two thousand calls a second, and looks how long one takes to be in
// the books.
func benchLag(b *testing.B) {
	const perSecond, probes = 2000, 100
	s, _, db := bookkeeping(b)
	events := manyCalls(perSecond / 20 * probes)
	var lags []time.Duration
	var seen sync.WaitGroup
	var mu sync.Mutex
	begun := time.Now()
	for i := range events {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / perSecond)))
		must(b, s.Admit(admission(events[i])))
		must(b, s.Finish(&events[i]))
		if i%(perSecond/20) != 0 {
			continue
		}
		ended, event := time.Now(), events[i].ID
		seen.Go(func() {
			for !query[bool](b, db.Worker, `select exists (select from usage_events where event_id = $1 and day_utc = $2)`, event, partition(event)) {
				time.Sleep(5 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			lags = append(lags, time.Since(ended))
		})
	}
	seen.Wait()
	report(b, lags, "lag")
}

func report(b *testing.B, took []time.Duration, what string) {
	slices.Sort(took)
	for _, p := range []int{50, 95} {
		b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", what, p))
	}
}

// benchReport reads thirty days of a tenant with ten million calls, of a hundred
// keys and ten models, in turn by every group.
func benchReport(b *testing.B) {
	db, tenant := postgrestest.New(b), id.New()
	to := limits.DayStart(time.Now(), time.UTC)
	from := to.Add(-30 * day)
	const keys, models = 100, 10
	perRow := max(benchEvents(b, 10_000_000)/(30*96*keys), 1)
	super, err := pgx.Connect(b.Context(), db.SuperURL)
	must(b, err)
	defer super.Close(context.Background())
	_, err = super.Exec(b.Context(), fmt.Sprintf(`
		insert into usage_quarter
		select %[1]s, q, md5('customer' || k)::uuid, md5('key' || k)::uuid, md5('provider' || k %% 5)::uuid, 'model-' || m, 'model-' || m, 'ok', false, 'USD', 'USD',
		       %[3]d, 0, 1000 * %[3]d, 0, 0, 200 * %[3]d, 0, 0, 1234567 * %[3]d, 1000000 * %[3]d, %[3]d::numeric * ('1e' || 16 * (k %% 10 + m + 10))::numeric + 1e160 + 1e480
		from generate_series(%[2]s, %[2]s + interval '30 days' - interval '15 minutes', interval '15 minutes') q, generate_series(1, %[4]d) k,
		     lateral (select (k + extract(epoch from q)::bigint / 900) %% %[5]d as m) x;
		insert into usage_day
		select tenant_id, date_trunc('day', bucket), customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency,
		       sum(requests), sum(refused), sum(input_tokens), sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens), sum(reasoning_tokens),
		       sum(units), sum(charge_pico), sum(cost_pico), sum(latency)
		from usage_quarter
		group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11;
		analyze usage_quarter, usage_day`,
		"'"+tenant.String()+"'::uuid", "'"+from.Format(time.RFC3339)+"'::timestamptz", perRow, keys, models))
	must(b, err)
	r := NewReports(db.App, time.Now)
	var took []time.Duration
	for i := range 60 {
		q := Query{From: from, To: to, Bucket: Day, GroupBy: []GroupBy{ByNothing, ByCustomer, ByKey, ByModel, ByProviderKey, ByOutcome}[i%6], Zone: time.UTC, Days: limits.Zones{Zone: "UTC"}}
		began := time.Now()
		got, err := r.Report(b.Context(), tenant, q)
		must(b, err)
		if i >= 12 { // the first of each warm up
			took = append(took, time.Since(began))
		}
		if want := int64(perRow * 30 * 96 * keys); got.Totals.Requests != want {
			b.Fatalf("the report counts %d calls of %d", got.Totals.Requests, want)
		}
	}
	report(b, took, "report")
	b.ReportMetric(float64(perRow*30*96*keys), "calls")
}
