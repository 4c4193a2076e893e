package limits_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/redistest"
)

// ledgerBooks are books that hold what outcomes say, as soon as they say it.
type ledgerBooks struct {
	mu     sync.Mutex
	totals map[limits.WindowKey]limits.Total
}

func (b *ledgerBooks) CapTotals(_ context.Context, _ uuid.UUID, keys []limits.WindowKey) ([]limits.Total, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]limits.Total, len(keys))
	for i, k := range keys {
		list[i] = b.totals[k]
	}
	return list, nil
}

func (b *ledgerBooks) add(charges []limits.Charge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range charges {
		k := limits.WindowKey{Ledger: c.Ledger, WindowStart: c.WindowStart}
		b.totals[k] = limits.Total{Amount: b.totals[k].Amount + c.Amount}
	}
}

// pair is two processes on one Redis, and a customer of theirs.
type pair struct {
	*testing.T
	server           *redistest.Server
	books            *ledgerBooks
	engines          [2]*limits.Redis
	tenant, customer uuid.UUID
}

func newPair(t *testing.T, budget time.Duration) *pair {
	p := &pair{T: t, server: redistest.Start(t), tenant: id.New(), customer: id.New()}
	p.books = &ledgerBooks{totals: map[limits.WindowKey]limits.Total{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range p.engines {
		e, err := limits.DialRedis(p.server.URL(), limits.RedisOptions{Books: p.books, Owner: id.New().String(), Budget: budget, Processes: 2})
		if err != nil {
			t.Fatal(err)
		}
		p.engines[i] = e
		running.Go(func() { _ = e.Run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, e := range p.engines {
			e.Close()
		}
	})
	return p
}

func (p *pair) limit(w limits.Window, amount int64, mode limits.Outage) limits.Limit {
	return limits.Default(limits.Limit{
		Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: p.customer}, Dimension: limits.DimensionRequests, Window: w, Amount: amount, Outage: mode,
	})
}

// call reserves one request in a process, and settles it.
func (p *pair) call(i int, set *limits.Set, settle bool) (admitted bool, err error) {
	d, err := p.engines[i].Reserve(context.Background(), limits.Request{
		Tenant: p.tenant, Model: "m", Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1}, Forget: true,
	})
	if err != nil || !d.Admitted {
		return false, err
	}
	if settle {
		o, err := p.engines[i].Settle(context.Background(), p.tenant, d.Reservation.ID, limits.Settlement{})
		if err != nil {
			p.Errorf("settle: %v", err)
		}
		if o.First {
			p.books.add(o.Charges)
		}
	}
	return true, nil
}

// flood takes what both processes give, until neither gives any more.
func (p *pair) flood(set *limits.Set) (admitted int) {
	for dry := 0; dry < 20; {
		before := admitted
		for i := range p.engines {
			if ok, _ := p.call(i, set, admitted%2 == 0); ok {
				admitted++
			}
		}
		if dry++; admitted > before {
			dry = 0
		}
	}
	return admitted
}

func (p *pair) await(what string, holds func() bool) {
	p.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatal("in vain: ", what)
		}
	}
}

func (p *pair) back() {
	p.Helper()
	p.await("Redis is back", func() bool { return !p.engines[0].Out() && !p.engines[1].Out() })
}

func (p *pair) out(set *limits.Set) {
	p.Helper()
	p.await("Redis is out", func() bool {
		for i := range p.engines {
			_, _ = p.engines[i].Reserve(context.Background(), limits.Request{Tenant: p.tenant, Model: "m", Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1}, DryRun: true})
		}
		return p.engines[0].Out() && p.engines[1].Out()
	})
}

func (p *pair) used(l limits.Limit) int64 {
	p.Helper()
	var s []limits.State
	p.await("the state", func() (ok bool) {
		var err error
		s, err = p.engines[0].Live(context.Background(), p.tenant, []limits.Limit{l}, "m", "")
		return err == nil
	})
	return s[0].Used + s[0].Held
}

