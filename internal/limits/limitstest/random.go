package limitstest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// againstModel plays random histories to the engine and to the model; rapid
// prints how to play a failing one again. A run reserves well over 2,000 calls:
// 100 histories of at least 70 steps, every third a reservation.
func againstModel(t *testing.T, open Open, checks func(*testing.T, func(*rapid.T))) {
	checks(t, func(rt *rapid.T) {
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
	prices []int64          // of each key, for a call, in pico-units
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
		p.limit(limits.ScopeTenant, limits.DimensionSpend, limits.WindowMonth),
		p.limit(limits.ScopeCustomer, limits.DimensionRequests, limits.WindowMinute),
		p.limit(limits.ScopeCustomer, limits.DimensionTokens, limits.WindowMinute),
		p.limit(limits.ScopeCustomer, limits.DimensionTokens, limits.WindowDay),
		p.limit(limits.ScopeCustomer, limits.DimensionSpend, limits.WindowDay),
		p.limit(limits.ScopeCustomer, limits.DimensionInputTokens, limits.WindowRollingDay),
		p.limit(limits.ScopeAPIKey, limits.DimensionConcurrency, limits.WindowNone),
		p.limit(limits.ScopeAPIKey, limits.DimensionOutputTokens, limits.WindowMinute),
		p.limit(limits.ScopeClientToken, limits.DimensionTokens, limits.WindowMinute),
	}
	p.plan = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), func(l limits.Limit) string { return l.Ledger("") }).Draw(rt, "plan")
	for range rapid.IntRange(0, 2).Draw(rt, "candidates") {
		p.keys = append(p.keys, []limits.Limit{
			p.limit(limits.ScopeProviderKey, limits.DimensionTokens, limits.WindowMinute),
			p.limit(limits.ScopeProviderKey, limits.DimensionRequests, limits.WindowDay),
			p.limit(limits.ScopePool, limits.DimensionSpend, limits.WindowDay),
			p.limit(limits.ScopeProviderKey, limits.DimensionConcurrency, limits.WindowNone),
		})
		p.prices = append(p.prices, p.price())
	}
	return p
}

func (p *play) price() int64 {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 2_000_000), rapid.Int64Range(0, 1_000_000_000_000)).Draw(p.T, "price")
}

func (p *play) limit(kind limits.ScopeKind, d limits.Dimension, w limits.Window) limits.Limit {
	l := limits.Default(limits.Limit{Scope: limits.Scope{Kind: kind, ID: id.New()}, Dimension: d, Window: w})
	p.amount(&l)
	return l
}

// amount changes what may change of a limit: its amount, mode, and where there
// are two, its policy.
func (p *play) amount(l *limits.Limit) {
	l.Burst, l.Mode = 0, limits.ModeEnforce
	if rapid.IntRange(0, 5).Draw(p.T, "mode") == 0 {
		l.Mode = limits.ModeShadow
	}
	if l.Window == limits.WindowMinute {
		l.Policy = rapid.SampledFrom([]limits.Policy{limits.PolicyBucket, limits.PolicyBucket, limits.PolicySliding}).Draw(p.T, "policy")
	}
	switch l.Policy {
	case limits.PolicyGauge:
		l.Amount = rapid.Int64Range(0, 6).Draw(p.T, "slots")
	case limits.PolicyCalendar:
		l.Amount = rapid.SampledFrom(caps).Draw(p.T, "cap")
	default:
		l.Amount = rapid.SampledFrom(rates).Draw(p.T, "rate")
		if l.Policy == limits.PolicyBucket && l.Amount > 0 && rapid.Bool().Draw(p.T, "bursts") {
			l.Burst = min(l.Amount*rapid.Int64Range(1, 9).Draw(p.T, "burst"), 10_000_000_000)
		}
	}
}

func (p *play) step() {
	p.move()
	p.model.see(p.clock.Now())
	switch rapid.SampledFrom([]string{"reserve", "reserve", "reserve", "reserve", "settle", "settle", "cancel", "journey", "expire", "extend", "amount"}).Draw(p.T, "step") {
	case "reserve":
		p.reserve()
	case "settle":
		p.settle(limits.StateSettled)
	case "cancel":
		p.settle(limits.StateCancelled)
	case "journey":
		p.journey()
	case "expire":
		p.expire()
	case "extend":
		p.extend()
	case "amount":
		p.amount(&p.plan[rapid.IntRange(0, len(p.plan)-1).Draw(p.T, "which")])
	}
}

