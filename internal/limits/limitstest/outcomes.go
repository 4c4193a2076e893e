package limitstest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
)

// outcomes are what settle, cancel, expire and extend promise.
var outcomes = []guarantee{
	{"TenOldHoldsGiveBackTheRoomOfOne", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionTokens, limits.WindowMinute, 100)}
		var holds []limits.Reservation
		for range 10 {
			holds = append(holds, b.admitted(plan, 10))
		}
		b.clock.Move(54 * time.Second)
		passed := int64(90)
		b.settled(b.admitted(plan, 90), 90)
		for _, r := range holds {
			b.settled(r, 0)
		}
		b.remaining(10, plan[0])
		const step = 25 // ms; a permit comes every 600
		for ms := 0; ms < 59_999; ms += step {
			for b.call(plan, 1).Admitted {
				passed++
			}
			b.clock.Move(time.Duration(min(step, 59_999-ms)) * time.Millisecond)
		}
		for b.call(plan, 1).Admitted {
			passed++
		}
		if passed != 199 {
			t.Fatalf("%d actual tokens passed in 60 s, want 199", passed)
		}
	}},
	{"ALowerFigureGivesBackTheDifferenceAndAHigherOneIsCharged", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionTokens, limits.WindowMinute, 1000), b.limit(limits.DimensionTokens, limits.WindowDay, 1000)}
		b.settled(b.admitted(plan, 400), 150)
		b.remaining(850, plan[0])
		b.remaining(850, plan[1])
		b.settled(b.admitted(plan, 800), 900)
		for _, s := range b.live(plan...) {
			if s.Remaining != 0 || s.Debt != 50 || s.Used != 1050 || s.Held != 0 {
				t.Fatalf("%+v, want a debt of 50", s)
			}
		}
		wantWait(t, b.refused(plan[:1], 0), 3*time.Second)
		wantWait(t, b.refused(plan, 0), 12*time.Hour)
	}},
	{"DebtOfABucketIsAtMostOneCeilingAndADayTakesTheFullFigure", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionTokens, limits.WindowMinute, 100), b.limit(limits.DimensionTokens, limits.WindowDay, 1000)}
		b.settled(b.admitted(plan, 100), 50_000)
		s := b.live(plan...)
		if s[0].Debt != 100 || s[0].NextCallAfter != 60600*time.Millisecond || s[1].Used != 50_000 || s[1].Debt != 49_000 {
			t.Fatalf("%+v", s)
		}
	}},
	{"ACallBelongsToTheDayInWhichItWasReserved", func(t *testing.T, open Open) {
		b := newBench(t, open)
		b.clock.Set(time.Date(2026, 3, 10, 23, 59, 0, 0, time.UTC))
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		lower, higher := b.admitted([]limits.Limit{day}, 400), b.admitted([]limits.Limit{day}, 400)
		b.clock.Move(2 * time.Minute)
		b.admitted([]limits.Limit{day}, 100)
		for r, actual := range map[*limits.Reservation]int64{&lower: 10, &higher: 900} {
			want := []limits.Charge{{Ledger: day.Ledger(""), WindowStart: time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC), Amount: actual}}
			if diff := cmp.Diff(want, b.settled(*r, actual).Charges); diff != "" {
				t.Fatal(diff)
			}
			b.remaining(900, day)
		}
	}},
	{"ACancelGivesEverythingBackTheRequestToo", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := append(b.perMinute(10, 1000), b.limit(limits.DimensionRequests, limits.WindowDay, 10), b.limit(limits.DimensionConcurrency, limits.WindowNone, 1))
		before := b.live(plan...)
		if o := b.cancelled(b.admitted(plan, 300)); o.State != limits.StateCancelled || !o.First || o.Actual != (limits.Cost{}) {
			t.Fatalf("%+v", o)
		}
		if diff := cmp.Diff(before, b.live(plan...)); diff != "" {
			t.Fatalf("something is left of a cancelled call:\n%s", diff)
		}
	}},
	{"TheFirstOutcomeStandsInEveryOrder", func(t *testing.T, open Open) {
		figures := []struct {
			state string
			end   func(*bench, limits.Reservation) (limits.Outcome, error)
		}{
			{limits.StateSettled, settle(limits.Settlement{Actual: tokens(100)})},
			{limits.StateSettled, settle(limits.Settlement{Actual: tokens(400)})},
			{limits.StateSettled, settle(limits.Settlement{Actual: tokens(0)})},
			{limits.StateSettled, settle(limits.Settlement{Actual: tokens(0), GiveBackRequest: true})},
			{limits.StateCancelled, func(b *bench, r limits.Reservation) (limits.Outcome, error) {
				return b.Cancel(context.Background(), b.tenant, r.ID)
			}},
		}
		for _, late := range []bool{false, true} {
			for i, first := range figures {
				b := newBench(t, open)
				plan := append(b.perMinute(10, 1000), b.limit(limits.DimensionTokens, limits.WindowDay, 1000), b.limit(limits.DimensionConcurrency, limits.WindowNone, 5))
				r := b.admitted(plan, 300)
				if late {
					b.clock.Set(r.ExpiresAt)
					b.expired(1)
				}
				o, err := first.end(b, r)
				if err != nil || !o.First || o.Late != late || o.State != first.state {
					t.Fatalf("first outcome %d: %+v, %v", i, o, err)
				}
				after := b.live(plan...)
				for j, second := range figures {
					again, err := second.end(b, r)
					if (err == nil) != (i == j) || again.First || again.Late != late || again.State != first.state || again.Actual != o.Actual {
						t.Fatalf("outcome %d after %d: %+v, %v", j, i, again, err)
					}
					if err != nil {
						wantFault(t, err, fault.Conflict, "reservation_settled")
					}
					if diff := cmp.Diff(o.Charges, again.Charges); diff != "" {
						t.Fatalf("charges of the same outcome differ:\n%s", diff)
					}
				}
				b.expired(0)
				if diff := cmp.Diff(after, b.live(plan...)); diff != "" {
					t.Fatalf("a second outcome changed a ledger:\n%s", diff)
				}
			}
		}
	}},
	{"AnExpiredCallStaysChargedUntilALateOutcomeCorrectsIt", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionTokens, limits.WindowDay, 1000), b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)}
		r := b.admitted(plan, 300)
		b.clock.Set(r.ExpiresAt.Add(-time.Microsecond))
		b.expired(0)
		b.clock.Set(r.ExpiresAt)
		if got := b.expired(1)[0]; cmp.Diff(r, got) != "" {
			t.Fatalf("expired differs from what was reserved:\n%s", cmp.Diff(r, got))
		}
		b.expired(0)
		s := b.live(plan...)
		if s[0].Used != 300 || s[0].Held != 0 || s[1].Held != 0 {
			t.Fatalf("%+v", s)
		}
		o := b.settled(r, 120)
		if want := []limits.Charge{{Ledger: plan[0].Ledger(""), WindowStart: Noon.Add(-12 * time.Hour), Amount: -180}}; cmp.Diff(want, o.Charges) != "" {
			t.Fatalf("the correction is %+v, want %+v", o.Charges, want)
		}
		b.remaining(880, plan[0])
	}},
	{"AnOutcomeThatComesBeforeTheExpiryIsToldIsInTime", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)}
		r := b.admitted(plan, 300)
		b.clock.Set(r.ExpiresAt.Add(time.Second))
		next := b.admitted(plan, 300)
		if o := b.settled(r, 300); o.Late || !o.First {
			t.Fatalf("%+v", o)
		}
		b.expired(0)
		b.remaining(0, plan[0])
		b.settled(next, 1)
		b.remaining(1, plan[0])
	}},
	{"OutcomesAreForgottenAnHourAfterTheExpiry", func(t *testing.T, open Open) {
		b := newBench(t, open)
		r, lost := b.admitted(nil, 1), b.admitted(nil, 1)
		b.settled(r, 1)
		b.clock.Set(r.ExpiresAt.Add(time.Hour - time.Microsecond))
		b.expired(1)
		if b.settled(r, 1).First {
			t.Fatal("settled twice")
		}
		b.clock.Set(r.ExpiresAt.Add(time.Hour))
		b.expired(0)
		for _, gone := range []limits.Reservation{r, lost} {
			_, err := b.Settle(context.Background(), b.tenant, gone.ID, limits.Settlement{})
			wantFault(t, err, fault.NotFound, "reservation_not_found")
		}
	}},
	{"AnOutcomeThatNobodyAsksForAgainIsNotKept", func(t *testing.T, open Open) {
		b := newBench(t, open)
		d := b.ask(limits.Request{Estimate: tokens(1), Forget: true})
		b.settled(d.Reservation, 1)
		_, err := b.Settle(context.Background(), b.tenant, d.Reservation.ID, limits.Settlement{})
		wantFault(t, err, fault.NotFound, "reservation_not_found")
	}},
	{"AnExtendedReservationLivesOn", func(t *testing.T, open Open) {
		b := newBench(t, open)
		ctx := context.Background()
		r := b.admitted([]limits.Limit{b.limit(limits.DimensionConcurrency, limits.WindowNone, 1)}, 1)
		if err := b.Extend(ctx, b.tenant, r.ID, Noon.Add(20*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := b.Extend(ctx, b.tenant, r.ID, Noon.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		wantFault(t, b.Extend(ctx, b.tenant, r.ID, Noon.Add(limits.MaxTTL+time.Second)), fault.Invalid, "invalid_fields")
		wantFault(t, b.Extend(ctx, b.tenant, id.New(), Noon.Add(time.Minute)), fault.NotFound, "reservation_not_found")
		b.clock.Set(Noon.Add(20*time.Minute - time.Microsecond))
		b.expired(0)
		b.clock.Set(Noon.Add(20 * time.Minute))
		wantFault(t, b.Extend(ctx, b.tenant, r.ID, Noon.Add(30*time.Minute)), fault.Conflict, "reservation_expired")
		b.expired(1)
		b.settled(r, 1)
		wantFault(t, b.Extend(ctx, b.tenant, r.ID, Noon.Add(30*time.Minute)), fault.Conflict, "reservation_settled")
	}},
	{"AReservationLastsAtMostAnHour", func(t *testing.T, open Open) {
		b := newBench(t, open)
		for _, ttl := range []time.Duration{-1, limits.MaxTTL + 1} {
			_, err := b.Reserve(context.Background(), limits.Request{Tenant: b.tenant, TTL: ttl})
			wantFault(t, err, fault.Invalid, "invalid_fields")
		}
	}},
}

func settle(s limits.Settlement) func(*bench, limits.Reservation) (limits.Outcome, error) {
	return func(b *bench, r limits.Reservation) (limits.Outcome, error) {
		return b.Settle(context.Background(), b.tenant, r.ID, s)
	}
}

func (b *bench) expired(want int) []limits.Reservation {
	b.Helper()
	list := b.Expire(b.clock.Now())
	if len(list) != want {
		b.Fatalf("%d reservations expired, want %d", len(list), want)
	}
	return list
}
