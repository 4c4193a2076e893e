package limits_test

import (
	"testing"
	"time"

	"weir/internal/limits"
	"weir/internal/limits/limitstest"
)

func TestACleanStopSoonAfterAKillGivesBackNothingOfWhatWasSpentBeforeTheKill(t *testing.T) {
	clock := limitstest.NewClock(time.Now())
	plan := limit(limits.DimensionTokens, limits.WindowMinute, 600)
	killed := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
	reserve(t, killed, "", 600, plan) // everything; then kill -9
	clock.Move(time.Second)

	// A life that nobody calls, ended in order: a crash loop, a deploy right after.
	short := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Started: clock.Now(), Unclean: true, LastAlive: clock.Now()})
	clock.Move(time.Second)
	raw, err := short.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Started: clock.Now(), Snapshot: raw})
	if s := live(t, next, plan)[0]; s.Remaining > 20 {
		t.Fatalf("%d of 600 can be spent 2 s after all of them were", s.Remaining)
	}
}
