package limitstest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// keyed are the guarantees of requests that may come again.
var keyed = []guarantee{
	{"ARequestThatComesAgainUnderItsKeyIsOneReservationUntilItIsForgotten", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 100)
		r := limits.Request{Tenant: b.tenant, Model: "gpt-4o", Plan: of(plan), Estimate: tokens(30), TTL: time.Minute, Once: limits.Once{Key: id.New(), Body: id.New()}}
		first := b.ask(r)
		same := func(when string) {
			t.Helper()
			again := b.ask(r)
			if !again.Again || !again.Admitted || !again.At.Equal(first.At) || !again.ExpiresAt.Equal(first.ExpiresAt) {
				t.Fatalf("%s: %+v", when, again)
			}
			if diff := cmp.Diff(first.Reservation, again.Reservation); diff != "" {
				t.Fatalf("%s: %s", when, diff)
			}
		}
		same("open")
		b.remaining(70, plan[1])
		b.settled(first.Reservation, 30)
		same("settled")
		b.clock.Move(time.Minute + time.Hour - time.Second)
		b.Expire(b.clock.Now())
		same("almost forgotten")
		b.clock.Move(2 * time.Second)
		b.Expire(b.clock.Now())
		if late := b.ask(r); late.Again || late.Reservation.ID == first.Reservation.ID {
			t.Fatalf("forgotten: %+v", late)
		}
	}},
	{"AKeyIsOfOneRequestOfOneTenant", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 100)
		r := limits.Request{Tenant: b.tenant, Plan: of(plan), Estimate: tokens(30), Once: limits.Once{Key: id.New(), Body: id.New()}}
		first := b.ask(r)
		other := r
		other.Once.Body = id.New()
		_, err := b.Reserve(context.Background(), other)
		wantFault(t, err, fault.Conflict, "reservation_exists")
		b.remaining(70, plan[1])
		other.Once.Key = id.New()
		if d := b.ask(other); d.Again || d.Reservation.ID == first.Reservation.ID {
			t.Fatalf("another key: %+v", d)
		}
		r.Tenant = id.New()
		if d, err := b.Reserve(context.Background(), r); err != nil || d.Again || d.Reservation.ID == first.Reservation.ID {
			t.Fatalf("another tenant: %+v, %v", d, err)
		}
	}},
	{"ARefusalADryRunAndACancelledReservationLeaveTheKeyFree", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 100)
		once := limits.Once{Key: id.New(), Body: id.New()}
		ask := func(n int64, dry bool) limits.Decision {
			return b.ask(limits.Request{Plan: of(plan), Estimate: tokens(n), DryRun: dry, Once: once})
		}
		if d := ask(101, false); d.Admitted {
			t.Fatalf("%+v", d)
		}
		if d := ask(1, true); !d.Admitted || d.Again {
			t.Fatalf("%+v", d)
		}
		once.Body = id.New()
		first := ask(40, false)
		b.cancelled(first.Reservation)
		once.Body = id.New()
		second := ask(50, false)
		if second.Again || second.Reservation.ID == first.Reservation.ID {
			t.Fatalf("%+v", second)
		}
		if again := ask(50, false); !again.Again || again.Reservation.ID != second.Reservation.ID {
			t.Fatalf("%+v", again)
		}
		b.remaining(50, plan[1])
	}},
	{"AnExpiredReservationKeepsItsKeyAndARestoredOneToo", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 100)
		r := limits.Request{Tenant: b.tenant, Plan: of(plan), Estimate: tokens(30), TTL: time.Minute, Once: limits.Once{Key: id.New(), Body: id.New()}}
		first := b.ask(r)
		next := newBench(t, open)
		next.tenant = b.tenant
		if err := next.Restore(context.Background(), []limits.Reservation{first.Reservation}); err != nil {
			t.Fatal(err)
		}
		for _, life := range []*bench{b, next} {
			if d := life.ask(r); !d.Again || d.Reservation.ID != first.Reservation.ID {
				t.Fatalf("%+v", d)
			}
		}
		b.clock.Move(2 * time.Minute)
		b.expired(1)
		if d := b.ask(r); !d.Again || d.Reservation.ID != first.Reservation.ID {
			t.Fatalf("expired: %+v", d)
		}
	}},
	{"OfRequestsUnderOneKeyAtOnceOneIsCharged", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(1000, 1000)
		r := limits.Request{Tenant: b.tenant, Plan: of(plan), Estimate: tokens(30), Once: limits.Once{Key: id.New(), Body: id.New()}}
		var mu sync.Mutex
		ids, firsts := map[string]bool{}, 0
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				d, err := b.Reserve(context.Background(), r)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || !d.Admitted {
					t.Errorf("%+v, %v", d, err)
				}
				ids[d.Reservation.ID.String()] = true
				if !d.Again {
					firsts++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || firsts != 1 {
			t.Errorf("%d reservations, %d of them new", len(ids), firsts)
		}
		b.remaining(970, plan[1])
	}},
}
