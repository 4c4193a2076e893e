// Package limitstest is the conformance suite of the limits engine: what every
// backend must answer, down to the millisecond. A backend's own test calls Run.
package limitstest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// Engine is what a backend offers.
type Engine interface {
	Reserve(context.Context, limits.Request) (limits.Decision, error)
	Settle(ctx context.Context, tenant, id uuid.UUID, s limits.Settlement) (limits.Outcome, error)
	Cancel(ctx context.Context, tenant, id uuid.UUID) (limits.Outcome, error)
	Move(context.Context, limits.Next) (limits.Decision, error)
	Extend(ctx context.Context, tenant, id uuid.UUID, until time.Time) error
	Expire(now time.Time) []limits.Reservation
	Restore(context.Context, []limits.Reservation) error
	Live(ctx context.Context, tenant uuid.UUID, l []limits.Limit, model, endUser string) ([]limits.State, error)
}

// Options are what a test asks of a new, empty backend.
type Options struct {
	Now       func() time.Time
	After     limits.After // how a waiting call waits
	Books     limits.Books
	Started   time.Time
	Unclean   bool
	LastAlive time.Time
}

// Open makes a backend without state.
type Open func(t testing.TB, o Options) Engine

// Run holds a backend to the whole contract. vectors is the file of worked cases
// of the dual bucket, zones the names of all time zones.
func Run(t *testing.T, open Open, vectors string, zones []string) {
	t.Run("TheWorkedCasesOfTheDualBucketHoldStepByStep", func(t *testing.T) { replay(t, open, vectors) })
	t.Run("EveryAnswerEqualsThePlainModels", func(t *testing.T) { againstModel(t, open, once) })
	t.Run("ActualTokensOfAnyWindowStayWithinThePrintedBound", func(t *testing.T) { withinBound(t, open, once) })
	t.Run("ADayIsTheCalendarDayOfItsZoneWhateverTheClockDoes", func(t *testing.T) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		sample := make([]string, 25)
		for i := range sample {
			sample[i] = zones[r.IntN(len(zones))]
		}
		inEveryZone(t, open, sample, seed)
	})
	for _, group := range [][]guarantee{cases, decisions, keyed, policies, moves, outcomes, lives, races, zoned, waits, linear} {
		for _, g := range group {
			t.Run(g.name, func(t *testing.T) { g.hold(t, open) })
		}
	}
}

// Soak is the random part of Run, for long: every zone, and so many times the
// histories.
func Soak(t *testing.T, open Open, zones []string, times int) {
	t.Run("EveryAnswerEqualsThePlainModels", func(t *testing.T) { againstModel(t, open, repeated(times)) })
	t.Run("ActualTokensOfAnyWindowStayWithinThePrintedBound", func(t *testing.T) { withinBound(t, open, repeated(times)) })
	t.Run("ADayIsTheCalendarDayOfEveryZoneWhateverTheClockDoes", func(t *testing.T) {
		for range times {
			inEveryZone(t, open, zones, rand.Uint64())
		}
	})
}

func once(t *testing.T, f func(*rapid.T)) { rapid.Check(t, f) }

func repeated(times int) func(*testing.T, func(*rapid.T)) {
	return func(t *testing.T, f func(*rapid.T)) {
		for range times {
			rapid.Check(t, f)
		}
	}
}

type guarantee struct {
	name string
	hold func(*testing.T, Open)
}

// bench is one engine with one tenant, one customer and a clock.
type bench struct {
	testing.TB
	Engine
	clock    *Clock
	tenant   uuid.UUID
	customer uuid.UUID
}

func newBench(t testing.TB, open Open) *bench {
	clock := NewClock(Noon)
	return &bench{t, open(t, Options{Now: clock.Now, After: clock.After, Started: Noon.Add(-365 * 24 * time.Hour)}), clock, id.New(), id.New()}
}