// move moves the clock: a little, a lot, backwards, or to a midnight and the
// instants around it.
func (p *play) move() {
	now := p.clock.Now()
	midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now).Milliseconds()
	ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, 70_000), rapid.Int64Range(-70_000, 0),
		rapid.Int64Range(0, 900_000), rapid.Int64Range(-3_600_000, 90_000_000), rapid.Int64Range(midnight-1, midnight+1)).Draw(p.T, "ms")
	p.clock.Move(time.Duration(ms) * time.Millisecond)
}

// cost is anything, or what a ledger holds to the very token.
func (p *play) cost() limits.Cost {
	l := p.plan[rapid.IntRange(0, len(p.plan)-1).Draw(p.T, "near")]
	left, _, _ := p.model.state(l, p.clock.Now())
	n := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 10), rapid.Int64Range(0, 1_000_000_000), rapid.Just(left), rapid.Just(left+1)).Draw(p.T, "tokens")
	n = min(n, 1_000_000_000)
	output := rapid.Int64Range(0, n).Draw(p.T, "output")
	c := limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: n - output, Output: output}, ChargePico: p.price(), ProviderPico: p.price()}
	if left < 1_000_000 && rapid.Bool().Draw(p.T, "exact") {
		c.ChargePico = left*1_000_000 + rapid.Int64Range(-1, 1).Draw(p.T, "off")
		c.ChargePico = max(c.ChargePico, 0)
	}
	return c
}

// asked are limits that a call is up against, and those of the plan that a
// candidate's price counts to.
func (p *play) asked() (plan, provider []limits.Limit) {
	for _, l := range p.plan {
		if len(p.keys) > 0 && l.Dimension == limits.DimensionSpend && l.Scope.Kind == limits.ScopeTenant {
			provider = append(provider, l)
		} else {
			plan = append(plan, l)
		}
	}
	return plan, provider
}

// route is a candidate as it is asked for, and as the model sees it.
type route struct {
	limits.Candidate
	limits []limits.Limit
	cost   limits.Cost
}

func (p *play) routes(estimate limits.Cost) (list []route) {
	_, provider := p.asked()
	for i, key := range p.keys {
		r := route{limits.Candidate{Model: "m", Limits: limits.Compile(key), ProviderPico: p.prices[i]}, slices.Concat(provider, key), estimate}
		r.cost.ProviderPico = p.prices[i]
		list = append(list, r)
	}
	return list
}

// choose is the first route that fits, or the shortest wait of all.
func (p *play) choose(routes []route, now time.Time) (chosen int, wait time.Duration) {
	for i, r := range routes {
		w := p.worst(r.limits, r.cost, now)
		if w == 0 {
			return i, 0
		}
		if i == 0 || w != never && (wait == never || w < wait) {
			wait = w
		}
	}
	return -1, wait
}

func (p *play) reserve() {
	now := p.clock.Now()
	r := limits.Request{
		Tenant: p.tenant, Model: "m", Plan: of(p.plan), Estimate: p.cost(),
		TTL: time.Duration(rapid.Int64Range(1, 3600).Draw(p.T, "ttl")) * time.Second,
	}
	r.DryRun = len(p.calls("open", "lapsed", "expired")) >= maxOpen
	own, _ := p.asked()
	plan := p.worst(own, r.Estimate, now)
	routes := p.routes(r.Estimate)
	for _, x := range routes {
		r.Candidates = append(r.Candidates, x.Candidate)
	}
	chosen, provider := p.choose(routes, now)
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
	if d.Candidate != chosen {
		p.Fatalf("candidate %d, want %d", d.Candidate, chosen)
	}
	if r.DryRun {
		return
	}
	var key route
	if chosen >= 0 {
		key = routes[chosen]
	}
	p.model.reserve(d.Reservation, p.charged(own, r.Estimate, now), p.charged(key.limits, key.cost, now), key.cost)
}

// charged leaves out the shadow limits that would refuse.
func (p *play) charged(list []limits.Limit, c limits.Cost, now time.Time) (out []limits.Limit) {
	for _, l := range list {
		if l.Mode != limits.ModeShadow || p.model.wait(l, l.Cost(c), l.Pico(c), now) == 0 {
			out = append(out, l)
		}
	}
	return out
}

