package replicas

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// shared is two processes on one Redis, of a tenant that meters units.
type shared struct {
	*testing.T
	weir *stack.Stack
	w    stack.World
	pair [2]*stack.Stack
	env  []string // of each process
	dirs [2]string
}

func newShared(t *testing.T) *shared {
	s := &shared{T: t, weir: stack.Fresh(t)}
	s.w = s.weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 1000}}})
	s.env = []string{"REDIS_URL=" + redistest.Start(t).URL(), "REDIS_BUDGET=5s", "API_PROCESSES=2"}
	for i := range s.pair {
		s.dirs[i] = t.TempDir()
		s.start(i)
	}
	return s
}

func (s *shared) start(i int) {
	s.Helper()
	s.pair[i] = s.weir.Replica(s.T, append(s.env, "SPOOL_DIR="+s.dirs[i])...)
}

// reserve reserves 100 units through the first process.
func (s *shared) reserve(ttl int) string {
	s.Helper()
	return s.pair[0].Want(s.T, http.StatusCreated, "POST", "/v1/reservations", s.w.ManagementKey,
		fmt.Sprintf(`{"customer": %q, "estimate": {"units": 100}, "ttl_seconds": %d}`, s.w.Customer, ttl)).Text("id")
}

func (s *shared) settle(i int, reservation string, units int) stack.Answer {
	s.Helper()
	return s.pair[i].Call(s.T, "POST", "/v1/reservations/"+reservation+"/settle", s.w.ManagementKey, fmt.Sprintf(`{"outcome": "ok", "units": %d}`, units))
}

// eventually is settle, which may be asked to try again in a second.
func (s *shared) eventually(i int, reservation string, units, status int) {
	s.Helper()
	stack.Eventually(s.T, 20*time.Second, func() string {
		if a := s.settle(i, reservation, units); a.Status != status {
			return a.String()
		}
		return ""
	})
}

// event is what the books hold of a reservation.
type event struct {
	Outcome string
	Units   int64
	Of      uuid.UUID // the instance
}

// event waits for the only event of a reservation.
func (s *shared) event(reservation string) (e event) {
	s.Helper()
	call, err := id.Reservation.Parse(reservation)
	if err != nil {
		s.Fatal(err)
	}
	stack.Eventually(s.T, 20*time.Second, func() string {
		list := stack.Rows[event](s.T, s.weir, `select outcome, units, instance_id from usage_events where event_id = $1 or corrects = $1`, call)
		if len(list) != 1 {
			return fmt.Sprintf("%d events of %s", len(list), reservation)
		}
		e = list[0]
		return ""
	})
	return e
}

func (s *shared) holds(reservation, outcome string, units int64) event {
	s.Helper()
	e := s.event(reservation)
	if e.Outcome != outcome || e.Units != units {
		s.Fatalf("the books hold %+v of %s, want %s of %d units", e, reservation, outcome, units)
	}
	return e
}

// quiet waits until no process holds anything open, and nothing was in
// conflict.
func (s *shared) quiet() {
	s.Helper()
	stack.Eventually(s.T, 40*time.Second, func() string {
		open := stack.Value[int64](s.T, s.weir, `select count(*) from instances where oldest_open is not null`)
		if open > 0 {
			return fmt.Sprintf("%d instances hold something open", open)
		}
		return ""
	})
	if n := stack.Value[int64](s.T, s.weir, `select count(*) from dead_letters`); n > 0 {
		s.Fatalf("%d dead letters", n)
	}
}

func TestAReservationOfOneProcessIsEndedThroughAnother(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	settled, cancelled, extended, lapsed := s.reserve(10), s.reserve(10), s.reserve(3), s.reserve(2)
	if a := s.settle(1, settled, 40); a.Status != 200 || a.Text("state") != "settled" {
		t.Fatal(a)
	}
	s.pair[1].Want(t, 200, "POST", "/v1/reservations/"+cancelled+"/cancel", s.w.ManagementKey, nil)
	s.pair[1].Want(t, 200, "POST", "/v1/reservations/"+extended+"/extend", s.w.ManagementKey, `{"ttl_seconds": 12}`)

	first, second := s.holds(lapsed, "expired", 100), s.holds(settled, "ok", 40)
	if first.Of == second.Of {
		t.Fatal("who ended it wrote it: two instances")
	}
	s.holds(cancelled, "aborted", 0)
	for i := range s.pair { // again, through either
		s.eventually(i, settled, 40, 200)
		s.eventually(i, settled, 41, http.StatusConflict)
	}
	s.eventually(1, lapsed, 60, 200) // late
	s.eventually(0, lapsed, 60, 200)
	s.eventually(0, extended, 70, 200) // it is open still
	s.holds(extended, "ok", 70)
	s.quiet()
	a := s.pair[0].Want(t, 200, "GET", "/v1/limits", s.w.Key, nil)
	if a.JSON("data.0.used") != float64(40+60+70) {
		t.Fatalf("the day holds %s", a)
	}
}

func TestAReservationOfAProcessThatWasKilledIsEndedThroughAnother(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	settled, left := s.reserve(600), s.reserve(600)
	s.pair[0].KillProcess(t)
	s.eventually(1, settled, 40, 200)
	s.holds(settled, "ok", 40)
	s.start(0)
	s.eventually(0, settled, 40, 200) // whose admission it has had itself
	s.eventually(0, left, 30, 200)
	s.holds(left, "ok", 30)
	s.holds(settled, "ok", 40)
	s.quiet()
}
