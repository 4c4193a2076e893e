package limits_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/redistest"
)

// serverCPU is what a server has used so far, in seconds.
func serverCPU(b *testing.B, c rueidis.Client) (seconds float64) {
	info, err := c.Do(context.Background(), c.B().Info().Section("cpu").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			n, _ := strconv.ParseFloat(value, 64)
			seconds += n
		}
	}
	return seconds
}

// callers is how many ask at once, each over a connection of its own: what is
// measured is a command, not how many of them share a packet.
const callers = 64

// measured is the server's CPU per call and the calls a second of 64 callers.
func measured(b *testing.B, s *redistest.Server, n int, do func(caller, call int, c rueidis.Client)) (cpu, rate float64) {
	clients := make([]rueidis.Client, callers)
	for i := range clients {
		clients[i] = s.Client()
		do(i, 0, clients[i])
	}
	watch := s.Client()
	before, begun := serverCPU(b, watch), time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			for {
				k := int(next.Add(1))
				if k > n {
					return
				}
				do(i, k, c)
			}
		})
	}
	all.Wait()
	took := time.Since(begun).Seconds()
	return (serverCPU(b, watch) - before) / float64(n), float64(n) / took
}

// BenchmarkRedis states the server's CPU per decision as a multiple of that of
// PING in the same run: of a dual bucket that is only decided, reserved, and
// reserved and settled; of 8 ledgers on 4 scopes with the reservation kept; and
// the rate of one hot tenant as a part of that of a thousand.
func BenchmarkRedis(b *testing.B) {
	if b.N > 1 {
		b.ReportMetric(0, "ns/op") // measured once, by BenchmarkRedis's first run
		return
	}
	s := redistest.Start(b)
	const n = 10_000
	ctx := context.Background()
	ping, _ := measured(b, s, n, func(_, _ int, c rueidis.Client) {
		if err := c.Do(ctx, c.B().Ping().Build()).Error(); err != nil {
			b.Error(err)
		}
	})
	engines := sync.Map{}
	engine := func(c rueidis.Client) *limits.Redis {
		e, _ := engines.LoadOrStore(c, limits.NewRedis(limits.RedisOptions{Client: c, MaxOpen: 1 << 30}))
		return e.(*limits.Redis)
	}
	per := func(kind limits.ScopeKind, d limits.Dimension, w limits.Window) limits.Limit {
		return limits.Default(limits.Limit{Scope: limits.Scope{Kind: kind, ID: id.New()}, Dimension: d, Window: w, Amount: 1_000_000_000})
	}
	dual := func() *limits.Set {
		a := per(limits.ScopeCustomer, limits.DimensionRequests, limits.WindowMinute)
		c := a
		c.Dimension = limits.DimensionTokens
		return limits.Compile([]limits.Limit{a, c})
	}
	reserve := func(c rueidis.Client, r limits.Request, settle bool) {
		e := engine(c)
		d, err := e.Reserve(ctx, r)
		if err != nil || !d.Admitted {
			b.Error(err, d.Violations)
			return
		}
		if settle {
			if _, err := e.Settle(ctx, r.Tenant, d.Reservation.ID, limits.Settlement{Actual: r.Estimate}); err != nil {
				b.Error(err)
			}
		}
	}
	tenant, set := id.New(), dual()
	one := limits.Request{Tenant: tenant, Model: "m", Plan: []*limits.Set{set}, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 100}}, Forget: true}
	dry := one
	dry.DryRun = true
	eight := one
	eight.Plan = nil
	for _, k := range []limits.ScopeKind{limits.ScopeTenant, limits.ScopeCustomer, limits.ScopeAPIKey} {
		a := per(k, limits.DimensionRequests, limits.WindowMinute)
		c := a
		c.Dimension = limits.DimensionTokens
		eight.Plan = append(eight.Plan, limits.Compile([]limits.Limit{a, c}))
	}
	key := per(limits.ScopeProviderKey, limits.DimensionTokens, limits.WindowMinute)
	slots := key
	slots.Dimension, slots.Window, slots.Policy = limits.DimensionConcurrency, limits.WindowNone, ""
	eight.Candidates = []limits.Candidate{{Model: "m", Limits: limits.Compile([]limits.Limit{key, limits.Default(slots)})}}
	{
		report := func(name string, do func(caller, call int, c rueidis.Client)) (rate float64) {
			cpu, rate := measured(b, s, n, do)
			b.ReportMetric(cpu/ping, name+"/ping")
			return rate
		}
		report("dual-decided", func(_, _ int, c rueidis.Client) { reserve(c, dry, false) })
		hot := report("dual-reserved", func(_, _ int, c rueidis.Client) { reserve(c, one, false) })
		report("dual-reserved+settled", func(_, _ int, c rueidis.Client) { reserve(c, one, true) })
		report("eight-reserved", func(_, _ int, c rueidis.Client) { reserve(c, eight, false) })
		many := make([]limits.Request, 1000)
		for i := range many {
			many[i] = one
			many[i].Tenant, many[i].Plan = id.New(), []*limits.Set{dual()}
		}
		cold := report("thousand-tenants", func(_, k int, c rueidis.Client) { reserve(c, many[k%len(many)], false) })
		b.ReportMetric(hot/cold, "hot/thousand")
		b.ReportMetric(ping*1e6, "ping-us")
	}
}