// worst is the longest wait over some limits.
func (p *play) worst(list []limits.Limit, c limits.Cost, now time.Time) time.Duration {
	var worst time.Duration
	for _, l := range list {
		w := p.model.wait(l, l.Cost(c), l.Pico(c), now)
		if l.Mode == limits.ModeShadow {
			continue
		}
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

// pick is one of the calls in these states that no backend may have forgotten.
func (p *play) pick(states ...string) *modelCall {
	list := slices.DeleteFunc(p.calls(states...), func(c *modelCall) bool {
		return c.state == "expired" && !p.clock.Now().Before(c.expires.Add(time.Hour))
	})
	if len(list) == 0 {
		return nil
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(p.T, "call")]
}

func (p *play) settle(state string) {
	c := p.pick("open", "lapsed", "expired")
	if c == nil {
		return
	}
	var o limits.Outcome
	var err error
	actual := limits.Cost{}
	if state == limits.StateCancelled {
		o, err = p.Cancel(context.Background(), p.tenant, c.id)
	} else {
		actual = p.actual(c)
		o, err = p.Settle(context.Background(), p.tenant, c.id, limits.Settlement{Actual: actual})
	}
	if err != nil || !o.First || o.Late != (c.state == "expired") {
		p.Fatalf("settle: %+v, %v", o, err)
	}
	p.model.settle(c, state, actual)
	if again, err := p.Settle(context.Background(), p.tenant, c.id, limits.Settlement{Actual: limits.Cost{Units: 999}}); again.First || fault.Of(err).Code != "reservation_settled" {
		p.Fatalf("settled again with other figures: %+v, %v", again, err)
	}
}

// journey moves an open call on to the next attempt, and says so twice.
func (p *play) journey() {
	c := p.pick("open")
	if c == nil {
		return
	}
	now := p.clock.Now()
	routes := p.routes(c.estimate)
	if rapid.Bool().Draw(p.T, "turned") {
		slices.Reverse(routes)
	}
	n := limits.Next{Tenant: p.tenant, ID: c.id, Attempt: c.moves, Ended: limits.Settlement{Actual: p.actual(c)}, Plan: of(p.plan)}
	for _, x := range routes {
		n.Candidates = append(n.Candidates, x.Candidate)
	}
	d, err := p.Move(context.Background(), n)
	if err != nil {
		p.Fatalf("move: %v", err)
	}
	p.choose(routes, now) // the engine looked before it settled
	p.model.move(c, n.Ended.Actual)
	chosen, wait := p.choose(routes, now)
	if wait == never {
		wait = 0
	}
	if d.Admitted != (chosen >= 0) || d.Candidate != chosen || d.RetryAfter != wait {
		p.Fatalf("moved: candidate %d, wait %s; want %d, %s", d.Candidate, d.RetryAfter, chosen, wait)
	}
	if chosen >= 0 {
		p.model.charge(c, p.charged(routes[chosen].limits, routes[chosen].cost, now), routes[chosen].cost, true)
	}
	if again, err := p.Move(context.Background(), n); err != nil || !again.Again || again.Candidate != chosen {
		p.Fatalf("moved again: %+v, %v", again, err)
	}
}

// actual is below, at or above the estimate. It is not above where a ledger has
// changed its policy since: what an overrun does then depends on whether the
// ledger was unused in between.
func (p *play) actual(c *modelCall) limits.Cost {
	e := c.estimate
	part := rapid.Int64Range(0, 120).Draw(p.T, "percent")
	extra := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3)).Draw(p.T, "extra")
	if p.model.changed(c) {
		part, extra = min(part, 100), 0
	}
	share := func(n int64) int64 { return min(n/100*part+n%100*part/100+extra, 500_000_000) }
	return limits.Cost{
		Requests: 1, Tokens: limits.Tokens{Input: share(e.Tokens.Input), Output: share(e.Tokens.Output)},
		ChargePico: e.ChargePico/100*part + extra, ProviderPico: e.ProviderPico/100*part + extra,
	}
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
	c := p.pick("open")
	if c == nil {
		return
	}
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
	states, err := p.Live(context.Background(), p.tenant, list, "m", "")
	if err != nil {
		p.Fatalf("live: %v", err)
	}
	for i, s := range states {
		remaining, debt, next := p.model.state(list[i], now)
		if s.Never {
			s.NextCallAfter = never
		}
		if s.Remaining != remaining || s.Debt != debt || s.NextCallAfter != next {
			p.Fatalf("%s, %s: remaining %d, debt %d, next %s; want %d, %d, %s", s.Ledger, s.Limit.Policy, s.Remaining, s.Debt, s.NextCallAfter, remaining, debt, next)
		}
		whole := s.Used >= 0 && s.Held >= 0 && (s.Limit.Policy == limits.PolicyGauge || s.Used+s.Held+s.Remaining-s.Debt == max(s.Limit.Amount, s.Limit.Burst))
		if !whole {
			p.Fatalf("%s does not add up: %+v", s.Ledger, s)
		}
	}
}
