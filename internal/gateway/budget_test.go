package gateway

import (
	"testing"
	"time"

	"weir/internal/id"
)

// TestOneCustomersFailuresUseUpNobodyElsesRetries, and all together are tried
// again no more than one call in ten, but for a small reserve.
func TestOneCustomersFailuresUseUpNobodyElsesRetries(t *testing.T) {
	b, now := newBudgets(), time.Now()
	tenant, noisy, calm := id.New(), id.New(), id.New()
	for range 100 {
		b.called(calm)
	}
	retried := 0
	for range 1000 {
		b.called(noisy)
		if b.spend(tenant, noisy, now) {
			retried++
		}
	}
	if retried < 100 || retried > 100+retryReserve/2 {
		t.Errorf("of 1000 calls that failed %d were tried again", retried)
	}
	for i := range int(retrySaved) {
		if !b.spend(tenant, calm, now) {
			t.Fatalf("after another customer's failures one that saved %v retries has %d", retrySaved, i)
		}
	}
	if b.spend(tenant, calm, now) || !b.spend(tenant, calm, now.Add(retryEvery)) {
		t.Error("there is not one retry more every ten seconds")
	}
}

// TestAModelThatFailedIsKnownHoweverManyDidBefore: what failed once and is never
// called again keeps nothing from being noted.
func TestAModelThatFailedIsKnownHoweverManyDidBefore(t *testing.T) {
	h := newHealth()
	for range mostNewer + 10 {
		h.fails(id.New(), "gone", true)
	}
	tenant := id.New()
	h.fails(tenant, "m", true)
	if !h.fails(tenant, "m", false) || len(h.failing) > mostNewer {
		t.Errorf("a failure is forgotten beside %d others", len(h.failing))
	}
}
