package limits

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sethvargo/go-limiter/memorystore"
	"golang.org/x/time/rate"

	"weir/internal/id"
)

// The benchmarks compare with what others offer in the same run. Each reports
// ns/op of both and their ratio. None writes a spool.

// benchSets are 8 ledgers on 4 scopes: tenant, customer, API key, and the
// provider key that the call is sent with.
func benchSets(tenant uuid.UUID) ([]*Set, []Candidate) {
	at := func(kind ScopeKind, scope uuid.UUID, d Dimension, w Window) Limit {
		return Default(Limit{Scope: Scope{Kind: kind, ID: scope}, Dimension: d, Window: w, Amount: maxBucket})
	}
	customer, key, provider := id.New(), id.New(), id.New()
	account := Compile([]Limit{
		at(ScopeTenant, tenant, DimensionRequests, WindowMinute), at(ScopeTenant, tenant, DimensionTokens, WindowMonth),
		at(ScopeCustomer, customer, DimensionRequests, WindowMinute), at(ScopeCustomer, customer, DimensionTokens, WindowMinute),
		at(ScopeCustomer, customer, DimensionTokens, WindowDay),
	})
	own := Compile([]Limit{at(ScopeAPIKey, key, DimensionConcurrency, WindowNone)})
	behind := Compile([]Limit{at(ScopeProviderKey, provider, DimensionRequests, WindowMinute), at(ScopeProviderKey, provider, DimensionTokens, WindowMinute)})
	return []*Set{account, own}, []Candidate{{ProviderKey: provider, Model: "m", Limits: behind}}
}

var benchCost = Cost{Requests: 1, Tokens: Tokens{Input: 1000, Output: 200}}

// twoPeers are two limiters of golang.org/x/time/rate in a sync.Map, which is
// what a dual limit of requests and tokens takes there. They are not charged as
// one.
func twoPeers() func() {
	var limiters sync.Map
	for _, name := range []string{"requests", "tokens"} {
		limiters.Store(name, rate.NewLimiter(1e9, 1e9))
	}
	allow := func(name string, n int) {
		l, _ := limiters.Load(name)
		if !l.(*rate.Limiter).AllowN(time.Now(), n) {
			panic("refused")
		}
	}
	return func() {
		allow("requests", 1)
		allow("tokens", 1200)
	}
}

// perCall is the time of one call of each function on one goroutine: the least
// of many short rounds that take turns, so that neighbours count for little.
func perCall(ours, peers func()) (mine, theirs float64) {
	const calls, rounds = 500, 2_000
	round := func(f func()) float64 {
		begun := time.Now()
		for range calls {
			f()
		}
		return float64(time.Since(begun).Nanoseconds()) / calls
	}
	mine, theirs = 1e9, 1e9
	for range rounds {
		mine, theirs = min(mine, round(ours)), min(theirs, round(peers))
	}
	return mine, theirs
}

func against(b *testing.B, ours, peers func(), most float64) {
	for range b.N {
		ours()
	}
	b.StopTimer()
	mine, theirs := perCall(ours, peers)
	b.ReportMetric(mine, "ours-ns")
	b.ReportMetric(theirs, "peer-ns")
	b.ReportMetric(mine/theirs, "ratio")
	b.ReportMetric(most, "ratio-wanted")
}

func BenchmarkDryRunOver8LedgersOn4ScopesAgainstTwoRateLimiters(b *testing.B) {
	tenant := id.New()
	plan, candidates := benchSets(tenant)
	m := NewMemory(MemoryOptions{Now: time.Now})
	ctx := context.Background()
	kept := Request{Tenant: tenant, Model: "m", Plan: plan, Candidates: candidates, Estimate: benchCost}
	if _, err := m.Reserve(ctx, kept); err != nil {
		b.Fatal(err)
	}
	r := kept
	r.DryRun = true
	b.ReportAllocs()
	b.ResetTimer()
	against(b, func() {
		if ok, err := m.fits(ctx, &r); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}, twoPeers(), 1)
}

func BenchmarkReserveAndSettleOver8LedgersAgainstTwoRateLimiters(b *testing.B) {
	tenant := id.New()
	plan, candidates := benchSets(tenant)
	m := NewMemory(MemoryOptions{Now: time.Now})
	ctx := context.Background()
	r := Request{Tenant: tenant, Model: "m", Plan: plan, Candidates: candidates, Estimate: benchCost, Forget: true}
	actual := Settlement{Actual: Cost{Tokens: Tokens{Input: 990, Output: 150}}}
	b.ReportAllocs()
	b.ResetTimer()
	against(b, func() {
		held, err := m.hold(ctx, &r)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.finish(tenant, held, actual); err != nil {
			b.Fatal(err)
		}
	}, twoPeers(), 4)
}

