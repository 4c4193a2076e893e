package limits_test

import (
	"bytes"
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

func TestASnapshotOfTheVersionBeforeIsRead(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	plan := limit(limits.DimensionTokens, limits.WindowMinute, 600)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
	r := reserve(t, m, "", 300, plan).Reservation
	if _, err := m.Settle(t.Context(), tenant, r.ID, limits.Settlement{Actual: r.Estimate}); err != nil {
		t.Fatal(err)
	}
	raw, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := bytes.Cut(raw, []byte("\n"))
	const beforeFamily = 16 + 16 + 16 // the tenant, how much follows, the ledger's id
	old := append(bytes.Replace(head, []byte(`"version":4`), []byte(`"version":3`), 1), '\n')
	old = append(append(old, body[:beforeFamily]...), body[beforeFamily+16:]...)
	next := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Started: clock.Now(), Snapshot: old})
	if s := live(t, next, plan)[0]; s.Remaining != 300 {
		t.Fatalf("%+v", s)
	}
}
