// Package replicas tests two API processes that share their limits.
package replicas

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/limits/redistest"
	"weir/test/stack"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stack.RemoveBin()
	os.Exit(code)
}

// exactly lets 200 callers of two processes ask at once for room for ten, each
// round on a ledger of its own.
func exactly(t *testing.T, rounds int) {
	weir := stack.Fresh(t)
	w := weir.Setup(t, stack.Options{
		Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "requests", Window: "day", Amount: 10, EachModel: true}},
	})
	pair := weir.Replicas(t, redistest.Start(t).URL())
	for round := range rounds {
		var admitted atomic.Int32
		var callers sync.WaitGroup
		start := make(chan struct{})
		for i := range 200 {
			callers.Go(func() {
				<-start
				a, err := pair[i%2].Do(context.Background(), "POST", "/v1/reservations", w.Key, fmt.Sprintf(`{"model": "m%d", "estimate": {"input_tokens": 1}}`, round))
				switch {
				case err != nil || a.Status != http.StatusCreated && a.Status != http.StatusTooManyRequests:
					t.Errorf("round %d: %v, %s", round, err, a)
				case a.Status == http.StatusCreated:
					admitted.Add(1)
				}
			})
		}
		close(start)
		callers.Wait()
		if n := admitted.Load(); n != 10 || t.Failed() {
			t.Fatalf("round %d: %d admitted of room for 10", round, n)
		}
	}
}

func TestTwoProcessesAdmitExactlyWhatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	exactly(t, 30)
}

// within is how soon what one process is told counts in the other.
const within = time.Second

// await counts the time in which the processes answer as they do: where a question
// takes longer than a moment, the machine is busy with something else, and that
// time is none of theirs.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(within)
	stack.Eventually(t, 10*within, func() string {
		asked := time.Now()
		if holds() {
			return ""
		}
		if took := time.Since(asked); took > 20*time.Millisecond {
			end = end.Add(2 * took)
		}
		if time.Now().After(end) {
			t.Fatalf("after %v still: %s", within, what)
		}
		return what
	})
}

func awaitFor(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	stack.Eventually(t, patience, func() string {
		if holds() {
			return ""
		}
		return what
	})
}

func TestWhatChangesInOneProcessCountsInTheOtherWithinASecond(t *testing.T) {
	t.Parallel()
	weir := stack.Fresh(t)
	w := weir.Setup(t, stack.Options{
		Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 100}}, KeyLimit: []stack.Limit{{Dimension: "units", Window: "day", Amount: 10}},
	})
	pair := weir.Replicas(t, redistest.Start(t).URL())
	ask := func(i, units int) int {
		return pair[i].Call(t, "POST", "/v1/reservations", w.Key, fmt.Sprintf(`{"estimate": {"units": %d}}`, units)).Status
	}
	for i := range pair {
		if got := ask(i, 5); got != http.StatusCreated {
			t.Fatalf("process %d answers %d", i, got)
		}
		if got := ask(i, 11); got == http.StatusCreated {
			t.Fatal("more than there is")
		}
	}
	pair[0].Want(t, 200, "PATCH", "/api/v1/api-keys/"+w.KeyID, w.ManagementKey, `{"limits": [{"dimension": "units", "window": "day", "amount": 30}]}`)
	for i := range pair {
		await(t, fmt.Sprintf("the new limit in process %d", i), func() bool { return ask(i, 6) == http.StatusCreated })
	}
	pair[0].Want(t, 200, "POST", "/api/v1/api-keys/"+w.KeyID+"/revoke", w.ManagementKey, nil)
	await(t, "the revoked key", func() bool { return ask(1, 0) == http.StatusUnauthorized })
}

func TestProcessesWithoutRedisNoticeEachOther(t *testing.T) {
	t.Parallel()
	weir := stack.Fresh(t)
	other := weir.Replica(t)
	stack.Eventually(t, 30*time.Second, func() string {
		a := other.Call(t, "GET", "/readyz", "", nil)
		if b := weir.Call(t, "GET", "/readyz", "", nil); a.Status == 200 && string(a.Body) == string(b.Body) && len(a.Body) > 20 {
			return ""
		}
		return "two processes on memory say " + a.String()
	})
}
