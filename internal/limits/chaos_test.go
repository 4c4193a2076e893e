package limits_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/limits/redistest"
)

// trouble is a way for Redis to fail two processes that are under load.
type trouble struct {
	name    string
	out, in func(*chaos)
	emptied bool
	partly  bool // one of the processes does not notice
	instant bool // it is over as soon as it has begun
}

var troubles = []trouble{
	{name: "Killed", out: func(c *chaos) { c.server.Kill() }, in: func(c *chaos) { c.server.Run() }, emptied: true},
	{name: "Stopped", out: func(c *chaos) { c.server.Signal(syscall.SIGSTOP) }, in: func(c *chaos) { c.server.Signal(syscall.SIGCONT) }},
	{name: "Flushed", out: func(c *chaos) { c.server.Flush() }, in: func(*chaos) {}, emptied: true, instant: true},
	{name: "Slow", out: func(c *chaos) { c.delay(150*time.Millisecond, 0, 1) }, in: func(c *chaos) { c.delay(0, 0, 1) }},
	{name: "Swallowing", out: func(c *chaos) { c.swallow(true, 0, 1) }, in: func(c *chaos) { c.swallow(false, 0, 1) }},
	{name: "CutFromOneProcess", out: func(c *chaos) { c.swallow(true, 0) }, in: func(c *chaos) { c.swallow(false, 0) }, partly: true},
}

func (c *chaos) delay(d time.Duration, links ...int) {
	for _, i := range links {
		c.links[i].Delay(d)
	}
}

func (c *chaos) swallow(on bool, links ...int) {
	for _, i := range links {
		c.links[i].Swallow(on)
	}
}

// chaos is two processes, each with its own way to one Redis, and customers whose
// calls never stop.
type chaos struct {
	*pair
	links   [2]*redistest.Link
	parties []*party
	sick    atomic.Bool
	apart   atomic.Int64 // ns

	mu            sync.Mutex
	healthy, sore []time.Duration // how long decisions took
}

// party is a customer with one limit.
type party struct {
	limit  limits.Limit
	set    *limits.Set
	tenant uuid.UUID

	forgets bool // calls of a gateway

	mu       sync.Mutex
	lost     map[uuid.UUID]bool // ran out, and was never answered
	admitted map[uuid.UUID]time.Time
	refused  int
	failed   map[string]int
}

func newChaos(t *testing.T, budget time.Duration) *chaos {
	c := &chaos{}
	c.pair = newPairBy(t, budget, func(i int, s *redistest.Server) string {
		c.links[i] = s.Link()
		return c.links[i].URL()
	})
	return c
}

func (c *chaos) party(w limits.Window, amount int64, mode limits.Outage) *party {
	p := &party{limit: c.limit(w, amount, mode), tenant: c.tenant, admitted: map[uuid.UUID]time.Time{}, lost: map[uuid.UUID]bool{}, failed: map[string]int{}}
	p.limit.Scope.ID = uuid.Must(uuid.NewV7())
	p.set = limits.Compile([]limits.Limit{p.limit})
	c.parties = append(c.parties, p)
	return p
}

const chaosTTL = 3 * time.Second

// call is one call of a party in a process.
func (c *chaos) call(i int, p *party) {
	begun, sick := time.Now(), c.sick.Load()
	d, err := c.engines[i].Reserve(context.Background(), limits.Request{
		Tenant: p.tenant, Model: "m", Plan: []*limits.Set{p.set}, Estimate: limits.Cost{Requests: 1}, TTL: chaosTTL, Forget: p.forgets,
	})
	took := time.Since(begun)
	c.mu.Lock()
	if sick {
		c.sore = append(c.sore, took)
	} else {
		c.healthy = append(c.healthy, took)
	}
	c.mu.Unlock()
	p.mu.Lock()
	switch {
	case err != nil:
		p.failed[err.Error()]++
	case !d.Admitted:
		p.refused++
	default:
		p.admitted[d.Reservation.ID] = d.At
	}
	p.mu.Unlock()
	if err == nil && d.Admitted {
		c.settle(i, p, d.Reservation.ID)
	}
}

