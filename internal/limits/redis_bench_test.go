package limits_test

import (
	"context"
	"net"
	"slices"
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

// bench is a server, and callers at it.
type bench struct {
	*testing.B
	clients []rueidis.Client
	engines map[rueidis.Client]*limits.Redis
	watch   rueidis.Client
	prefix  string // of the names of what is measured
}

func begin(b *testing.B, prefix string, server *redistest.Server, dial func() rueidis.Client) *bench {
	m := &bench{B: b, engines: map[rueidis.Client]*limits.Redis{}, watch: server.Client(), prefix: prefix}
	for range callers {
		c := dial()
		m.clients = append(m.clients, c)
		m.engines[c] = limits.NewRedis(limits.RedisOptions{Client: c, MaxOpen: 1 << 30})
	}
	return m
}

// cost is the server's CPU per call in seconds, and the calls a second of all
// callers.
func (m *bench) cost(n int, do func(call int, c rueidis.Client)) (cpu, rate float64) {
	before, begun := serverCPU(m.B, m.watch), time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	for _, c := range m.clients {
		all.Go(func() {
			for k := int(next.Add(1)); k <= n; k = int(next.Add(1)) {
				do(k, c)
			}
		})
	}
	all.Wait()
	took := time.Since(begun).Seconds()
	return (serverCPU(m.B, m.watch) - before) / float64(n), float64(n) / took
}

// ratio is what a call costs as a multiple of PING, which takes turns with it so
// that neighbours count for both alike. It tells the rate of the calls too.
func (m *bench) ratio(name string, do func(call int, c rueidis.Client)) (rate float64) {
	const turns, calls, pings = 5, 4_000, 20_000
	ctx := context.Background()
	for _, c := range m.clients {
		do(0, c)
	}
	var cost, ping []float64
	for range turns {
		p, _ := m.cost(pings, func(_ int, c rueidis.Client) {
			if err := c.Do(ctx, c.B().Ping().Build()).Error(); err != nil {
				m.Error(err)
			}
		})
		c, r := m.cost(calls, do)
		cost, ping, rate = append(cost, c), append(ping, p), max(rate, r)
	}
	slices.Sort(cost)
	slices.Sort(ping)
	m.ReportMetric(cost[turns/2]/ping[turns/2], m.prefix+name+"/ping")
	return rate
}

// bare is the least that a script does which decides by the server's clock: it
// reads a value, and writes it.
var bare = rueidis.NewLuaScript(`
	local now = redis.call('TIME')
	local was = redis.call('GET', KEYS[1])
	redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
	return was`)

// BenchmarkRedis states the server's CPU per decision as a multiple of that of
// PING in the same run, over TCP as between machines, and over a socket: of a
// script that only reads and writes a value; of a dual bucket that is only
// decided, reserved, reserved and settled, and refused; of 8 ledgers on 4 scopes with
// the reservation kept; and the rate of one hot tenant as a part of that of a thousand.
func BenchmarkRedis(b *testing.B) {
	if b.N > 1 {
		b.ReportMetric(0, "ns/op") // measured once, by BenchmarkRedis's first run
		return
	}
	address := free(b)
	_, port, _ := net.SplitHostPort(address)
	s := redistest.Start(b, "--bind", "127.0.0.1", "--port", port)
	begin(b, "tcp:", s, func() rueidis.Client { return overTCP(b, address) }).rows()
	begin(b, "socket:", s, s.Client).rows()
}

// free is an address that nothing listens at.
func free(b *testing.B) string {
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func overTCP(b *testing.B, address string) rueidis.Client {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

func per(kind limits.ScopeKind, d limits.Dimension, w limits.Window) limits.Limit {
	return limits.Default(limits.Limit{Scope: limits.Scope{Kind: kind, ID: id.New()}, Dimension: d, Window: w, Amount: 1_000_000_000})
}

// both are requests and tokens a minute of one scope.
func both(kind limits.ScopeKind) *limits.Set {
	a := per(kind, limits.DimensionRequests, limits.WindowMinute)
	c := a
	c.Dimension = limits.DimensionTokens
	return limits.Compile([]limits.Limit{a, c})
}

func (m *bench) reserve(c rueidis.Client, r limits.Request, settle bool) {
	ctx, e := context.Background(), m.engines[c]
	d, err := e.Reserve(ctx, r)
	if err != nil || !d.Admitted {
		m.Error(err, d.Violations)
		return
	}
	if settle {
		if _, err := e.Settle(ctx, r.Tenant, d.Reservation.ID, limits.Settlement{Actual: r.Estimate}); err != nil {
			m.Error(err)
		}
	}
}

func (m *bench) rows() {
	one := func() limits.Request {
		return limits.Request{
			Tenant: id.New(), Model: "m", Plan: []*limits.Set{both(limits.ScopeCustomer)}, Forget: true,
			Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 100}},
		}
	}
	hotTenant := one()
	dry := hotTenant
	dry.DryRun = true
	eight := one()
	eight.Plan = []*limits.Set{both(limits.ScopeTenant), both(limits.ScopeCustomer), both(limits.ScopeAPIKey)}
	key := per(limits.ScopeProviderKey, limits.DimensionTokens, limits.WindowMinute)
	slots := key
	slots.Dimension, slots.Window, slots.Policy = limits.DimensionConcurrency, limits.WindowNone, ""
	eight.Candidates = []limits.Candidate{{Model: "m", Limits: limits.Compile([]limits.Limit{key, limits.Default(slots)})}}

	ctx, value := context.Background(), strings.Repeat("x", 200)
	m.ratio("bare-script", func(_ int, c rueidis.Client) {
		if err := bare.Exec(ctx, c, []string{"{bare}"}, []string{value}).Error(); err != nil && !rueidis.IsRedisNil(err) {
			m.Error(err)
		}
	})
	hot := m.ratio("dual-reserved", func(_ int, c rueidis.Client) { m.reserve(c, hotTenant, false) })
	m.ratio("dual-decided", func(_ int, c rueidis.Client) { m.reserve(c, dry, false) })
	m.ratio("dual-reserved+settled", func(_ int, c rueidis.Client) { m.reserve(c, hotTenant, true) })
	m.ratio("eight-reserved", func(_ int, c rueidis.Client) { m.reserve(c, eight, false) })
	m.ratio("eight-reserved+settled", func(_ int, c rueidis.Client) { m.reserve(c, eight, true) })
	spent := per(limits.ScopeCustomer, limits.DimensionRequests, limits.WindowMinute)
	spent.Amount = 1
	none := one()
	none.Plan = []*limits.Set{limits.Compile([]limits.Limit{spent}), none.Plan[0]}
	m.ratio("refused", func(_ int, c rueidis.Client) {
		if _, err := m.engines[c].Reserve(ctx, none); err != nil {
			m.Error(err)
		}
	})
	many := make([]limits.Request, 1000)
	for i := range many {
		many[i] = one()
	}
	cold := m.ratio("thousand-tenants", func(k int, c rueidis.Client) { m.reserve(c, many[k%len(many)], false) })
	m.ReportMetric(hot/cold, m.prefix+"hot/thousand")
}
