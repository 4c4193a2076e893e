package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/id"
	"weir/internal/limits"
)

func TestAfterAKillTheLimitsOfAMinuteAreAsSpentAsTheyWere(t *testing.T) {
	t.Parallel()
	m := newMetering(t)
	dir := t.TempDir()
	s, _ := spoolAt(t, dir, SpoolOptions{SyncEvery: 5 * time.Millisecond, SegmentBytes: 4 << 10, Now: m.clock.now})
	m.spool = s
	m.meter = NewMeter(m.engine, s, m.reports, quiet(t), m.clock.now)
	sliding := limits.Default(limits.Limit{ID: id.New(), Scope: m.plan[0].Scope, Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Policy: limits.PolicySliding, Amount: 100_000})
	m.plan = []limits.Limit{limits.Default(limits.Limit{ID: id.New(), Scope: m.plan[0].Scope, Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 100}), sliding}
	end := func(d limits.Decision) {
		_, err := m.meter.Settle(t.Context(), m.tenant, d.Reservation.ID, Result{Outcome: OK, Tokens: used})
		must(t, err)
	}
	keys := newKeys(2)
	move := func(d limits.Decision, took int64) {
		_, err := m.meter.Move(t.Context(), m.tenant, d.Reservation.ID, Next{Ended: try(keys.candidates[0], 500, limits.Tokens{Input: took}), GiveBackRequest: true, Candidates: keys.candidates[1:]})
		must(t, err)
	}
	routed := m.call(false)
	routed.Candidates = keys.candidates[:1]
	m.admit(m.call(false)) // never ends
	over := m.admit(m.call(false))
	end(m.admit(m.call(false)))
	m.clock.advance(time.Second)
	from := s.Place()
	snapshot, err := m.engine.Snapshot()
	must(t, err)
	must(t, s.Keep(from, snapshot))
	m.clock.advance(time.Second)
	end(over)
	for range 30 { // more than a file
		end(m.admit(m.call(false)))
	}
	moved := m.admit(routed)
	move(moved, 40)
	end(moved)
	move(m.admit(routed), 50)
	m.admit(m.call(false))
	m.plan = append(m.plan, keys.limits[0][0], keys.limits[1][0])
	want, err := m.engine.Live(t.Context(), m.tenant, m.plan, "", "")
	must(t, err)
	crash(s)

	_, rec := spoolAt(t, dir, SpoolOptions{Now: m.clock.now})
	if rec.Clean || rec.Snapshot == nil || len(rec.Journal) != 67 {
		t.Fatalf("clean %v, snapshot of %d bytes, %d entries", rec.Clean, len(rec.Snapshot), len(rec.Journal))
	}
	again := limits.NewMemory(limits.MemoryOptions{Now: m.clock.now, Started: m.clock.now(), Snapshot: rec.Snapshot, Journal: rec.Journal})
	got, err := again.Live(t.Context(), m.tenant, m.plan, "", "")
	must(t, err)
	for i := range got {
		if diff := cmp.Diff([2]int64{want[i].Remaining, want[i].Used + want[i].Held}, [2]int64{got[i].Remaining, got[i].Used + got[i].Held}); diff != "" {
			t.Errorf("%s:\n%s", got[i].Ledger, diff)
		}
	}
}
