package usage

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/redistest"
	"weir/internal/postgres"
	"weir/internal/queue/queuetest"
)

// life is a process on a spool and an engine, as the API starts: on Redis where a
// URL is given.
type life struct {
	spool  *Spool
	books  *Books
	engine Limiter
	meter  *Meter
	ends   func()
}

type liver interface {
	Limiter
	Live(ctx context.Context, tenant uuid.UUID, list []limits.Limit, model, endUser string) ([]limits.State, error)
}

func begin(dir string, db *postgres.DB, redis string, log *slog.Logger, now func() time.Time) (*life, error) {
	ctx := context.Background()
	s, rec, err := OpenSpool(dir, SpoolOptions{SyncEvery: 5 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	l := &life{spool: s, books: NewBooks(db, s.Instance(), rec.Tail), ends: func() { crash(s) }}
	var shared *limits.Redis
	if redis == "" {
		l.engine = limits.NewMemory(limits.MemoryOptions{
			Now: time.Now, Books: l.books, Started: time.Now(), Unclean: !rec.Fresh && len(rec.Snapshot) == 0, LastAlive: rec.LastAlive, Snapshot: rec.Snapshot, Journal: rec.Journal,
		})
	} else if shared, err = limits.DialRedis(redis, limits.RedisOptions{Owner: s.Instance().String(), Books: l.books}); err == nil {
		l.engine, l.ends = shared, func() { shared.Close(); crash(s) }
	}
	if err != nil {
		return nil, err
	}
	ended, _, err := CloseOpen(ctx, s, rec.Open, shared, time.Now())
	if err != nil {
		return nil, err
	}
	l.books.Left(ended)
	l.meter = NewMeter(l.engine, s, NewReports(db, time.Now), log, now)
	return l, nil
}

// journeys are what the calls of a tenant are charged by, in every life.
type journeys struct {
	tenant uuid.UUID
	plan   []limits.Limit
	keys   keys
}

func newJourneys(tenant uuid.UUID, zone string) journeys {
	j := journeys{tenant: tenant}
	place := func(n byte, s limits.Scope, l limits.Limit) limits.Limit {
		l.ID, l.Scope = sub(s.ID, n), s
		return limits.Default(l)
	}
	customer := limits.Scope{Kind: limits.ScopeCustomer, ID: sub(tenant, 1), Name: "Plan"}
	tokens, requests := limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 1e12, Zone: zone}, limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 1e12, Zone: zone}
	atOnce := limits.Limit{Dimension: limits.DimensionConcurrency, Window: limits.WindowNone, Amount: 1000}
	j.plan = []limits.Limit{place(1, customer, tokens), place(2, customer, requests), place(3, customer, atOnce)}
	for n := range byte(3) {
		s := limits.Scope{Kind: limits.ScopeProviderKey, ID: sub(tenant, 10+n), Name: "key"}
		own := []limits.Limit{place(1, s, tokens), place(2, s, requests), place(3, s, atOnce)}
		j.keys.limits = append(j.keys.limits, own)
		j.keys.candidates = append(j.keys.candidates, limits.Candidate{ProviderKey: s.ID, Model: "m", Limits: limits.Compile(own)})
	}
	return j
}

// forgiving is the status of an attempt whose provider does not count it.
const forgiving = 429

// one is a call that goes from key to key, and its end.
func (j *journeys) one(m *Meter) error {
	ctx := context.Background()
	some := func() limits.Tokens { return limits.Tokens{Input: rand.Int64N(50)} }
	d, err := m.Admit(ctx, Call{
		RequestID: id.New(), Tenant: j.tenant, Zones: limits.Zones{Zone: j.plan[0].Zone}, Customer: j.plan[0].Scope.ID, Key: sub(j.tenant, 2), Counter: sub(j.tenant, 3),
		Kind: "chat", Model: "m", Currency: "USD", Plan: []*limits.Set{limits.Compile(j.plan)}, Candidates: j.keys.candidates[:1],
		Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 100, Output: 400}}, TTL: 15 * time.Second,
	})
	if err != nil {
		return err
	}
	at := 0
	for ; at < rand.IntN(len(j.keys.candidates)); at++ {
		ended := try(j.keys.candidates[at], []int{500, forgiving}[rand.IntN(2)], some())
		_, err := m.Move(ctx, j.tenant, d.Reservation.ID, Next{Ended: ended, GiveBackRequest: ended.Status == forgiving, Candidates: j.keys.candidates[at+1:]})
		if err != nil {
			return err
		}
	}
	if rand.IntN(10) == 0 {
		_, err = m.Extend(ctx, j.tenant, d.Reservation.ID, time.Now().Add(20*time.Minute))
		if err != nil {
			return err
		}
	}
	tokens := some()
	_, err = m.Settle(ctx, j.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: tokens, Attempts: []Attempt{try(j.keys.candidates[at], 200, tokens)}})
	return err
}

