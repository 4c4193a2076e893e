package whole

import (
	"fmt"
	"testing"
	"time"

	"weir/test/stack"
)

func TestACallThatMayWaitIsAdmittedOnceItFits(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "units", Window: "minute", Amount: 600}}})
	begun := time.Now()
	weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 600}}`)
	weir.Want(t, 429, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 300}, "max_wait_ms": 9000}`)
	weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 5}, "max_wait_ms": 9000}`)
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Fatalf("five units of ten a second were there after %s", took)
	}
	weir.Want(t, 400, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 5}, "max_wait_ms": 60001}`)
}

// waiting sends a reservation and returns once it waits, behind 600 units of 600
// a minute.
func waiting(t *testing.T, s *stack.Stack, key, body string) <-chan stack.Answer {
	t.Helper()
	answer := make(chan stack.Answer, 1)
	go func() {
		a, err := s.Do(t.Context(), "POST", "/v1/reservations", key, body)
		if err != nil {
			t.Error(err)
		}
		answer <- a
	}()
	stack.Eventually(t, patience, func() string {
		a := s.Want(t, 429, "POST", "/v1/reservations", key, `{"estimate": {"units": 1}, "dry_run": true}`)
		if ms, _ := a.JSON("retry_after_ms").(float64); ms <= 1000 {
			return fmt.Sprintf("nobody waits: %v ms", ms)
		}
		return ""
	})
	return answer
}

func TestAKeyThatIsRevokedWhileItsCallWaitsReservesNothing(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "units", Window: "minute", Amount: 600}, {Dimension: "units", Window: "day", Amount: 6000}}})
	weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 600}}`)
	lost := weir.AddKey(t, w)
	answer := waiting(t, weir, lost.Text("secret"), `{"estimate": {"units": 30}, "max_wait_ms": 9000}`)
	weir.Want(t, 200, "POST", "/api/v1/api-keys/"+lost.Text("id")+"/revoke", w.ManagementKey, nil)
	if a := <-answer; a.Status != 401 {
		t.Errorf("got %s", a)
	}
	if a := weir.Want(t, 200, "GET", "/v1/limits", w.Key, nil); a.JSON("data.1.used") != 600.0 {
		t.Errorf("what was reserved for it stays: %s", a)
	}
}

func TestALimitThatIsLoweredWhileACallWaitsHoldsForIt(t *testing.T) {
	t.Parallel()
	w := weir.Setup(t, stack.Options{KeyLimit: []stack.Limit{{Dimension: "units", Window: "minute", Amount: 600}}})
	weir.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 600}}`)
	answer := waiting(t, weir, w.Key, `{"estimate": {"units": 30}, "max_wait_ms": 9000}`)
	weir.Want(t, 200, "PATCH", "/api/v1/api-keys/"+w.KeyID, w.ManagementKey, `{"limits": [{"dimension": "units", "window": "minute", "amount": 0}]}`)
	if a := <-answer; a.Status != 413 || a.JSON("violations.0.limit") != 0.0 {
		t.Errorf("nothing is allowed any more: %s", a)
	}
}

func TestAProcessThatStopsAnswersTheCallsThatWaitInIt(t *testing.T) {
	t.Parallel()
	fresh := stack.Fresh(t)
	w := fresh.Setup(t, stack.Options{Plan: []stack.Limit{{Dimension: "units", Window: "minute", Amount: 600}}})
	process := fresh.Replica(t)
	process.Want(t, 201, "POST", "/v1/reservations", w.Key, `{"estimate": {"units": 600}}`)
	answer := waiting(t, process, w.Key, `{"estimate": {"units": 300}, "max_wait_ms": 60000}`)
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a.Status != 503 || a.Text("code") != "server_stopping" || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %s", a)
	}
}
