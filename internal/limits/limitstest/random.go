package limitstest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"weir/internal/id"
	"weir/internal/limits"
)

// againstModel plays random histories to the engine and to the model; rapid
// prints how to play a failing one again. A run reserves well over 2,000 calls:
// 100 histories of at least 70 steps, every third a reservation.
func againstModel(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlay(t, rt, open)
		for range rapid.IntRange(70, 100).Draw(rt, "steps") {
			p.step()
			p.compare()
		}
	})
}

// play is one random history. At most maxOpen calls are open at a time, so that
// the history of a bucket never has to be merged and every give-back is exact.
type play struct {
	*rapid.T
	Engine
	model  *model
	clock  *Clock
	tenant uuid.UUID
	plan   []limits.Limit
	keys   [][]limits.Limit // of provider keys
}

const maxOpen = 12

var (
	rates = []int64{0, 1, 2, 3, 7, 60, 999, 60_000, 1 << 31, 10_000_000_000}
	caps  = []int64{0, 1, 50, 1000, 1 << 31, 1_000_000_000_000_000}
)

func newPlay(t *testing.T, rt *rapid.T, open Open) *play {
	clock := NewClock(Noon)
	p := &play{T: rt, clock: clock, model: newModel(), tenant: id.New()}
	p.Engine = open(t, Options{Now: clock.Now, Started: Noon.Add(-1000 * time.Hour)})
	all := []limits.Limit{
		p.limit(limits.ScopeTenant, limits.DimensionTokens, limits.WindowMinute),
		p.limit(limits.ScopeTenant, limits.DimensionTokens, limits.WindowMonth),
		p.limit(limits.ScopeCustomer, limits.DimensionRequests, limits.WindowMinute),
		p.limit(limits.ScopeCustomer, limits.DimensionTokens, limits.WindowMinute),
		p.limit(limits.ScopeCustomer, limits.DimensionTokens, limits.WindowDay),
		p.limit(limits.ScopeAPIKey, limits.DimensionConcurrency, limits.WindowNone),
		p.limit(limits.ScopeAPIKey, limits.DimensionOutputTokens, limits.WindowMinute),
	}
	p.plan = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), func(l limits.Limit) string { return l.Ledger("") }).Draw(rt, "plan")
	for range rapid.IntRange(0, 2).Draw(rt, "candidates") {
		p.keys = append(p.keys, []limits.Limit{
			p.limit(limits.ScopeProviderKey, limits.DimensionTokens, limits.WindowMinute),
			p.limit(limits.ScopeProviderKey, limits.DimensionRequests, limits.WindowDay),
		})
	}
	return p
}

func (p *play) limit(kind limits.ScopeKind, d limits.Dimension, w limits.Window) limits.Limit {
	l := limits.Default(limits.Limit{Scope: limits.Scope{Kind: kind, ID: id.New()}, Dimension: d, Window: w})
	p.amount(&l)
	return l
}

func (p *play) amount(l *limits.Limit) {
	l.Burst = 0
	switch l.Policy {
	case limits.PolicyGauge:
		l.Amount = rapid.Int64Range(0, 6).Draw(p.T, "slots")
	case limits.PolicyCalendar:
		l.Amount = rapid.SampledFrom(caps).Draw(p.T, "cap")
	default:
		l.Amount = rapid.SampledFrom(rates).Draw(p.T, "rate")
		if l.Amount > 0 && rapid.Bool().Draw(p.T, "bursts") {
			l.Burst = min(l.Amount*rapid.Int64Range(1, 9).Draw(p.T, "burst"), 10_000_000_000)
		}
	}
}

func (p *play) step() {
	p.move()
	p.model.see(p.clock.Now())
	switch rapid.SampledFrom([]string{"reserve", "reserve", "reserve", "settle", "settle", "cancel", "expire", "extend", "amount"}).Draw(p.T, "step") {
	case "reserve":
		p.reserve()
	case "settle":
		p.settle(limits.StateSettled)
	case "cancel":
		p.settle(limits.StateCancelled)
	case "expire":
		p.expire()
	case "extend":
		p.extend()
	case "amount":
		p.amount(&p.plan[rapid.IntRange(0, len(p.plan)-1).Draw(p.T, "which")])
	}
}

func (p *play) move() {
	ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, 70_000), rapid.Int64Range(-70_000, 0),
		rapid.Int64Range(0, 900_000), rapid.Int64Range(-3_600_000, 90_000_000)).Draw(p.T, "ms")
	p.clock.Move(time.Duration(ms) * time.Millisecond)
}

// cost is anything, or what a ledger holds to the very token.
func (p *play) cost() limits.Cost {
	l := p.plan[rapid.IntRange(0, len(p.plan)-1).Draw(p.T, "near")]
	left, _, _ := p.model.state(l, p.clock.Now())
	n := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 10), rapid.Int64Range(0, 1_000_000_000), rapid.Just(left), rapid.Just(left+1)).Draw(p.T, "tokens")
	n = min(n, 1_000_000_000)
	output := rapid.Int64Range(0, n).Draw(p.T, "output")
	return limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: n - output, Output: output}}
}