// limit is one of the customer's.
func (b *bench) limit(d limits.Dimension, w limits.Window, amount int64) limits.Limit {
	return limits.Default(limits.Limit{Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: b.customer}, Dimension: d, Window: w, Amount: amount})
}

func (b *bench) perMinute(requests, tokens int64) []limits.Limit {
	return []limits.Limit{
		b.limit(limits.DimensionRequests, limits.WindowMinute, requests),
		b.limit(limits.DimensionTokens, limits.WindowMinute, tokens),
	}
}

// provider is a limit of a provider key.
func provider(key uuid.UUID, d limits.Dimension, w limits.Window, amount int64) limits.Limit {
	return limits.Default(limits.Limit{Scope: limits.Scope{Kind: limits.ScopeProviderKey, ID: key}, Dimension: d, Window: w, Amount: amount})
}

// tokens is one request of n input tokens.
func tokens(n int64) limits.Cost {
	return limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: n}}
}

// of makes limits ready.
func of(lists ...[]limits.Limit) []*limits.Set { return []*limits.Set{limits.Compile(lists...)} }

func (b *bench) ask(r limits.Request) limits.Decision {
	b.Helper()
	r.Tenant = b.tenant
	if r.Model == "" {
		r.Model = "gpt-4o"
	}
	d, err := b.Reserve(context.Background(), r)
	if err != nil {
		b.Fatalf("reserve: %v", err)
	}
	return d
}

// call asks for one request of n tokens.
func (b *bench) call(plan []limits.Limit, n int64) limits.Decision {
	b.Helper()
	return b.ask(limits.Request{Plan: of(plan), Estimate: tokens(n)})
}

func (b *bench) admitted(plan []limits.Limit, n int64) limits.Reservation {
	b.Helper()
	d := b.call(plan, n)
	if !d.Admitted {
		b.Fatalf("a call of %d tokens was refused: %s", n, describe(d.Violations))
	}
	return d.Reservation
}

func (b *bench) refused(plan []limits.Limit, n int64) limits.Decision {
	b.Helper()
	d := b.call(plan, n)
	if d.Admitted {
		b.Fatalf("a call of %d tokens was admitted: %s", n, describe(d.States))
	}
	return d
}

func (b *bench) settled(r limits.Reservation, actual int64) limits.Outcome {
	b.Helper()
	o, err := b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{Actual: tokens(actual)})
	if err != nil {
		b.Fatalf("settle: %v", err)
	}
	return o
}

func (b *bench) cancelled(r limits.Reservation) limits.Outcome {
	b.Helper()
	o, err := b.Cancel(context.Background(), b.tenant, r.ID)
	if err != nil {
		b.Fatalf("cancel: %v", err)
	}
	return o
}

func (b *bench) live(plan ...limits.Limit) []limits.State {
	b.Helper()
	states, err := b.Live(context.Background(), b.tenant, plan, "gpt-4o", "")
	if err != nil {
		b.Fatalf("live: %v", err)
	}
	return states
}

func (b *bench) remaining(want int64, l limits.Limit) {
	b.Helper()
	if s := b.live(l)[0]; s.Remaining != want {
		b.Fatalf("remaining of %s is %d, want %d", s.Ledger, s.Remaining, want)
	}
}

func wantFault(t testing.TB, err error, kind fault.Kind, code string) {
	t.Helper()
	if err == nil || fault.Of(err).Kind != kind || fault.Of(err).Code != code {
		t.Fatalf("error is %v, want %s", err, code)
	}
}

func wantWait(t testing.TB, d limits.Decision, want time.Duration) {
	t.Helper()
	if d.Admitted || d.RetryAfter != want {
		t.Fatalf("admitted %v, retry after %s, want a refusal with %s", d.Admitted, d.RetryAfter, want)
	}
}

func describe(states []limits.State) string {
	s := ""
	for _, v := range states {
		s += v.Limit.Label() + " "
	}
	return s
}
