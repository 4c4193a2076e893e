package whole

import (
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