// outages are how Redis fails, and comes back.
var outages = []struct {
	name    string
	out, in func(*redistest.Server)
	emptied bool
}{
	{"Killed", func(s *redistest.Server) { s.Kill() }, func(s *redistest.Server) { s.Run() }, true},
	{"Stopped", func(s *redistest.Server) { s.Signal(syscall.SIGSTOP) }, func(s *redistest.Server) { s.Signal(syscall.SIGCONT) }, false},
	{"Slow", func(s *redistest.Server) { s.Pause(2 * time.Second) }, func(*redistest.Server) {}, false},
}

func TestADailyCapHoldsThroughAnOutageWhereItIsShared(t *testing.T) {
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			p := newPair(t, 100*time.Millisecond)
			day := p.limit(limits.WindowDay, 100, limits.OutageShare)
			set := limits.Compile([]limits.Limit{day})
			total := 0
			for i := range 40 {
				if ok, err := p.call(i%2, set, i%4 < 2); !ok || err != nil {
					t.Fatal(ok, err)
				}
				total++
			}
			o.out(p.server)
			p.out(set)
			got := p.flood(set)
			if total += got; total > 101 || got < 50 { // the view of one of them is one call old
				t.Fatalf("%d admitted while it was out, %d in all, of 100", got, total)
			}
			o.in(p.server)
			p.back()
			// Of an emptied one, what the books may not have yet is told again; calls
			// whose answer was lost stay charged, a few of each process.
			if used := p.used(day); used < int64(total) || !o.emptied && used > int64(total)+6 {
				t.Fatalf("%d counted, %d admitted", used, total)
			}
			if total += p.flood(set); total > 101 {
				t.Fatalf("%d admitted in all, of 100", total)
			}
		})
	}
}

func TestAnEmptiedRedisGivesNoDailyCapBack(t *testing.T) {
	p := newPair(t, time.Second)
	day := p.limit(limits.WindowDay, 100, limits.OutageShare)
	set := limits.Compile([]limits.Limit{day})
	total := 0
	for i := range 60 {
		if ok, err := p.call(i%2, set, i%4 < 2); !ok || err != nil {
			t.Fatal(ok, err)
		}
		total++
	}
	p.server.Flush()
	for i := range 2 { // each notices with its next call
		if ok, err := p.call(i, set, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
		total++
	}
	p.await("what is open counts again", func() bool { return p.used(day) >= int64(total) })
	if total += p.flood(set); total > 100 {
		t.Fatalf("%d admitted of 100", total)
	}
}

func TestWhatIsClosedInAnOutageFailsAndWhatIsOpenPasses(t *testing.T) {
	p := newPair(t, 500*time.Millisecond)
	closed := limits.Compile([]limits.Limit{p.limit(limits.WindowDay, 100, limits.OutageShare), p.limit(limits.WindowMinute, 100, limits.OutageClosed)})
	opened := limits.Compile([]limits.Limit{p.limit(limits.WindowDay, 5, limits.OutageOpen)})
	if ok, err := p.call(0, closed, true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	p.server.Kill()
	p.out(opened)
	if _, err := p.call(0, closed, true); err == nil || fault.Of(err).Code != "limiter_unavailable" {
		t.Fatalf("%v", err)
	}
	for range 20 {
		if ok, err := p.call(1, opened, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	p.server.Run()
	p.back()
	if used := p.used(p.limit(limits.WindowDay, 5, limits.OutageOpen)); used < 21 {
		t.Fatalf("%d counted, 21 admitted", used)
	}
}

func TestWithoutItsScriptsRedisDecidesAllTheSame(t *testing.T) {
	p := newPair(t, time.Second)
	set := limits.Compile([]limits.Limit{p.limit(limits.WindowDay, 10, limits.OutageClosed)})
	total := 0
	for i := range 20 {
		p.server.ForgetScripts()
		if ok, err := p.call(i%2, set, false); err != nil {
			t.Fatal(err)
		} else if ok {
			total++
		}
	}
	if total != 10 {
		t.Fatalf("%d admitted of 10", total)
	}
}
