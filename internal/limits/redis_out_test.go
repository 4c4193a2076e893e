package limits_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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

// ledgerBooks are books that hold what outcomes say, some time after they say it.
type ledgerBooks struct {
	mu       sync.Mutex
	lag      time.Duration
	entries  []entry // in the order in which they are held
	readings []time.Time
}

type entry struct {
	call uuid.UUID
	of   []limits.Charge
	at   time.Time
}

func (b *ledgerBooks) Read(_ context.Context, _ uuid.UUID, keys []limits.WindowKey) ([]limits.Total, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.readings = append(b.readings, now)
	list := make([]limits.Total, len(keys))
	for _, e := range b.entries {
		if e.at.After(now) {
			continue
		}
		for _, c := range e.of {
			if i := slices.Index(keys, limits.WindowKey{Ledger: c.Ledger, WindowStart: c.WindowStart}); i >= 0 {
				list[i].Amount += c.Amount
			}
		}
	}
	return list, strconv.Itoa(len(b.readings)), nil
}

func (b *ledgerBooks) Held(_ context.Context, _ uuid.UUID, reading string, calls []uuid.UUID) (held []uuid.UUID, err error) {
	n, err := strconv.Atoi(reading)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if !e.at.After(b.readings[n-1]) && slices.Contains(calls, e.call) {
			held = append(held, e.call)
		}
	}
	return held, nil
}

func (b *ledgerBooks) add(call uuid.UUID, charges []limits.Charge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, entry{call, charges, time.Now().Add(b.lag)})
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
	return newPairBy(t, budget, func(_ int, s *redistest.Server) string { return s.URL() })
}

// newPairBy is newPair, where each process has its own way to the server.
func newPairBy(t *testing.T, budget time.Duration, way func(i int, s *redistest.Server) string) *pair {
	p := &pair{T: t, server: redistest.Start(t), tenant: id.New(), customer: id.New()}
	p.books = &ledgerBooks{lag: 150 * time.Millisecond}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range p.engines {
		e, err := limits.DialRedis(way(i, p.server), limits.RedisOptions{Books: p.books, Owner: id.New().String(), Budget: budget, Processes: 2})
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
			p.books.add(d.Reservation.ID, o.Charges)
		}
	}
	return true, nil
}

func (p *pair) spends(i int, set *limits.Set) bool {
	ok, err := p.call(i, set, true)
	if err != nil {
		p.Fatal(err)
	}
	return ok
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

// await asks again and again until missing says "", as for long as all that is
// open takes to run out.
func (p *pair) await(missing func() string) {
	p.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		last := missing()
		if last == "" {
			return
		}
		select {
		case <-deadline.C:
			p.Fatal("still: ", last)
		case <-tick.C:
		}
	}
}

func (p *pair) back() {
	p.Helper()
	p.await(func() string {
		if p.engines[0].Out() || p.engines[1].Out() {
			return "Redis is out"
		}
		return ""
	})
}

func (p *pair) out(set *limits.Set) {
	p.Helper()
	p.await(func() string {
		for i := range p.engines {
			_, _ = p.engines[i].Reserve(context.Background(), limits.Request{Tenant: p.tenant, Model: "m", Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1}, DryRun: true})
		}
		if p.engines[0].Out() && p.engines[1].Out() {
			return ""
		}
		return "Redis is not out"
	})
}

