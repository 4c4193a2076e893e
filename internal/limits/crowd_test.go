package limits_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
)

func TestNamesBeyondTheBoundShareOneLedgerUntilOthersAreUnused(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxNames: 3})
	each := limit(limits.DimensionTokens, limits.WindowMinute, 60)
	each.EachModel = true
	for i := range 3 {
		if !reserve(t, m, fmt.Sprint("m", i), 60, each).Admitted {
			t.Fatalf("model %d was refused", i)
		}
	}
	d := reserve(t, m, "one more", 40, each)
	if !d.Admitted {
		t.Fatal("the first beyond the bound was refused")
	}
	if d := reserve(t, m, "yet another", 40, each); d.Admitted || d.RetryAfter != 20*time.Second {
		t.Fatalf("%+v: all that are beyond the bound share one ledger", d)
	}
	if reserve(t, m, "m0", 1, each).Admitted {
		t.Fatal("a name within the bound was given another ledger")
	}
	if _, err := m.Cancel(context.Background(), tenant, d.Reservation.ID); err != nil {
		t.Fatal(err)
	}
	if !reserve(t, m, "yet another", 60, each).Admitted {
		t.Fatal("what was cancelled is still charged")
	}
	clock.Move(3 * time.Hour)
	m.Expire(clock.Now())
	clock.Move(3 * time.Hour)
	m.Expire(clock.Now())
	for i := range 3 {
		if !reserve(t, m, fmt.Sprint("n", i), 60, each).Admitted {
			t.Fatalf("model %d was refused, though nothing is in use", i)
		}
	}
}

func TestATenantHasSoManyOpenReservationsAndNoMore(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxOpen: 2})
	l := limit(limits.DimensionTokens, limits.WindowMinute, 60)
	first := reserve(t, m, "", 10, l)
	reserve(t, m, "", 10, l)
	r := limits.Request{Tenant: tenant, Plan: []*limits.Set{limits.Compile([]limits.Limit{l})}, Estimate: limits.Cost{Tokens: limits.Tokens{Input: 10}}}
	if _, err := m.Reserve(context.Background(), r); fault.Of(err).Code != "limiter_unavailable" {
		t.Fatalf("a third: %v", err)
	}
	if s := live(t, m, l)[0]; s.Remaining != 40 {
		t.Fatalf("%d remain", s.Remaining)
	}
	if _, err := m.Cancel(context.Background(), tenant, first.Reservation.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Reserve(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

func TestMakingRoomForALedgerForgetsNoneThatTheCallTouches(t *testing.T) {
	slots, bucket := limit(limits.DimensionConcurrency, limits.WindowNone, 1), limit(limits.DimensionTokens, limits.WindowMinute, 60)
	sliding := limit(limits.DimensionUnits, limits.WindowMinute, 60)
	sliding.Policy = limits.PolicySliding
	each := limit(limits.DimensionRequests, limits.WindowMinute, 60)
	each.EachModel = true
	plan := []limits.Limit{slots, bucket, sliding, each}
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxLedgers: 4})
	first := reserve(t, m, "a", 60, plan...).Reservation
	if _, err := m.Cancel(context.Background(), tenant, first.ID); err != nil {
		t.Fatal(err)
	}
	clock.Move(2 * time.Minute)                    // all four say nothing any more
	if !reserve(t, m, "b", 60, plan...).Admitted { // a fifth
		t.Fatal("refused")
	}
	for i, l := range []limits.Limit{slots, bucket} {
		if s := live(t, m, l)[0]; s.Remaining != 0 {
			t.Errorf("limit %d: %d are left of what the call took", i, s.Remaining)
		}
	}
	if reserve(t, m, "b", 0, slots).Admitted {
		t.Error("two calls at once, of one")
	}
}

func TestWhatCallersNameLeavesRoomForOthers(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxLedgers: 100})
	each := limit(limits.DimensionTokens, limits.WindowDay, 10)
	each.EachModel = true
	for i := range 200 {
		token := limit(limits.DimensionTokens, limits.WindowDay, 10)
		token.Scope = limits.Scope{Kind: limits.ScopeClientToken, ID: id.New()}
		for _, l := range []limits.Limit{each, token} {
			r := limits.Request{Tenant: tenant, Model: fmt.Sprint("m", i), Plan: []*limits.Set{limits.Compile([]limits.Limit{l})}, Estimate: limits.Cost{Tokens: limits.Tokens{Input: 1}}}
			_, _ = m.Reserve(context.Background(), r) // whatever becomes of it
		}
	}
	other := limit(limits.DimensionRequests, limits.WindowDay, 10)
	r := limits.Request{Tenant: tenant, Plan: []*limits.Set{limits.Compile([]limits.Limit{other})}, Estimate: limits.Cost{Requests: 1}}
	if d, err := m.Reserve(context.Background(), r); err != nil || !d.Admitted {
		t.Fatalf("another customer's call: %v", err)
	}
}

func TestNamesStayBoundedOverARestart(t *testing.T) {
	for _, killed := range []bool{false, true} {
		clock := limitstest.NewClock(limitstest.Noon)
		m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxNames: 3})
		raw, err := m.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		each := limit(limits.DimensionTokens, limits.WindowRollingDay, 60)
		each.EachModel = true
		var journal []limits.Entry
		for i := range 4 {
			journal = append(journal, limits.Entry{At: clock.Now(), Reservation: reserve(t, m, fmt.Sprint("m", i), 60, each).Reservation})
		}
		if !killed {
			journal = nil
			if raw, err = m.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		next := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Started: clock.Now(), Snapshot: raw, Journal: journal, MaxNames: 3})
		for _, model := range []string{"m3", "m4"} { // those beyond the bound share a ledger, which is spent
			if reserve(t, next, model, 1, each).Admitted {
				t.Errorf("killed %v: %s has a ledger of its own after a restart", killed, model)
			}
		}
	}
}
