package replicas

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/id"
	"weir/test/stack"
)

// besideEachOther is two processes whose spools lie side by side, and who adopt
// what has been silent for a while.
func besideEachOther(t *testing.T) *shared {
	s := &shared{T: t, weir: stack.Fresh(t)}
	s.w = s.weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 1000}}})
	s.env = []string{"SPOOL_ADOPT_AFTER=6s"}
	base := t.TempDir()
	for i := range s.pair {
		s.dirs[i] = filepath.Join(base, []string{"one", "two"}[i])
		s.start(i)
	}
	return s
}

// over tells whether the books have everything of the instance that admitted a
// reservation, and it is known to have ended.
const over = `select count(*) from instances where stopped_at is not null and instance_id = $1`

// TestWhatAKilledProcessLeftIsBroughtIntoTheBooksByAnother: what had ended, and
// what was still open once its time is over.
func TestWhatAKilledProcessLeftIsBroughtIntoTheBooksByAnother(t *testing.T) {
	t.Parallel()
	s := besideEachOther(t)
	settled, open := s.reserve(600), s.reserve(5)
	if a := s.settle(0, settled, 70); a.Status != http.StatusOK {
		t.Fatal(a)
	}
	s.pair[0].KillProcess(t)
	if e := s.event(settled); e.Outcome != "ok" || e.Units != 70 {
		t.Fatalf("%+v", e)
	}
	e := s.event(open)
	if e.Outcome != "expired" || e.Units != 100 {
		t.Fatalf("%+v", e)
	}
	stack.Eventually(t, 20*time.Second, func() string {
		if stack.Value[int64](t, s.weir, over, e.Of) != 1 {
			return "the instance is not over:\n" + s.pair[1].Log.Tail()
		}
		return ""
	})
}

// TestAProcessThatComesBackGetsItsSpoolFromWhoAdoptedIt, and what is open in it
// goes on.
func TestAProcessThatComesBackGetsItsSpoolFromWhoAdoptedIt(t *testing.T) {
	t.Parallel()
	s := besideEachOther(t)
	open := s.reserve(600)
	s.pair[0].KillProcess(t)
	stack.Eventually(t, 30*time.Second, func() string {
		if !strings.Contains(s.pair[1].Log.String(), "spool adopted") {
			return "nobody adopts it"
		}
		return ""
	})
	s.start(0)
	s.eventually(0, open, 40, http.StatusOK)
	if e := s.event(open); e.Outcome != "ok" || e.Units != 40 {
		t.Fatalf("%+v", e)
	}
	call, _ := id.Reservation.Parse(open)
	if n := stack.Value[int64](t, s.weir, `select count(*) from usage_events where event_id = $1 or corrects = $1`, call); n != 1 {
		t.Fatalf("%d events", n)
	}
}
