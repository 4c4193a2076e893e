package replicas

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"weir/internal/limits/redistest"
	"weir/test/stack"
)

func TestWhileRedisIsStoppedCallsAreDecidedAndLimitsAreTold(t *testing.T) {
	t.Parallel()
	weir := stack.Fresh(t)
	w := weir.Setup(t, stack.Options{Zone: stack.MiddayZone(), Plan: []stack.Limit{{Dimension: "units", Window: "day", Amount: 100}}})
	server := redistest.Start(t)
	pair := weir.Replicas(t, server.URL(), "REDIS_BUDGET=100ms")
	reserve := func(i int) int {
		return pair[i].Call(t, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 10}}`).Status
	}
	limits := func(i int) stack.Answer { return pair[i].Want(t, 200, "GET", "/v1/limits", w.Key, nil) }
	for i := range pair {
		if got := reserve(i); got != http.StatusCreated {
			t.Fatal(got)
		}
	}
	if a := limits(0); a.JSON("degraded") != nil || a.JSON("data.0.remaining") != 80.0 {
		t.Fatal(a)
	}
	server.Signal(syscall.SIGSTOP)
	for i := range pair {
		if a := limits(i); a.JSON("degraded") != true || a.JSON("data.0.limit") != 100.0 {
			t.Fatal(a)
		}
	}
	admitted := 2
	for n := range 20 {
		switch got := reserve(n % 2); got {
		case http.StatusCreated:
			admitted++
		case http.StatusTooManyRequests:
		default:
			t.Fatal(got)
		}
	}
	if admitted < 6 || admitted > 10 { // 6: where the third process, that of the stack, is known by now and has its share
		t.Fatalf("%d admitted of 10", admitted)
	}
	server.Signal(syscall.SIGCONT)
	stack.Eventually(t, 20*time.Second, func() string {
		for i := range pair {
			if a := limits(i); a.JSON("degraded") != nil {
				return a.String()
			}
			if a := pair[i].Call(t, "GET", "/readyz", "", nil); a.Text("degraded.0") != "" {
				return a.String()
			}
		}
		return ""
	})
	for n := range 20 {
		if reserve(n%2) == http.StatusCreated {
			admitted++
		}
	}
	if admitted > 10 {
		t.Fatalf("%d admitted of 10", admitted)
	}
}
