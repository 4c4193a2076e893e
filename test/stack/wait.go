package stack

import (
	"testing"
	"time"
)

// Eventually asks again and again until missing says "", for at most so long;
// after that what it said last is the test's failure.
func Eventually(t testing.TB, atMost time.Duration, missing func() string) {
	t.Helper()
	deadline := time.NewTimer(atMost)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		last := missing()
		if last == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %s still: %s", atMost, last)
		case <-tick.C:
		}
	}
}