func (p *pair) used(l limits.Limit) int64 {
	p.Helper()
	var used int64
	p.await(func() string {
		s, err := p.engines[0].Live(context.Background(), p.tenant, []limits.Limit{l}, "m", "")
		if err != nil {
			return err.Error()
		}
		if s[0].Degraded {
			return "what one process knows"
		}
		used = s[0].Used + s[0].Held
		return ""
	})
	return used
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
			// Calls whose answer was lost stay charged until they run out, a few of each
			// process; an emptied one has lost them.
			if used := p.used(day); used < int64(total) || used > int64(total)+6 || o.emptied && used != int64(total) {
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
	p.await(func() string {
		if used := p.used(day); used != int64(total) {
			return fmt.Sprintf("%d counted of %d", used, total)
		}
		return ""
	})
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
	for p.spends(1, opened) { // what is open passes though nothing was left
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
	if used := p.used(p.limit(limits.WindowDay, 5, limits.OutageOpen)); used != 25 {
		t.Fatalf("%d counted, 25 admitted", used)
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

// keyed is a provider key of the pair's tenant, with room for ten calls a day, so
// many at once.
func (p *pair) keyed(atOnce int64) (limits.Candidate, []limits.Limit) {
	key := id.New()
	list := []limits.Limit{
		{Dimension: limits.DimensionRequests, Window: limits.WindowDay, Amount: 10}, {Dimension: limits.DimensionConcurrency, Window: limits.WindowNone, Amount: atOnce},
	}
	for i := range list {
		list[i].Scope = limits.Scope{Kind: limits.ScopeProviderKey, ID: key}
		list[i] = limits.Default(list[i])
	}
	return limits.Candidate{ProviderKey: key, Model: "m", Limits: limits.Compile(list)}, list
}

func TestACallGoesOnToAnotherProviderKeyWhileRedisIsOut(t *testing.T) {
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			p := newPair(t, 100*time.Millisecond)
			one, ofOne := p.keyed(4)
			two, ofTwo := p.keyed(2)
			set := limits.Compile([]limits.Limit{p.limit(limits.WindowDay, 100, limits.OutageShare)})
			reserve := func() limits.Reservation {
				d, err := p.engines[0].Reserve(t.Context(), limits.Request{
					Tenant: p.tenant, Model: "m", Plan: []*limits.Set{set}, Candidates: []limits.Candidate{one}, Estimate: limits.Cost{Requests: 1}, Forget: true,
				})
				if err != nil || !d.Admitted {
					t.Fatalf("%+v, %v", d, err)
				}
				return d.Reservation
			}
			next := func(r limits.Reservation) (limits.Decision, error) {
				return p.engines[0].Move(t.Context(), limits.Next{Tenant: p.tenant, ID: r.ID, Plan: []*limits.Set{set}, Candidates: []limits.Candidate{two}})
			}
			before := reserve()
			o.out(p.server)
			p.out(set)
			meanwhile := reserve()
			if d, err := next(before); err != nil || !d.Admitted || d.Candidate != 0 || len(d.Reservation.Holds) != 5 {
				t.Fatalf("%+v, %v", d, err)
			}
			if d, err := next(before); err != nil || !d.Admitted { // again
				t.Fatalf("%+v, %v", d, err)
			}
			if d, err := next(meanwhile); err != nil || d.Admitted || !d.ProviderFull { // its part of two at a time is one
				t.Fatalf("%+v, %v", d, err)
			}
			states, err := p.engines[0].Live(t.Context(), p.tenant, ofTwo, "m", "")
			if err != nil || !states[0].Degraded || states[0].Limit.Amount != 10 || states[0].Remaining != 4 || states[1].Remaining != 0 {
				t.Fatalf("%+v, %v", states, err)
			}
			for _, r := range []limits.Reservation{before, meanwhile} {
				o, err := p.engines[0].Settle(t.Context(), p.tenant, r.ID, limits.Settlement{})
				if err != nil || !o.First {
					t.Fatalf("%+v, %v", o, err)
				}
				p.books.add(r.ID, o.Charges)
			}
			o.in(p.server)
			p.back()
			for i, want := range []int64{2, 1} {
				l := [][]limits.Limit{ofOne, ofTwo}[i]
				if used := p.used(l[0]); used != want {
					t.Errorf("provider key %d: %d counted, want %d", i, used, want)
				}
				if held := p.used(l[1]); held != 0 {
					t.Errorf("provider key %d: %d calls at once", i, held)
				}
			}
		})
	}
}

func TestReservationsThatAreTakenBackWhileRedisIsOutAreThereWhenItIsBack(t *testing.T) {
	p := newPair(t, 100*time.Millisecond)
	day := p.limit(limits.WindowDay, 10, limits.OutageShare)
	set := limits.Compile([]limits.Limit{day})
	d, err := p.engines[0].Reserve(t.Context(), limits.Request{Tenant: p.tenant, Model: "m", Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1}})
	if err != nil {
		t.Fatal(err)
	}
	p.server.Kill()
	p.out(set)
	if err := p.engines[1].Restore(t.Context(), []limits.Reservation{d.Reservation}); err != nil {
		t.Fatal(err)
	}
	p.server.Run()
	p.back()
	if used := p.used(day); used != 1 {
		t.Fatalf("%d counted of 1", used)
	}
	if err := p.engines[1].Extend(t.Context(), p.tenant, d.Reservation.ID, time.Now().Add(20*time.Minute)); err != nil {
		t.Fatal(err)
	}
	p.server.Flush()
	if err := p.engines[0].Extend(t.Context(), p.tenant, d.Reservation.ID, time.Now().Add(30*time.Minute)); err != nil {
		t.Fatalf("of a Redis that has lost it: %v", err)
	}
	if o, err := p.engines[1].Settle(t.Context(), p.tenant, d.Reservation.ID, limits.Settlement{}); err != nil || !o.First {
		t.Fatalf("%+v, %v", o, err)
	}
	if used := p.used(day); used != 1 {
		t.Fatalf("%d counted of 1", used)
	}
}

func TestWhatRanOutIsHandedOutThoughAnAnswerWasLost(t *testing.T) {
	var link *redistest.Link
	p := newPairBy(t, 100*time.Millisecond, func(_ int, s *redistest.Server) string {
		link = s.Link() // the second's
		return link.URL()
	})
	e := p.engines[1]
	d, err := e.Reserve(t.Context(), limits.Request{
		Tenant: p.tenant, Model: "m", Plan: []*limits.Set{limits.Compile([]limits.Limit{p.limit(limits.WindowDay, 10, limits.OutageShare)})},
		Estimate: limits.Cost{Requests: 1}, TTL: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.await(func() string {
		if time.Now().Before(d.ExpiresAt) {
			return "it has not run out"
		}
		return ""
	})
	link.Delay(90 * time.Millisecond)
	if list := e.Expire(time.Now()); len(list) > 0 {
		t.Fatal("its answer was in time")
	}
	link.Delay(0)
	var told []limits.Reservation
	p.await(func() string {
		if told = append(told, e.Expire(time.Now())...); len(told) == 0 {
			return "nothing was handed out"
		}
		return ""
	})
	p.back()
	if told = append(told, e.Expire(time.Now().Add(time.Hour))...); len(told) != 1 || told[0].ID != d.Reservation.ID {
		t.Fatalf("handed out: %+v", told)
	}
}