func (p *play) reserve() {
	now := p.clock.Now()
	r := limits.Request{
		Tenant: p.tenant, Model: "m", Plan: of(p.plan), Estimate: p.cost(),
		TTL: time.Duration(rapid.Int64Range(1, 3600).Draw(p.T, "ttl")) * time.Second,
	}
	r.DryRun = len(p.calls("open", "lapsed", "expired")) >= maxOpen
	for _, list := range p.keys {
		r.Candidates = append(r.Candidates, limits.Candidate{Model: "m", Limits: limits.Compile(list)})
	}
	plan := p.worst(p.plan, r.Estimate, now)
	chosen, provider := -1, time.Duration(0)
	for i, list := range p.keys {
		w := p.worst(list, r.Estimate, now)
		if w == 0 {
			chosen, provider = i, 0
			break
		}
		if i == 0 || w != never && (provider == never || w < provider) {
			provider = w
		}
	}
	d, err := p.Reserve(context.Background(), r)
	if err != nil {
		p.Fatalf("reserve: %v", err)
	}
	tooLarge, wait := plan == never || provider == never, max(plan, provider)
	if tooLarge {
		wait = 0
	}
	if passes := plan == 0 && provider == 0; d.Admitted != passes || d.TooLarge != tooLarge || d.RetryAfter != wait {
		p.Fatalf("admitted %v, too large %v, wait %s; want %v, %v, %s", d.Admitted, d.TooLarge, d.RetryAfter, passes, tooLarge, wait)
	}
	if !d.Admitted {
		return
	}
	list := slices.Clone(p.plan)
	if d.Candidate != chosen {
		p.Fatalf("candidate %d, want %d", d.Candidate, chosen)
	}
	if chosen >= 0 {
		list = slices.Concat(list, p.keys[chosen])
	}
	if !r.DryRun {
		p.model.reserve(d.Reservation, list)
	}
}

// worst is the longest wait over some limits.
func (p *play) worst(list []limits.Limit, c limits.Cost, now time.Time) time.Duration {
	var worst time.Duration
	for _, l := range list {
		w := p.model.wait(l, l.Cost(c), now)
		if w == never || worst == never {
			worst = never
		} else {
			worst = max(worst, w)
		}
	}
	return worst
}

func (p *play) calls(states ...string) []*modelCall {
	var list []*modelCall
	for _, c := range p.model.calls {
		if slices.Contains(states, c.state) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *modelCall) int { return cmp.Compare(a.order, b.order) })
	return list
}

func (p *play) settle(state string) {
	list := p.calls("open", "lapsed", "expired")
	if len(list) == 0 {
		return
	}
	c := list[rapid.IntRange(0, len(list)-1).Draw(p.T, "call")]
	var o limits.Outcome
	var err error
	actual := limits.Cost{}
	if state == limits.StateCancelled {
		o, err = p.Cancel(context.Background(), p.tenant, c.id)
	} else {
		actual = p.actual(c.estimate.Tokens)
		o, err = p.Settle(context.Background(), p.tenant, c.id, limits.Settlement{Actual: actual})
	}
	if err != nil || !o.First || o.Late != (c.state == "expired") {
		p.Fatalf("settle: %+v, %v", o, err)
	}
	p.model.settle(c, state, actual)
}

// actual is below, at or above the estimate.
func (p *play) actual(e limits.Tokens) limits.Cost {
	part := rapid.Int64Range(0, 120).Draw(p.T, "percent")
	extra := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3)).Draw(p.T, "extra")
	share := func(n int64) int64 { return min(n/100*part+n%100*part/100+extra, 500_000_000) }
	return limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: share(e.Input), Output: share(e.Output)}}
}

// expire hands out what has lapsed; forgotten calls drop out of the model.
func (p *play) expire() {
	now := p.clock.Now()
	want := p.calls("lapsed")
	got := p.Expire(now)
	if len(got) != len(want) {
		p.Fatalf("%d reservations expired, want %d", len(got), len(want))
	}
	for _, c := range want {
		c.state = "expired"
	}
	for _, c := range p.calls("expired") {
		if !now.Before(c.expires.Add(time.Hour)) {
			c.state = "forgotten"
		}
	}
}

func (p *play) extend() {
	list := p.calls("open")
	if len(list) == 0 {
		return
	}
	c := list[rapid.IntRange(0, len(list)-1).Draw(p.T, "call")]
	until := p.clock.Now().Add(time.Duration(rapid.Int64Range(1, 3600).Draw(p.T, "seconds")) * time.Second)
	if err := p.Extend(context.Background(), p.tenant, c.id, until); err != nil {
		p.Fatalf("extend: %v", err)
	}
	if until.After(c.expires) {
		c.expires = until
	}
}

// compare looks at every ledger.
func (p *play) compare() {
	now := p.clock.Now()
	list := slices.Clone(p.plan)
	for _, key := range p.keys {
		list = append(list, key...)
	}
	states, err := p.Live(context.Background(), p.tenant, list, "m")
	if err != nil {
		p.Fatalf("live: %v", err)
	}
	for i, s := range states {
		remaining, debt, next := p.model.state(list[i], now)
		if s.Never {
			s.NextCallAfter = never
		}
		if s.Remaining != remaining || s.Debt != debt || s.NextCallAfter != next {
			p.Fatalf("%s: remaining %d, debt %d, next %s; want %d, %d, %s", s.Ledger, s.Remaining, s.Debt, s.NextCallAfter, remaining, debt, next)
		}
		whole := s.Used >= 0 && s.Held >= 0 && (s.Limit.Policy == limits.PolicyGauge || s.Used+s.Held+s.Remaining-s.Debt == max(s.Limit.Amount, s.Limit.Burst))
		if !whole {
			p.Fatalf("%s does not add up: %+v", s.Ledger, s)
		}
	}
}