// moverChild makes calls on several goroutines and says when one has ended, until
// it is killed.
func moverChild() {
	db, err := postgres.Open(context.Background(), os.Getenv("WEIR_TEST_DB"), postgres.Options{})
	if err != nil {
		panic(err)
	}
	l, err := begin(os.Getenv("WEIR_TEST_DIR"), db, os.Getenv("WEIR_TEST_REDIS"), slog.Default(), time.Now)
	if err != nil {
		panic(err)
	}
	j := newJourneys(uuid.MustParse(os.Getenv("WEIR_TEST_TENANT")), os.Getenv("WEIR_TEST_ZONE"))
	for range 6 {
		go func() {
			for {
				if err := j.one(l.meter); err != nil {
					panic(err)
				}
				fmt.Println("ended")
			}
		}()
	}
	select {}
}

func TestWhereverAProcessIsKilledBooksEngineAndAttemptsAgree(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"memory", "redis"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			b, q := newBooks(t), queuetest.New(t).Connect()
			zone := "UTC"
			if time.Now().UTC().Hour() >= 18 { // no day ends meanwhile
				zone = "Asia/Tokyo"
			}
			dir, j, redis := t.TempDir(), newJourneys(id.New(), zone), ""
			if where == "redis" {
				redis = redistest.Start(t).URL()
			}
			r := random(t)
			for range 12 {
				p := child(t, "mover", "WEIR_TEST_DIR="+dir, "WEIR_TEST_DB="+b.AppURL, "WEIR_TEST_REDIS="+redis, "WEIR_TEST_TENANT="+j.tenant.String(), "WEIR_TEST_ZONE="+zone)
				n := 0
				for most := 1 + r.IntN(60); n < most && p.lines.Scan(); n++ {
				}
				must(t, p.Process.Signal(syscall.SIGKILL))
				_ = p.wait()
				if n == 0 {
					t.Fatal("a life made no call")
				}
			}
			// What the engine let through and no spool has is given back once it has run
			// out, and nobody can know of it any more.
			l, err := begin(dir, b.App, redis, quiet(t), func() time.Time { return time.Now().Add(2 * unknownFor) })
			must(t, err)
			defer l.ends()
			must(t, j.one(l.meter)) // from which it learns what has run out
			sums := j.charged(t, l)
			defer func() {
				if t.Failed() {
					t.Logf("events and engine:\n%s", cmp.Diff(sums, j.held(t, l)))
				}
			}()
			eventually(t, "the engine holds what the events charge, and nothing is open", func() bool {
				l.meter.Sweep()
				return cmp.Equal(sums, j.held(t, l))
			})
			working(t, q, b.Worker)
			p, _ := publishing(t, l.spool, q, b.App)
			drained(t, p)
			balanced(t, b.Worker)
		})
	}
}

// charged is what the events charge in sum, each of which charges what its attempts
// took.
func (j *journeys) charged(t *testing.T, l *life) map[string]int64 {
	t.Helper()
	must(t, l.spool.sync())
	sums := map[string]int64{}
	events, moved, lost := 0, 0, 0
	_, err := l.spool.read(position{}, func(r record) bool {
		var e Event
		must(t, decodeOwn(r.payload, &e))
		events++
		if len(e.Attempts) > 1 {
			moved++
		}
		if e.Outcome == Expired {
			lost++
		}
		got := amounts(e.Charges)
		for ledger, n := range got {
			sums[ledger] += n
			if n == 0 {
				delete(got, ledger)
			}
		}
		if diff := cmp.Diff(j.took(e), got); diff != "" {
			t.Errorf("%s, %d attempts: what they took is not what is charged:\n%s", e.Outcome, len(e.Attempts), diff)
		}
		return true
	})
	must(t, err)
	t.Logf("%d events, %d of several attempts, %d lost", events, moved, lost)
	if moved == 0 || lost == 0 {
		t.Error("too little happened")
	}
	return sums
}

// held is what the engine holds, of every ledger that is not free.
func (j *journeys) held(t *testing.T, l *life) map[string]int64 {
	t.Helper()
	held := map[string]int64{}
	for _, list := range append(j.keys.limits, j.plan) {
		states, err := l.engine.(liver).Live(t.Context(), j.tenant, list, "m", "")
		must(t, err)
		for _, s := range states {
			if n := s.Used + s.Held; n != 0 {
				held[s.Ledger] = n
			}
		}
	}
	return held
}

// took is what an event has to charge: the plan what the call took, each key what
// its attempts did, and the one that ran when the process died what the call did.
func (j *journeys) took(e Event) map[string]int64 {
	want := map[string]int64{j.plan[0].Ledger("m"): e.Tokens.Total(), j.plan[1].Ledger("m"): 1}
	charge := func(key uuid.UUID, tokens int64, counts bool) {
		for i, c := range j.keys.candidates {
			if c.ProviderKey == key {
				want[j.keys.limits[i][0].Ledger("m")] += tokens
				if counts {
					want[j.keys.limits[i][1].Ledger("m")]++
				}
			}
		}
	}
	for _, a := range e.Attempts {
		charge(a.ProviderKey, a.Tokens.Total(), a.Status != forgiving)
	}
	if n := len(e.Attempts); n == 0 || e.Attempts[n-1].ProviderKey != e.ProviderKey {
		charge(e.ProviderKey, e.Tokens.Total(), true)
	}
	for ledger, n := range want {
		if n == 0 {
			delete(want, ledger)
		}
	}
	return want
}
