package limitstest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/id"
	"weir/internal/limits"
)

// sliding is a limit of 100.
func (b *bench) sliding(w limits.Window) limits.Limit {
	l := b.limit(limits.DimensionTokens, w, 100)
	l.Policy = limits.PolicySliding
	return l
}

func (b *bench) spend(amount int64) limits.Limit {
	return b.limit(limits.DimensionSpend, limits.WindowDay, amount)
}

func pico(n int64) limits.Cost { return limits.Cost{Requests: 1, ChargePico: n} }

// policies are what sliding windows, money, shadow mode and the narrower scopes
// promise.
var policies = []guarantee{
	{"ASlidingMinuteCountsASubBucketUntilAllOfItHasLeft", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.sliding(limits.WindowMinute)}
		b.clock.Move(300 * time.Millisecond)
		b.admitted(plan, 60)
		b.clock.Move(9 * time.Second) // 9.3
		b.admitted(plan, 40)
		wantWait(t, b.refused(plan, 1), 51700*time.Millisecond) // all of the second 0 has left at 61
		wantWait(t, b.refused(plan, 60), 51700*time.Millisecond)
		wantWait(t, b.refused(plan, 61), 60700*time.Millisecond) // and of the second 9 at 70
		if d := b.refused(plan, 101); !d.TooLarge || d.RetryAfter != 0 {
			t.Fatalf("%+v", d)
		}
		b.clock.Move(51699 * time.Millisecond)
		b.refused(plan, 1)
		b.clock.Move(time.Millisecond)
		b.admitted(plan, 60)
		b.refused(plan, 1)
	}},
	{"ASlidingDayCountsFiveMinutesAtATime", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.sliding(limits.WindowRollingDay)}
		b.clock.Move(4 * time.Minute)
		b.admitted(plan, 100)
		wantWait(t, b.refused(plan, 1), 24*time.Hour+time.Minute)
		b.clock.Move(24*time.Hour + time.Minute - time.Millisecond)
		b.refused(plan, 1)
		b.clock.Move(time.Millisecond)
		b.admitted(plan, 100)
		if s := b.live(plan[0])[0]; s.Full != 24*time.Hour+5*time.Minute {
			t.Fatalf("empty in %s", s.Full)
		}
	}},
	{"ASlidingWindowIsCorrectedWhereItWasChargedOrNotAtAll", func(t *testing.T, open Open) {
		b := newBench(t, open)
		plan := []limits.Limit{b.sliding(limits.WindowMinute)}
		lower, higher, gone := b.admitted(plan, 30), b.admitted(plan, 30), b.admitted(plan, 30)
		b.clock.Move(10 * time.Second)
		b.admitted(plan, 10)
		b.settled(lower, 10)
		b.remaining(20, plan[0])
		b.settled(higher, 70)
		s := b.live(plan[0])[0]
		if s.Remaining != 0 || s.Debt != 20 || s.Used+s.Held != 120 || s.NextCallAfter != 51*time.Second {
			t.Fatalf("%+v", s)
		}
		b.clock.Move(51 * time.Second)
		b.remaining(90, plan[0]) // all three have left, the ten have not
		b.settled(gone, 0)
		b.remaining(90, plan[0])
	}},
	{"SpendIsExactToThePicoUnit", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.spend(3) // micro-units
		var r limits.Reservation
		for range 3 {
			d := b.ask(limits.Request{Plan: of([]limits.Limit{day}), Estimate: pico(999_999)})
			if !d.Admitted {
				t.Fatal(describe(d.Violations))
			}
			r = d.Reservation
		}
		s := b.live(day)[0]
		if s.Used+s.Held != 3 || s.Remaining != 0 {
			t.Fatalf("%+v: 2.999997 are used, which is 3 rounded up", s)
		}
		if d := b.ask(limits.Request{Plan: of([]limits.Limit{day}), Estimate: pico(4)}); d.Admitted || d.RetryAfter != 12*time.Hour {
			t.Fatalf("%+v", d)
		}
		if d := b.ask(limits.Request{Plan: of([]limits.Limit{day}), Estimate: pico(3)}); !d.Admitted {
			t.Fatal("three pico-units were left")
		}
		o, err := b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{Actual: pico(2_000_007)})
		want := []limits.Charge{{Ledger: day.Ledger(""), WindowStart: Noon.Add(-12 * time.Hour), Amount: 2, Pico: 7}}
		if diff := cmp.Diff(want, o.Charges); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		if s := b.live(day)[0]; s.Debt != 2 { // 4.000008 of 3
			t.Fatalf("%+v", s)
		}
		if d := b.ask(limits.Request{Plan: of([]limits.Limit{day}), Estimate: pico(3_000_001)}); !d.TooLarge {
			t.Fatalf("%+v", d)
		}
	}},
	{"ACorrectionOfSpendIsExactToo", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.spend(100)
		r := b.ask(limits.Request{Plan: of([]limits.Limit{day}), Estimate: pico(5_000_001)}).Reservation
		b.clock.Set(r.ExpiresAt)
		b.expired(1)
		o, err := b.Settle(context.Background(), b.tenant, r.ID, limits.Settlement{Actual: pico(3_000_002)})
		if err != nil || o.Charges[0].Amount*1_000_000+o.Charges[0].Pico != -1_999_999 {
			t.Fatalf("%+v, %v", o.Charges, err)
		}
		b.remaining(96, day)
	}},
	{"WhatTheProviderChargesBelongsToTheCandidate", func(t *testing.T, open Open) {
		b := newBench(t, open)
		account := b.spend(10)
		account.Scope = limits.Scope{Kind: limits.ScopeTenant, ID: b.tenant}
		mine := b.spend(10)
		dear, cheap := id.New(), id.New()
		r := limits.Request{
			Plan: of([]limits.Limit{account, mine}), Estimate: pico(1_000_000),
			Candidates: []limits.Candidate{
				{ProviderKey: dear, Model: "a", ProviderPico: 11_000_000},
				{ProviderKey: cheap, Model: "b", ProviderPico: 4_000_000, Limits: limits.Compile([]limits.Limit{provider(cheap, limits.DimensionSpend, limits.WindowDay, 6)})},
			},
		}
		for i, want := range []int{1, -1} {
			if d := b.ask(r); d.Candidate != want || d.Admitted != (want >= 0) {
				t.Fatalf("call %d: %+v", i, d)
			}
		}
		b.remaining(6, account)
		b.remaining(9, mine)
	}},
	{"AShadowLimitReportsAndNeverRefuses", func(t *testing.T, open Open) {
		b := newBench(t, open)
		shadow, stops := b.limit(limits.DimensionTokens, limits.WindowDay, 100), b.limit(limits.DimensionTokens, limits.WindowMinute, 1000)
		shadow.Mode = limits.ModeShadow
		plan := []limits.Limit{shadow, stops}
		b.admitted(plan, 80)
		d := b.call(plan, 30)
		if !d.Admitted || len(d.Violations) != 0 || !d.States[0].Refuses || d.States[0].RetryAfter != 12*time.Hour || d.States[1].Refuses {
			t.Fatalf("%+v", d)
		}
		b.remaining(20, shadow) // it simulates a refusal: nothing was charged
		b.remaining(890, stops)
		if len(d.Reservation.Holds) != 1 {
			t.Fatalf("%+v", d.Reservation)
		}
		b.settled(d.Reservation, 300)
		b.remaining(20, shadow)
		b.admitted(plan, 20)
		b.remaining(0, shadow)
		if d := b.call(plan, 101); !d.Admitted || !d.States[0].Never || d.TooLarge {
			t.Fatalf("%+v", d)
		}
		d = b.refused(plan, 900)
		if len(d.Violations) != 1 || d.Violations[0].Ledger != stops.Ledger("") {
			t.Fatalf("refused by %s", describe(d.Violations))
		}
		shadow.Mode = limits.ModeEnforce
		wantWait(t, b.refused([]limits.Limit{shadow}, 1), 12*time.Hour)
	}},
	{"EachEndUserHasALedgerOfItsOwn", func(t *testing.T, open Open) {
		b := newBench(t, open)
		each := b.limit(limits.DimensionRequests, limits.WindowDay, 2)
		each.Scope.Kind = limits.ScopeEndUser
		ask := func(user string) bool {
			return b.ask(limits.Request{Plan: of([]limits.Limit{each}), EndUser: user, Estimate: tokens(1)}).Admitted
		}
		for i, c := range []struct {
			user string
			pass bool
		}{{"ann", true}, {"ann", true}, {"bob", true}, {"ann", false}, {"bob", true}, {"bob", false}, {"", true}, {"", true}, {"", false}} {
			if got := ask(c.user); got != c.pass {
				t.Fatalf("call %d by %q: admitted %v", i, c.user, got)
			}
		}
		if each.LedgerOf("m", "ann") == each.LedgerOf("m", "bob") {
			t.Fatal("one name for two end users")
		}
		for user, left := range map[string][]int64{"ann": {0}, "carl": {2}, "": {}} {
			states, err := b.Live(context.Background(), b.tenant, []limits.Limit{each}, "", user)
			got := []int64{}
			for _, s := range states {
				got = append(got, s.Remaining)
			}
			if err != nil || !slices.Equal(got, left) {
				t.Fatalf("%q has %v left, not %v: %v", user, got, left, err)
			}
		}
	}},
	{"AClientTokenHasALedgerOfItsOwn", func(t *testing.T, open Open) {
		b := newBench(t, open)
		mine := b.limit(limits.DimensionRequests, limits.WindowDay, 1)
		mine.Scope = limits.Scope{Kind: limits.ScopeClientToken, ID: id.New()}
		other := mine
		other.Scope.ID = id.New()
		b.admitted([]limits.Limit{mine}, 1)
		b.refused([]limits.Limit{mine}, 1)
		b.admitted([]limits.Limit{other}, 1)
	}},
	{"AChangeOfPolicyKeepsWhatIsUsed", func(t *testing.T, open Open) {
		b := newBench(t, open)
		bucket := b.limit(limits.DimensionTokens, limits.WindowMinute, 100)
		sliding := b.sliding(limits.WindowMinute)
		held := b.admitted([]limits.Limit{bucket}, 60)
		b.clock.Move(6 * time.Second) // 10 refilled
		b.remaining(50, sliding)
		wantWait(t, b.refused([]limits.Limit{sliding}, 60), 61*time.Second) // all of it counts from now
		b.settled(held, 0)
		b.remaining(50, sliding) // charged before the change: nothing comes back
		b.clock.Move(30 * time.Second)
		b.admitted([]limits.Limit{sliding}, 20)
		b.remaining(30, bucket)
		b.clock.Move(6 * time.Second)
		b.remaining(40, bucket)
	}},
	{"AnOverrunCountsAfterAChangeOfPolicyToo", func(t *testing.T, open Open) {
		b := newBench(t, open)
		bucket, sliding := b.limit(limits.DimensionTokens, limits.WindowMinute, 100), b.sliding(limits.WindowMinute)
		first := b.admitted([]limits.Limit{bucket}, 10)
		b.remaining(90, sliding)
		b.settled(first, 30)
		b.remaining(70, sliding)
		second := b.admitted([]limits.Limit{sliding}, 10)
		b.remaining(60, bucket)
		b.settled(second, 30)
		b.remaining(40, bucket)
	}},
	{"TheStricterOfTwoLimitsStandsWhereTheyShareALedger", func(t *testing.T, open Open) {
		b := newBench(t, open)
		low, high := b.limit(limits.DimensionTokens, limits.WindowDay, 10), b.limit(limits.DimensionTokens, limits.WindowDay, 100)
		for _, plan := range [][]limits.Limit{{low, high}, {high, low}} {
			if d := b.refused(plan, 11); len(d.Violations) != 1 || !d.TooLarge {
				t.Fatalf("%+v", d)
			}
		}
		low.Mode = limits.ModeShadow
		b.admitted([]limits.Limit{low, high}, 11)
		b.remaining(89, high)
	}},
}