// The same with everything told: the state of every ledger and the reservation,
// as surfaces ask for it.
func BenchmarkReserveAndSettleToldAgainstTwoRateLimiters(b *testing.B) {
	tenant := id.New()
	plan, candidates := benchSets(tenant)
	m := NewMemory(MemoryOptions{Now: time.Now})
	ctx := context.Background()
	r := Request{Tenant: tenant, Model: "m", Plan: plan, Candidates: candidates, Estimate: benchCost, Forget: true}
	actual := Settlement{Actual: Cost{Tokens: Tokens{Input: 990, Output: 150}}}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		d, err := m.Reserve(ctx, r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Settle(ctx, tenant, d.Reservation.ID, actual); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDualBucketOn100000KeysAgainstGoLimiter(b *testing.B) {
	const keys = 100_000
	ctx := context.Background()
	tenants := make([]uuid.UUID, 100)
	for i := range tenants {
		tenants[i] = id.New()
	}
	plans, names := make([][]*Set, keys), make([]string, keys)
	for i := range plans {
		scope := Scope{Kind: ScopeAPIKey, ID: id.New()}
		names[i] = scope.ID.String()
		plans[i] = []*Set{Compile([]Limit{
			Default(Limit{Scope: scope, Dimension: DimensionRequests, Window: WindowMinute, Amount: maxBucket}),
			Default(Limit{Scope: scope, Dimension: DimensionTokens, Window: WindowMinute, Amount: maxBucket}),
		})}
	}
	m := NewMemory(MemoryOptions{Now: time.Now})
	peer, err := memorystore.New(&memorystore.Config{Tokens: 1 << 40, Interval: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer peer.Close(ctx)
	i, j := 0, 0
	ours := func() {
		r := Request{Tenant: tenants[i%len(tenants)], Plan: plans[i], Estimate: benchCost}
		if ok, err := m.pass(ctx, &r); err != nil || !ok {
			b.Fatal(ok, err)
		}
		i = (i + 7919) % keys
	}
	theirs := func() {
		if _, _, _, ok, err := peer.Take(ctx, names[j]); err != nil || !ok {
			b.Fatal(ok, err)
		}
		j = (j + 7919) % keys
	}
	for range keys {
		ours()
		theirs()
	}
	b.ReportAllocs()
	b.ResetTimer()
	against(b, ours, theirs, 1.5)
}

func BenchmarkALedgerInMemory(b *testing.B) {
	const n = 100_000
	for _, c := range []struct {
		name string
		w    Window
		p    Policy
		d    Dimension
		most float64
	}{
		{"bucket", WindowMinute, PolicyBucket, DimensionTokens, 160},
		{"calendar", WindowDay, PolicyCalendar, DimensionTokens, 160},
		{"gauge", WindowNone, PolicyGauge, DimensionConcurrency, 160},
		{"sliding-minute", WindowMinute, PolicySliding, DimensionTokens, 1024},
		{"sliding-day", WindowRollingDay, PolicySliding, DimensionTokens, 3072},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := NewMemory(MemoryOptions{Now: time.Now})
			t := m.tenant(id.New())
			before := heapBytes()
			at := t.begin(time.Now())
			for range n {
				l := Limit{Scope: Scope{Kind: ScopeAPIKey, ID: id.New()}, Dimension: c.d, Window: c.w, Policy: c.p, Amount: 100, Mode: ModeEnforce}
				r := &rule{}
				if err := r.compile(l); err != nil {
					b.Fatal(err)
				}
				ref := t.fresh(r, r.id, &at)
				t.enter(ref, r)
			}
			b.ReportMetric(float64(heapBytes()-before)/n, "bytes/ledger")
			b.ReportMetric(c.most, "bytes-wanted")
			runtime.KeepAlive(m)
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func BenchmarkAFullCollectionOverAMillionLedgers(b *testing.B) {
	m := NewMemory(MemoryOptions{Now: time.Now})
	for range 10 {
		t := m.tenant(id.New())
		at := t.begin(time.Now())
		for range 100_000 {
			r := &rule{}
			if err := r.compile(Limit{Scope: Scope{Kind: ScopeAPIKey, ID: id.New()}, Dimension: DimensionTokens, Window: WindowMinute, Policy: PolicyBucket, Amount: 100, Mode: ModeEnforce}); err != nil {
				b.Fatal(err)
			}
			t.enter(t.fresh(r, r.id, &at), r)
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for range min(b.N, 20) { // each walks the whole heap
		runtime.GC()
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.PauseTotalNs-before.PauseTotalNs)/float64(after.NumGC-before.NumGC)/1000, "pause-µs/gc")
	runtime.KeepAlive(m)
}

// The decisions of Reserve and Settle, with nothing told.

func (m *Memory) fits(ctx context.Context, r *Request) (bool, error) {
	w, d, err := m.decide(ctx, r, nil)
	if err != nil {
		return false, err
	}
	w.unlock()
	return d.admitted, nil
}

func (m *Memory) hold(ctx context.Context, r *Request) (uuid.UUID, error) {
	w, _, err := m.decide(ctx, r, nil)
	if err != nil {
		return uuid.Nil, err
	}
	id := w.id
	w.unlock()
	return id, nil
}

func (m *Memory) finish(tenant, call uuid.UUID, s Settlement) error {
	t, c, at, err := m.find(tenant, call)
	if err != nil {
		return err
	}
	defer t.mu.Unlock()
	t.end(c, settled, s, &at)
	t.forgetCall(c)
	return nil
}

// pass charges a call that has nothing to settle, as a plain limiter does.
func (m *Memory) pass(ctx context.Context, r *Request) (bool, error) {
	r.DryRun = true
	w, d, err := m.decide(ctx, r, nil)
	if err != nil {
		return false, err
	}
	defer w.unlock()
	for i := range w.list {
		c := &w.list[i]
		if c.made {
			c.made = false
			w.t.enter(c.ref, c.rule)
		}
		w.t.buckets.at(c.ref.place()).spend(c.cost.n, &w.t.rooms)
	}
	return d.admitted, nil
}
