package replicas

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"weir/internal/limits/redistest"
	"weir/test/stack"
)

// stopped is two processes that remember a key and its limit.
func stopped(t *testing.T) (w stack.World, pair [2]*stack.Stack, ask func(i, units int) int) {
	t.Helper()
	weir := stack.Fresh(t)
	w = weir.Setup(t, stack.Options{
		Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 1000}}, KeyLimit: []stack.Limit{{Dimension: "units", Window: "day", Amount: 10}},
	})
	pair = weir.Replicas(t, redistest.Start(t).URL())
	ask = func(i, units int) int {
		return pair[i].Call(t, "POST", "/v1/reservations", w.Key, fmt.Sprintf(`{"estimate": {"units": %d}}`, units)).Status
	}
	for i := range pair {
		if got := ask(i, 1); got != http.StatusCreated {
			t.Fatal(got)
		}
	}
	return w, pair, ask
}

func TestAProcessThatWasStoppedReliesOnNothingThatItRemembers(t *testing.T) {
	t.Parallel()
	w, pair, ask := stopped(t)
	other := pair[1].AddKey(t, w)
	begun := time.Now()
	pair[0].Signal(t, syscall.SIGSTOP)
	pair[1].Want(t, 200, "PATCH", "/api/v1/api-keys/"+other.Text("id"), w.ManagementKey, `{"name": "changed"}`)
	pair[1].Want(t, 200, "POST", "/api/v1/api-keys/"+w.KeyID+"/revoke", w.ManagementKey, nil)
	stack.Eventually(t, 10*time.Second, func() string {
		if time.Since(begun) < within {
			return "it may rely on what it remembers for a second"
		}
		return ""
	})
	pair[0].Signal(t, syscall.SIGCONT)
	if got := ask(0, 1); got != http.StatusUnauthorized {
		t.Fatalf("the first call after it was stopped: %d", got)
	}
}

// onTop is what comes on top of the second here: a process relies on what it
// remembers until the second is up, and only then reads, on a machine that has the
// other tests to run.
const onTop = 2 * time.Second

func TestAConnectionThatHangsKeepsNoChangeFromAnyProcess(t *testing.T) {
	t.Parallel()
	w, pair, ask := stopped(t)
	// The backends that tell of changes, while nothing runs in them.
	var pids []int32
	stack.Eventually(t, 20*time.Second, func() string {
		pids = stack.Rows[int32](t, pair[0], `select pid from pg_stat_activity where application_name = 'weir changes' and state = 'idle'`)
		if len(pids) < 2 {
			return fmt.Sprintf("%d connections follow changes", len(pids))
		}
		return ""
	})
	signal := func(sig syscall.Signal) {
		for _, pid := range pids {
			if err := syscall.Kill(int(pid), sig); err != nil && sig == syscall.SIGSTOP {
				t.Fatal(err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	pair[0].Want(t, 200, "PATCH", "/api/v1/api-keys/"+w.KeyID, w.ManagementKey, `{"limits": [{"dimension": "units", "window": "day", "amount": 100}]}`)
	for i := range pair {
		awaitFor(t, within+onTop, fmt.Sprintf("the new limit in process %d", i), func() bool { return ask(i, 20) == http.StatusCreated })
	}
	pair[0].Want(t, 200, "POST", "/api/v1/api-keys/"+w.KeyID+"/revoke", w.ManagementKey, nil)
	for i := range pair {
		awaitFor(t, within+onTop, "the revoked key", func() bool { return ask(i, 1) == http.StatusUnauthorized })
	}
}