func (c *chaos) settle(i int, p *party, id uuid.UUID) {
	o, err := c.engines[i].Settle(context.Background(), p.tenant, id, limits.Settlement{})
	if err != nil {
		c.Errorf("settle: %v", err)
	}
	if o.First {
		c.books.add(id, o.Charges)
	}
}

// run keeps callers of every party busy in both processes until stop is closed.
func (c *chaos) run(callers int, pace time.Duration, stop <-chan struct{}) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range c.engines {
		for _, p := range c.parties {
			for range callers {
				all.Go(func() {
					tick := time.NewTicker(pace)
					defer tick.Stop()
					for {
						select {
						case <-stop:
							return
						case <-tick.C:
							c.call(i, p)
						}
					}
				})
			}
		}
		all.Go(func() { c.sweep(i, stop) })
	}
	all.Go(func() { c.watch(stop) })
	return &all
}

// watch notes for how long one process is out and the other is not: on a busy
// machine that happens by itself.
func (c *chaos) watch(stop <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		if c.engines[0].Out() != c.engines[1].Out() {
			c.apart.Add(int64(now.Sub(last)))
		}
		last = now
	}
}

// sweep does as the meter does: what ran out and was never answered is given back.
func (c *chaos) sweep(i int, stop <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			c.expire(i)
		}
	}
}

// again corrects a call that ran out though it was settled, as the meter does.
func (c *chaos) again(i int, p *party, id uuid.UUID) {
	_, err := c.engines[i].Settle(context.Background(), p.tenant, id, limits.Settlement{})
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
		c.Errorf("%s ran out though it was settled: %v", id, err)
	}
}

func (c *chaos) expire(i int) {
	for _, r := range c.engines[i].Expire(time.Now()) {
		for _, p := range c.parties {
			if len(r.Holds) == 0 || r.Holds[0].Limit.Scope.ID != p.limit.Scope.ID {
				continue
			}
			p.mu.Lock()
			_, known := p.admitted[r.ID]
			if !known {
				p.lost[r.ID] = true
			}
			p.mu.Unlock()
			if known { // its end overtook what was told again
				c.again(i, p, r.ID)
			}
		}
	}
	for _, p := range c.parties {
		p.mu.Lock()
		for id := range p.lost {
			if _, err := c.engines[i].Cancel(context.Background(), p.tenant, id); err == nil {
				delete(p.lost, id)
			}
		}
		p.mu.Unlock()
	}
}

// since is how many of a party's calls were admitted in a time, both ends in.
func (p *party) during(from, to time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.admitted {
		if !at.Before(from) && !at.After(to) {
			n++
		}
	}
	return n
}

func (p *party) total() int { return p.during(time.Time{}, time.Now().Add(time.Hour)) }

// beyond is by how much the admissions of some time up to a minute exceed what a
// bucket of n a minute lets through in it.
func (p *party) beyond(n int64) int64 {
	p.mu.Lock()
	at := make([]int64, 0, len(p.admitted))
	for _, t := range p.admitted {
		at = append(at, t.UnixMilli())
	}
	p.mu.Unlock()
	slices.Sort(at)
	var most int64
	for i := range at {
		for j := i; j < len(at) && at[j]-at[i] < 60_000; j++ {
			most = max(most, int64(j-i+1)-n-(at[j]-at[i])*n/60_000)
		}
	}
	return most
}

func percentile(list []time.Duration, p float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[int(float64(len(list)-1)*p)]
}

func (c *chaos) usedOf(p *party) int64 {
	c.Helper()
	s, err := c.engines[0].Live(context.Background(), p.tenant, []limits.Limit{p.limit}, "m", "")
	if err != nil || len(s) != 1 {
		c.Fatal(err)
	}
	return s[0].Used
}

