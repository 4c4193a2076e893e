package limitstest

import (
	"context"
	"testing"
	"time"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// later is a call that may be waiting.
type later struct {
	*bench
	answer chan limits.Decision
	failed chan error
}

func (b *bench) waits(ctx context.Context, n int64, most time.Duration, plan ...limits.Limit) later {
	return b.asks(ctx, limits.Request{Tenant: b.tenant, Customer: b.customer, Model: "gpt-4o", Plan: of(plan), Estimate: tokens(n), MaxWait: most})
}

func (b *bench) asks(ctx context.Context, r limits.Request) later {
	l := later{b, make(chan limits.Decision, 1), make(chan error, 1)}
	go func() {
		d, err := b.Reserve(ctx, r)
		l.answer <- d
		l.failed <- err
	}()
	return l
}

func (l later) told() (limits.Decision, error) {
	l.Helper()
	select {
	case d := <-l.answer:
		return d, <-l.failed
	case <-time.After(10 * time.Second):
		l.Fatal("a call still waits")
		panic("unreachable")
	}
}

func (l later) wants(admitted bool) limits.Decision {
	l.Helper()
	d, err := l.told()
	if err != nil || d.Admitted != admitted {
		l.Fatalf("admitted %v, %v", d.Admitted, err)
	}
	return d
}

// waits are what calls promise that would rather wait than be refused.
var waits = []guarantee{
	{"ACallWaitsForRoomAndIsReservedAtTheInstantThatItFits", func(t *testing.T, open Open) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowMinute, 60)
		b.admitted([]limits.Limit{l}, 60)
		w := b.waits(t.Context(), 10, 10*time.Second, l)
		b.clock.Sleepers(t, 1)
		b.remaining(0, l) // it holds nothing
		b.clock.Move(9999 * time.Millisecond)
		b.clock.Sleepers(t, 1)
		b.clock.Move(time.Millisecond)
		if d := w.wants(true); !d.At.Equal(Noon.Add(10*time.Second)) || !id.Time(d.Reservation.ID).Equal(d.At) {
			t.Fatalf("%+v", d)
		}
		b.remaining(0, l)
	}},
	{"AWaitThatCannotFitIsRefusedAtOnce", func(t *testing.T, open Open) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowMinute, 60)
		b.admitted([]limits.Limit{l}, 60)
		if d := b.waits(t.Context(), 11, 10*time.Second, l).wants(false); d.RetryAfter != 11*time.Second {
			t.Fatalf("%+v", d)
		}
		if d := b.waits(t.Context(), 61, 10*time.Second, l).wants(false); !d.TooLarge {
			t.Fatalf("%+v", d)
		}
		w := b.waits(t.Context(), 6, 10*time.Second, l)
		b.clock.Sleepers(t, 1)
		if d := b.waits(t.Context(), 5, 10*time.Second, l).wants(false); d.RetryAfter != 11*time.Second {
			t.Fatalf("behind one that waits for 6: %+v", d)
		}
		b.clock.Move(6 * time.Second)
		w.wants(true)
	}},
	{"FirstComeFirstServed", func(t *testing.T, open Open) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowMinute, 60)
		b.admitted([]limits.Limit{l}, 60)
		first := b.waits(t.Context(), 30, time.Minute, l)
		b.clock.Sleepers(t, 1)
		second := b.waits(t.Context(), 1, time.Minute, l)
		b.clock.Sleepers(t, 2)
		b.clock.Move(29 * time.Second) // enough for the second, were it alone
		wantWait(t, b.refused([]limits.Limit{l}, 1), 3*time.Second)
		b.clock.Sleepers(t, 2)
		b.clock.Move(time.Second)
		first.wants(true)
		b.clock.Sleepers(t, 1)
		b.clock.Move(time.Second)
		second.wants(true)
		other := b.limit(limits.DimensionTokens, limits.WindowDay, 60)
		b.admitted([]limits.Limit{other}, 1) // another ledger has another line
	}},
	{"WhoeverWaitsStandsInLineAtTheLimitThatBindsNow", func(t *testing.T, open Open) {
		b := newBench(t, open)
		short, slots := b.limit(limits.DimensionTokens, limits.WindowMinute, 60), b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)
		b.admitted([]limits.Limit{short}, 60)
		first := b.waits(t.Context(), 10, time.Minute, short, slots)
		b.clock.Sleepers(t, 1)
		r := b.admitted([]limits.Limit{slots}, 1) // by a key without the other limit
		b.clock.Move(10 * time.Second)            // now it is the slot that the first lacks
		b.clock.Sleepers(t, 1)
		second := b.waits(t.Context(), 1, time.Minute, slots)
		b.clock.Sleepers(t, 2)
		b.settled(r, 1)
		d := first.wants(true)
		b.settled(d.Reservation, 1)
		second.wants(true)
	}},
	{"WhatIsGivenBackGoesToThoseWhoWait", func(t *testing.T, open Open) {
		b := newBench(t, open)
		slots := b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)
		r := b.admitted([]limits.Limit{slots}, 1)
		first := b.waits(t.Context(), 1, time.Minute, slots)
		b.clock.Sleepers(t, 1)
		second := b.waits(t.Context(), 1, time.Minute, slots)
		b.clock.Sleepers(t, 2)
		b.settled(r, 1)
		d := first.wants(true)
		b.clock.Sleepers(t, 1)
		b.cancelled(d.Reservation)
		second.wants(true)
	}},
	{"AWaitForACandidateEndsBeforeOneForThePlan", func(t *testing.T, open Open) {
		b := newBench(t, open)
		key := id.New()
		routes := []limits.Limit{provider(key, limits.DimensionTokens, limits.WindowMinute, 60), provider(key, limits.DimensionConcurrency, limits.WindowNone, 1)}
		plan := b.limit(limits.DimensionTokens, limits.WindowMinute, 600)
		ask := func(n int64) later {
			return b.asks(t.Context(), limits.Request{
				Tenant: b.tenant, Customer: b.customer, Plan: of([]limits.Limit{plan}), Estimate: tokens(n), MaxWait: time.Minute, RouteWait: 5 * time.Second,
				Candidates: []limits.Candidate{{ProviderKey: key, Limits: limits.Compile(routes)}},
			})
		}
		first := ask(60).wants(true)
		if d := ask(6).wants(false); !d.ProviderFull || d.RetryAfter != 6*time.Second {
			t.Fatalf("%+v", d)
		}
		w := ask(5)
		b.clock.Sleepers(t, 1)
		b.clock.Move(5 * time.Second) // room for the tokens, but the slot is not free
		if d := w.wants(false); !d.ProviderFull {
			t.Fatalf("%+v", d)
		}
		b.settled(first.Reservation, 60)
		b.admitted([]limits.Limit{plan}, 590) // of 600 a minute, 60 were taken five seconds ago
		routes = nil
		w = ask(100) // for the plan it may wait longer
		b.clock.Sleepers(t, 1)
		b.clock.Move(10 * time.Second)
		w.wants(true)
	}},
	{"AWaitIsOverWhenItsTimeIs", func(t *testing.T, open Open) {
		b := newBench(t, open)
		slots := b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)
		r := b.admitted([]limits.Limit{slots}, 1)
		w := b.waits(t.Context(), 1, 3*time.Second, slots)
		b.clock.Sleepers(t, 1)
		b.clock.Move(3 * time.Second)
		w.wants(false)
		b.settled(r, 1)
		b.admitted([]limits.Limit{slots}, 1) // nobody is in line any more
	}},
	{"AWaitEndsWithItsCaller", func(t *testing.T, open Open) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowMinute, 60)
		b.admitted([]limits.Limit{l}, 60)
		ctx, cancel := context.WithCancel(t.Context())
		w := b.waits(ctx, 30, time.Minute, l)
		b.clock.Sleepers(t, 1)
		behind := b.waits(t.Context(), 1, time.Minute, l)
		b.clock.Sleepers(t, 2)
		cancel()
		if _, err := w.told(); fault.Of(err).Code != "limiter_unavailable" {
			t.Fatalf("%v", err)
		}
		b.clock.Sleepers(t, 1)
		b.clock.Move(time.Second)
		behind.wants(true)
	}},
	{"WhatHoldsForACallIsAskedAgainBeforeItIsLetThrough", func(t *testing.T, open Open) {
		b := newBench(t, open)
		after := func(change func(l *limits.Limit) error) (limits.Decision, error) {
			b.customer = id.New()
			l := b.limit(limits.DimensionTokens, limits.WindowMinute, 60)
			b.admitted([]limits.Limit{l}, 60)
			w := b.asks(t.Context(), limits.Request{
				Tenant: b.tenant, Customer: b.customer, Plan: of([]limits.Limit{l}), Estimate: tokens(10), MaxWait: time.Minute,
				Renew: func(context.Context) ([]*limits.Set, error) {
					err := change(&l)
					return of([]limits.Limit{l}), err
				},
			})
			b.clock.Sleepers(t, 1)
			b.clock.Move(10 * time.Second)
			d, err := w.told()
			b.clock.Sleepers(t, 0)
			return d, err
		}
		if d, err := after(func(*limits.Limit) error { return nil }); err != nil || !d.Admitted {
			t.Errorf("nothing has changed: %+v, %v", d, err)
		}
		d, err := after(func(l *limits.Limit) error {
			l.Amount = 6
			return nil
		})
		if err != nil || !d.TooLarge || d.Violations[0].Limit.Amount != 6 {
			t.Errorf("six a minute by then: %+v, %v", d, err)
		}
		gone := fault.New(fault.Unauthenticated, "invalid_api_key", "Gone.")
		if d, err := after(func(*limits.Limit) error { return gone }); fault.Of(err).Code != "invalid_api_key" {
			t.Errorf("its key is gone by then: %+v, %v", d, err)
		}
	}},
	{"AHundredCallsOfACustomerWait", func(t *testing.T, open Open) {
		b := newBench(t, open)
		slots := b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)
		b.admitted([]limits.Limit{slots}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var list []later
		for i := range 100 {
			list = append(list, b.waits(ctx, 1, time.Minute, slots))
			b.clock.Sleepers(t, i+1)
		}
		b.waits(ctx, 1, time.Minute, slots).wants(false)
		b.customer = id.New()
		list = append(list, b.waits(ctx, 1, time.Minute, slots)) // another's, on the same ledger
		b.clock.Sleepers(t, 101)
		cancel()
		for _, l := range list {
			if _, err := l.told(); err == nil {
				t.Fatal("a call of a caller who has gone was answered")
			}
		}
	}},
	{"AnAbsurdWaitIsRefusedBeforeAnythingIsTouched", func(t *testing.T, open Open) {
		b := newBench(t, open)
		for _, most := range []time.Duration{-1, limits.MaxWait + 1} {
			_, err := b.Reserve(context.Background(), limits.Request{Tenant: b.tenant, MaxWait: most})
			wantFault(t, err, fault.Invalid, "invalid_fields")
		}
	}},
}
