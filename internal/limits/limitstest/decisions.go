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

// decisions are what Reserve promises beyond the cases.
var decisions = []guarantee{
	{"ARefusalByOneLimitLeavesAllOthersAlone", func(t *testing.T, open Open) {
		b := newBench(t, open)
		for last := range 6 {
			plan := []limits.Limit{
				b.limit(limits.DimensionRequests, limits.WindowMinute, 10),
				b.limit(limits.DimensionTokens, limits.WindowMinute, 1000),
				b.limit(limits.DimensionInputTokens, limits.WindowDay, 1000),
				b.limit(limits.DimensionTokens, limits.WindowMonth, 1000),
				b.limit(limits.DimensionConcurrency, limits.WindowNone, 10),
				b.limit(limits.DimensionUnits, limits.WindowDay, 10),
			}
			plan[last].Amount = 0
			r := limits.Request{Plan: of(plan), Estimate: limits.Cost{Requests: 1, Units: 1, Tokens: limits.Tokens{Input: 1}}}
			before := b.live(plan...)
			if d := b.ask(r); d.Admitted || !d.TooLarge || d.RetryAfter != 0 {
				t.Fatalf("limit %d with the amount 0: %+v", last, d)
			}
			if diff := cmp.Diff(before, b.live(plan...)); diff != "" {
				t.Fatalf("a refusal changed a ledger:\n%s", diff)
			}
		}
	}},
	{"TheFirstCandidateThatFitsIsCharged", func(t *testing.T, open Open) {
		b := newBench(t, open)
		small, large := id.New(), id.New()
		candidates := []limits.Candidate{
			{ProviderKey: small, Model: "a", Limits: limits.Compile([]limits.Limit{provider(small, limits.DimensionTokens, limits.WindowMinute, 100)})},
			{ProviderKey: large, Model: "b", Limits: limits.Compile([]limits.Limit{provider(large, limits.DimensionTokens, limits.WindowMinute, 300)})},
		}
		plan := b.perMinute(10, 1000)
		for i, want := range []int{0, 1, 1, 1, -1} {
			d := b.ask(limits.Request{Plan: of(plan), Candidates: candidates, Estimate: tokens(100)})
			if d.Candidate != want || d.Admitted != (want >= 0) {
				t.Fatalf("call %d went to candidate %d, want %d", i, d.Candidate, want)
			}
			if want < 0 && (!d.ProviderFull || d.RetryAfter != 20*time.Second || d.Violations[0].Limit.Scope.ID != large) {
				t.Fatalf("full providers: %v, %s, %s; want the one that is ready soonest, in 20 s", d.ProviderFull, d.RetryAfter, describe(d.Violations))
			}
		}
		b.remaining(600, plan[1])
	}},
	{"APlanThatRefusesIsNamedBeforeTheProvider", func(t *testing.T, open Open) {
		b := newBench(t, open)
		key := id.New()
		candidates := []limits.Candidate{{ProviderKey: key, Limits: limits.Compile([]limits.Limit{provider(key, limits.DimensionTokens, limits.WindowMinute, 60)})}}
		plan := []limits.Limit{b.limit(limits.DimensionTokens, limits.WindowMinute, 120)}
		r := limits.Request{Plan: of(plan), Candidates: candidates, Estimate: tokens(60)}
		b.ask(r)
		b.admitted(plan, 60)
		d := b.ask(r)
		if d.ProviderFull || len(d.Violations) != 1 || d.Violations[0].Limit.Scope.Kind != limits.ScopeCustomer {
			t.Fatalf("violations %s, provider full %v", describe(d.Violations), d.ProviderFull)
		}
		wantWait(t, d, time.Minute) // the plan in 30 s, the provider key in 60 s
		candidates[0].Limits = limits.Compile([]limits.Limit{provider(key, limits.DimensionTokens, limits.WindowMinute, 59)})
		if d := b.ask(r); !d.TooLarge || !d.ProviderFull || d.RetryAfter != 0 {
			t.Fatalf("no candidate can ever take it: %+v", d)
		}
	}},
	{"TheWaitIsExactForThisCall", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(7, 1013)
		b.admitted(plan, 1013)
		for _, n := range []int64{1, 500, 1013} {
			d := b.refused(plan, n)
			b.clock.Move(d.RetryAfter - time.Millisecond)
			wantWait(t, b.refused(plan, n), time.Millisecond)
			b.clock.Move(time.Millisecond)
			b.admitted(plan, n)
		}
	}},
	{"WithoutLimitsEverythingPasses", func(t *testing.T, open Open) {
		b := newBench(t, open)
		if d := b.call(nil, 1_000_000_000); !d.Admitted || d.Candidate != -1 {
			t.Fatalf("%+v", d)
		}
	}},
	{"ADryRunChargesNothingAndIsNotKept", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(1, 100)
		r := limits.Request{ID: id.New(), Plan: of(plan), Estimate: tokens(100), DryRun: true}
		for range 3 {
			if d := b.ask(r); !d.Admitted || len(d.Reservation.Holds) != 0 {
				t.Fatalf("%+v", d)
			}
		}
		_, err := b.Cancel(context.Background(), b.tenant, r.ID)
		wantFault(t, err, fault.NotFound, "reservation_not_found")
		b.admitted(plan, 100)
	}},
	{"WeightsCountPerClassAndRoundUpOncePerCall", func(t *testing.T, open Open) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		l.Weights = map[limits.Class]int64{limits.ClassCachedInput: 0, limits.ClassReasoning: 1500, limits.ClassOutput: 1001}
		used := limits.Tokens{Input: 10, CachedInput: 500, CacheWrite: 5, Output: 1, Reasoning: 3}
		d := b.ask(limits.Request{Plan: of([]limits.Limit{l}), Estimate: limits.Cost{Requests: 1, Tokens: used}})
		b.remaining(1000-21, l) // 10 + 5 + 1.001 + 4.5 = 20.501
		b.settled(d.Reservation, 30)
		b.remaining(970, l)
	}},
	{"ANarrowedLimitCountsItsModelsOnly", func(t *testing.T, open Open) {
		b := newBench(t, open)
		shared := b.limit(limits.DimensionRequests, limits.WindowDay, 3)
		shared.Models = []string{"gpt-4o*", "o1"}
		each := b.limit(limits.DimensionRequests, limits.WindowMonth, 2)
		each.EachModel = true
		plan := []limits.Limit{shared, each}
		for i, c := range []struct {
			model string
			pass  bool
		}{{"gpt-4o", true}, {"gpt-4o-mini", true}, {"o1", true}, {"o1", false}, {"claude", true}, {"claude", true}, {"claude", false}, {"o1-mini", true}} {
			if d := b.ask(limits.Request{Plan: of(plan), Model: c.model, Estimate: tokens(1)}); d.Admitted != c.pass {
				t.Fatalf("call %d to %s: admitted %v", i, c.model, d.Admitted)
			}
		}
	}},
	{"ChangedAmountsKeepWhatIsUsed", func(t *testing.T, open Open) {
		b := newBench(t, open)
		bucket, day := b.limit(limits.DimensionTokens, limits.WindowMinute, 1000), b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		b.admitted([]limits.Limit{bucket, day}, 600)
		bucket.Amount, day.Amount = 800, 800
		b.remaining(200, bucket)
		b.remaining(200, day)
		bucket.Amount, day.Amount = 500, 500
		for _, s := range b.live(bucket, day) {
			if s.Remaining != 0 || s.Debt != 100 {
				t.Fatalf("%s: remaining %d, debt %d; want 0 and 100", s.Ledger, s.Remaining, s.Debt)
			}
		}
		bucket.Amount, day.Amount = 2000, 2000
		b.remaining(1400, bucket)
		b.remaining(1400, day)
	}},
	{"AnAmountThatIsLoweredAndRaisedAgainGivesNothingBack", func(t *testing.T, open Open) {
		for _, low := range []int64{0, 1, 10, 49} {
			b := newBench(t, open)
			bucket := b.limit(limits.DimensionTokens, limits.WindowMinute, 100)
			b.admitted([]limits.Limit{bucket}, 100)
			lowered := bucket
			lowered.Amount = low
			b.refused([]limits.Limit{lowered}, 1)
			if s := b.live(bucket)[0]; s.Remaining != 0 {
				t.Errorf("100 of 100 a minute used, lowered to %d and raised again: %d are left in the same instant", low, s.Remaining)
			}
		}
	}},
	{"ProcessesThatSeeAChangeAtDifferentTimesAdmitNoMoreThanTheLargerAmount", func(t *testing.T, open Open) {
		b := newBench(t, open)
		before, after := b.limit(limits.DimensionRequests, limits.WindowMinute, 100), b.limit(limits.DimensionRequests, limits.WindowMinute, 10)
		passed := 0
		for range 1000 { // in one instant, half of them in a process that knows of the change
			if b.call([]limits.Limit{before}, 1).Admitted {
				passed++
			}
			if b.call([]limits.Limit{after}, 1).Admitted {
				passed++
			}
		}
		if passed > 100 {
			t.Fatalf("%d passed at once of 100 a minute, being lowered to 10", passed)
		}
	}},
	{"AChangedZoneWaitsForTheEndOfTheDay", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 100)
		b.admitted([]limits.Limit{day}, 100)
		day.Zone = "Asia/Tokyo"
		wantWait(t, b.refused([]limits.Limit{day}, 1), 12*time.Hour)
		b.clock.Move(12 * time.Hour)
		b.admitted([]limits.Limit{day}, 40)
		if s := b.live(day)[0]; s.Remaining != 60 || s.Full != 15*time.Hour {
			t.Fatalf("remaining %d, reset in %s; want 60 and the end of the day in Tokyo in 15h", s.Remaining, s.Full)
		}
	}},
	{"DaysAreAsLongAsTheirZoneMakesThem", func(t *testing.T, open Open) {
		for _, c := range []struct {
			zone, from, to string
		}{
			{"America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}, // 23 hours
			{"America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}, // 25 hours
			{"America/Santiago", "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"}, // no midnight
			{"Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},     // the 30th is skipped
		} {
			b := newBench(t, open)
			from, _ := time.Parse(time.RFC3339, c.from)
			to, _ := time.Parse(time.RFC3339, c.to)
			day := b.limit(limits.DimensionRequests, limits.WindowDay, 1)
			day.Zone = c.zone
			b.clock.Set(from)
			b.admitted([]limits.Limit{day}, 1)
			wantWait(t, b.refused([]limits.Limit{day}, 1), to.Sub(from))
			b.clock.Set(to.Add(-time.Nanosecond))
			b.refused([]limits.Limit{day}, 1)
			b.clock.Set(to)
			b.admitted([]limits.Limit{day}, 1)
		}
	}},
	{"AMonthEndsWithItsLastDay", func(t *testing.T, open Open) {
		b := newBench(t, open)
		month := b.limit(limits.DimensionTokens, limits.WindowMonth, 10)
		month.Zone = "Europe/Berlin"
		b.admitted([]limits.Limit{month}, 10)
		want := time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC)
		wantWait(t, b.refused([]limits.Limit{month}, 1), want.Sub(Noon))
		b.clock.Set(want)
		b.admitted([]limits.Limit{month}, 10)
	}},
	{"AClockThatStepsBackGrantsNothingAndTakesNothing", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := append(b.perMinute(60, 600), b.limit(limits.DimensionTokens, limits.WindowDay, 600))
		b.clock.Set(time.Date(2026, 3, 11, 0, 0, 10, 0, time.UTC))
		b.admitted(plan, 600)
		b.clock.Move(-time.Hour) // into yesterday
		for _, l := range plan[1:] {
			b.remaining(0, l)
		}
		wantWait(t, b.refused(plan[:2], 10), time.Hour+time.Second)
		b.clock.Move(time.Hour + time.Second)
		b.remaining(10, plan[1])
		b.remaining(0, plan[2])
	}},
	{"AClockThatStepsBackReopensNoDay", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.limit(limits.DimensionTokens, limits.WindowDay, 10)}
		b.admitted(plan, 10)
		b.clock.Move(24 * time.Hour)
		b.Expire(b.clock.Now())
		b.clock.Move(-20 * time.Hour)
		b.admitted(plan, 10)
		b.clock.Move(20 * time.Hour)
		b.refused(plan, 1)
	}},
	{"AbsurdCountsAreRefusedBeforeAnythingIsTouched", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 1000)
		r := b.admitted(plan, 100)
		for _, c := range []limits.Cost{
			{Requests: -1},
			{Units: -1},
			{Tokens: limits.Tokens{Input: -1}},
			{Tokens: limits.Tokens{CachedInput: 1_000_000_001}},
			{Tokens: limits.Tokens{Output: 600_000_000, Reasoning: 600_000_000}},
		} {
			before := b.live(plan...)
			_, err := b.Reserve(context.Background(), limits.Request{Tenant: b.tenant, Plan: of(plan), Estimate: c})
			wantFault(t, err, fault.Invalid, "invalid_fields")
			if _, err = b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{Actual: c}); c.Requests == 0 {
				wantFault(t, err, fault.Invalid, "invalid_fields")
			}
			if diff := cmp.Diff(before, b.live(plan...)); diff != "" {
				t.Fatalf("touched:\n%s", diff)
			}
		}
	}},
	{"TheReservationTellsEverythingThatItHolds", func(t *testing.T, open Open) {
		b := newBench(t, open)
		key := id.New()
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 1000)
		d := b.ask(limits.Request{
			Plan: of([]limits.Limit{day}), Estimate: tokens(7), TTL: time.Minute,
			Candidates: []limits.Candidate{{ProviderKey: key, Limits: limits.Compile([]limits.Limit{provider(key, limits.DimensionRequests, limits.WindowMinute, 5)})}},
		})
		r := d.Reservation
		if !d.At.Equal(Noon) || !r.At.Equal(Noon) || !r.ExpiresAt.Equal(Noon.Add(time.Minute)) || !id.Time(r.ID).Equal(Noon) {
			t.Fatalf("instants differ: %+v", r)
		}
		want := []limits.Hold{
			{Limit: day, Ledger: day.Ledger(""), Amount: 7, WindowStart: Noon.Add(-12 * time.Hour), WindowEnd: Noon.Add(12 * time.Hour)},
			{Limit: provider(key, limits.DimensionRequests, limits.WindowMinute, 5), Ledger: "provider_key:" + key.String() + "/requests/minute", Amount: 1, Candidate: true},
		}
		if diff := cmp.Diff(want, r.Holds); diff != "" {
			t.Fatal(diff)
		}
		if len(d.States) != 2 || d.States[0].Held != 7 || d.States[1].Remaining != 4 {
			t.Fatalf("states %+v", d.States)
		}
	}},
	{"AnIdIsReservedOnceAndAnsweredAlikeUntilItEnds", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(10, 100)
		r := limits.Request{Tenant: b.tenant, ID: id.New(), Model: "gpt-4o", Plan: of(plan), Estimate: tokens(30)}
		first := b.ask(r)
		b.clock.Move(time.Second)
		again := b.ask(r)
		if !again.Again || !again.Admitted || again.Candidate != first.Candidate || !again.At.Equal(first.At) {
			t.Fatalf("%+v", again)
		}
		if diff := cmp.Diff(first.Reservation, again.Reservation); diff != "" {
			t.Fatal(diff)
		}
		b.remaining(71, plan[1])
		r.Estimate = tokens(31)
		_, err := b.Reserve(context.Background(), r)
		wantFault(t, err, fault.Conflict, "reservation_exists")
		b.remaining(71, plan[1])
		b.settled(first.Reservation, 30)
		r.Estimate = tokens(30)
		_, err = b.Reserve(context.Background(), r)
		wantFault(t, err, fault.Conflict, "reservation_exists")
	}},
	{"ALimitThatNothingEnforcesFailsClosed", func(t *testing.T, open Open) {
		b := newBench(t, open)
		l := b.limit(limits.DimensionTokens, limits.WindowMinute, 10)
		l.Policy = limits.PolicyGauge
		_, err := b.Reserve(context.Background(), limits.Request{Tenant: b.tenant, Plan: of([]limits.Limit{l})})
		wantFault(t, err, fault.Unavailable, "limiter_unavailable")
	}},
	{"TenantsShareNothing", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := b.perMinute(1, 10)
		r := b.admitted(plan, 10)
		b.tenant = id.New()
		_, err := b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{})
		wantFault(t, err, fault.NotFound, "reservation_not_found")
		b.admitted(plan, 10)
	}},
}