// endures runs one trouble under load, holds every bound, and returns by how much
// the 99th percentile of decisions is longer while it lasts, if that is long enough.
func endures(t *testing.T, o trouble, seed uint64, budget, phase time.Duration) (added time.Duration) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := newChaos(t, budget)
	const callers, pace = 3, 6 * time.Millisecond
	minute := c.party(limits.WindowMinute, 600, limits.OutageShare)
	room := 300 + rnd.Int64N(1500) // spent before, while or after it is out
	day := c.party(limits.WindowDay, room*phase.Milliseconds()/700, limits.OutageShare)
	closed := c.party(limits.WindowDay, 1_000_000, limits.OutageClosed)
	opened := c.party(limits.WindowDay, 50, limits.OutageOpen)
	for _, p := range c.parties {
		p.forgets = rnd.IntN(2) == 0
	}
	stop := make(chan struct{})
	load := c.run(callers, pace, stop)
	<-time.After(phase) // the load goes on meanwhile
	begun := time.Now()
	c.sick.Store(true)
	o.out(c)
	down := time.Now()
	if !o.instant {
		<-time.After(phase + time.Duration(rnd.Int64N(int64(phase))))
	}
	up := time.Now()
	o.in(c)
	c.back()
	c.sick.Store(false)
	returned := time.Now()
	<-time.After(phase)
	close(stop)
	load.Wait()

	c.mu.Lock()
	p50, p99 := percentile(c.healthy, 0.5), percentile(c.healthy, 0.99)
	sick50, sick99, longest := percentile(c.sore, 0.5), percentile(c.sore, 0.99), percentile(c.sore, 1)
	t.Logf("seed %d: %d calls, p50 %v, p99 %v; sick for %v: %d calls, p50 %v, p99 %v, at most %v; back after %v", seed, len(c.healthy), p50, p99,
		up.Sub(begun).Round(time.Millisecond), len(c.sore), sick50, sick99, longest, returned.Sub(up).Round(time.Millisecond))
	c.mu.Unlock()

	apart := time.Duration(c.apart.Load())
	if t.Logf("one process alone was out for %v", apart.Round(time.Millisecond)); apart > budget/2 {
		o.partly = true
	}
	// What was under way when it failed may have been charged and not been seen.
	const underWay = callers * 2
	most := day.limit.Amount + underWay
	if o.emptied { // until both have told it again, what each had charged just before
		most += int64(day.during(begun.Add(-100*time.Millisecond), begun))
	}
	if o.partly { // what the one grants by itself, the other grants from Redis
		most += day.limit.Amount / 2
	}
	if n := day.total(); int64(n) > most {
		t.Errorf("%d admitted of a day's %d (%d while it was out, %d since)", n, day.limit.Amount, day.during(down, up), day.during(returned, time.Now()))
	} else {
		t.Logf("day: %d of %d, %d while it was out", n, day.limit.Amount, day.during(down, up))
	}
	extra := minute.beyond(minute.limit.Amount)
	bound := minute.limit.Amount / 2
	if o.emptied {
		bound += minute.limit.Amount
	}
	if o.partly {
		bound += int64(returned.Sub(begun).Seconds() * float64(minute.limit.Amount) / 60 / 2)
	}
	if t.Logf("minute: %d beyond the bound of a bucket", extra); extra > bound {
		t.Errorf("%d beyond the bound of a bucket, at most %d may pass", extra, bound)
	}
	if n := closed.during(down.Add(budget), up); !o.instant && !o.partly && n > 0 {
		t.Errorf("%d admitted while it was out, though the limit is closed then", n)
	}
	if n := opened.during(down.Add(3*budget), up); !o.instant && n == 0 {
		t.Error("none admitted while it was out, though the limit is open then")
	}
	if len(opened.failed) > 0 || len(day.failed) > 0 || len(minute.failed) > 0 {
		t.Errorf("failed: %v %v %v", opened.failed, day.failed, minute.failed)
	}
	for _, p := range []*party{day, closed, opened} {
		c.await(func() string {
			for i := range c.engines {
				c.expire(i)
			}
			if used := c.usedOf(p); used != int64(p.total()) {
				return fmt.Sprintf("%s: %d counted, %d admitted", p.limit.Outage, used, p.total())
			}
			return ""
		})
	}
	if len(c.sore) < 1000 {
		return 0
	}
	return sick99 - p99
}

func TestUnderLoadEveryModeKeepsItsBoundThroughEveryTrouble(t *testing.T) {
	for _, o := range troubles {
		t.Run(o.name, func(t *testing.T) { endures(t, o, rand.Uint64(), 200*time.Millisecond, 700*time.Millisecond) })
	}
}
