package limits_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
)

// A life that ends by a kill has left a snapshot and, from a moment before it
// on, an entry for every admission and outcome.
func TestAfterAKillSnapshotAndJournalGiveNothingBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := limitstest.NewClock(limitstest.Noon)
		m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
		sliding, rolling := limit(limits.DimensionInputTokens, limits.WindowMinute, 2000), limit(limits.DimensionTokens, limits.WindowRollingDay, 50_000)
		sliding.Policy = limits.PolicySliding
		plan := []limits.Limit{limit(limits.DimensionTokens, limits.WindowMinute, 3000), sliding, rolling}
		keys := [2][]limits.Limit{}
		for i := range keys {
			own := limits.Scope{Kind: limits.ScopeProviderKey, ID: id.New(), Name: "key"}
			bucket, minute := limit(limits.DimensionTokens, limits.WindowMinute, 3000), sliding
			bucket.Scope, minute.Scope = own, own
			keys[i] = []limits.Limit{bucket, minute}
		}
		candidate := func(i int) []limits.Candidate {
			return []limits.Candidate{{ProviderKey: keys[i][0].Scope.ID, Model: "m", Limits: limits.Compile(keys[i])}}
		}
		var snapshot []byte
		var journal []limits.Entry
		var open []limits.Reservation
		late := map[int]bool{} // admitted before the journal began
		from := rapid.IntRange(0, 40).Draw(rt, "from")
		taken := from + rapid.IntRange(0, 2).Draw(rt, "taken")
		for i := range rapid.IntRange(45, 80).Draw(rt, "steps") {
			if i == taken {
				snapshot, _ = m.Snapshot()
			}
			clock.Move(time.Duration(rapid.Int64Range(0, 3000).Draw(rt, "ms")) * time.Millisecond)
			// No more are open than a bucket keeps rooms: merged ones give back less, and
			// a replay, which has fewer, is exact where the life before was not.
			if n := len(open); n > 0 && (n == 12 || rapid.IntRange(0, 2).Draw(rt, "ends") == 0) {
				j := rapid.IntRange(0, n-1).Draw(rt, "which")
				r := open[j]
				if rapid.Bool().Draw(rt, "moves") {
					took := limits.Cost{Tokens: limits.Tokens{Input: rapid.Int64Range(0, 300).Draw(rt, "took")}}
					d, err := m.Move(context.Background(), limits.Next{
						Tenant: tenant, ID: r.ID, Attempt: r.Moves, Ended: limits.Settlement{Actual: took, GiveBackRequest: true}, Candidates: candidate((r.Moves + 1) % 2),
					})
					if err != nil {
						rt.Fatal(err)
					}
					if open[j] = d.Reservation; i >= from {
						journal = append(journal, limits.Entry{At: clock.Now(), Reservation: r, Earlier: late[int(r.Estimate.Units)], Moved: &d.Reservation})
					}
					continue
				}
				open = append(open[:j], open[j+1:]...)
				actual := limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: rapid.Int64Range(0, 300).Draw(rt, "actual")}}
				if _, err := m.Settle(context.Background(), tenant, r.ID, limits.Settlement{Actual: actual}); err != nil {
					rt.Fatal(err)
				}
				if i >= from {
					journal = append(journal, limits.Entry{At: clock.Now(), Reservation: r, Earlier: late[int(r.Estimate.Units)], Actual: &actual})
				}
				continue
			}
			d, err := m.Reserve(context.Background(), limits.Request{
				Tenant: tenant, Plan: []*limits.Set{limits.Compile(plan)}, Candidates: candidate(0),
				Estimate: limits.Cost{Requests: 1, Units: int64(i), Tokens: limits.Tokens{Input: rapid.Int64Range(0, 300).Draw(rt, "tokens")}},
			})
			if err != nil {
				rt.Fatal(err)
			}
			if !d.Admitted {
				continue
			}
			open = append(open, d.Reservation)
			if late[i] = i < from; i >= from {
				journal = append(journal, limits.Entry{At: clock.Now(), Reservation: d.Reservation})
			}
		}
		next := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Started: clock.Now(), Snapshot: snapshot, Journal: journal})
		of := slices.Concat(plan, keys[0], keys[1])
		was, is := live(t, m, of...), live(t, next, of...)
		for i := range was {
			if is[i].Remaining > was[i].Remaining || is[i].Debt < was[i].Debt {
				rt.Fatalf("%s had %d left and a debt of %d; after the kill %d and %d", was[i].Ledger, was[i].Remaining, was[i].Debt, is[i].Remaining, is[i].Debt)
			}
			if from == taken && i > 0 && i < len(plan) && is[i].Remaining != was[i].Remaining {
				rt.Fatalf("%s had %d left, after the kill %d, though nothing happened while the snapshot was taken", was[i].Ledger, was[i].Remaining, is[i].Remaining)
			}
		}
	})
}

func TestAJournalWithoutSnapshotCountsAsAnUncleanEnd(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Snapshot: []byte(`{"version":3,"tenants":1}` + "\n"), Started: clock.Now()})
	l := limit(limits.DimensionTokens, limits.WindowMinute, 600)
	l.Scope.ID = [16]byte{1} // of before
	if s := live(t, m, l)[0]; s.Remaining != 0 {
		t.Fatalf("%d remain of a bucket that may have been used", s.Remaining)
	}
}
