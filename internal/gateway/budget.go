package gateway

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// The retry budget: of ten calls of a customer one may be tried again after a
// provider failed, and nobody else's failures use that up. What is saved is
// bounded, so that an outage is not answered with a burst. What a customer has not
// saved comes out of a reserve of its tenant, of which there is one retry more
// every ten seconds for whoever calls rarely.
const (
	retryShare   = 0.1
	retrySaved   = 2.0
	retryReserve = 10.0
	retryEvery   = 10 * time.Second
)

// budgets are the retry budgets of customers and tenants in this process. They are
// safe for concurrent use.
type budgets struct {
	mu       sync.Mutex
	saved    map[uuid.UUID]float64 // of customers
	reserves map[uuid.UUID]*reserve
}

type reserve struct {
	left float64
	at   time.Time
}

func newBudgets() *budgets {
	return &budgets{saved: map[uuid.UUID]float64{}, reserves: map[uuid.UUID]*reserve{}}
}

// called notes a call, which earns its customer a part of a retry.
func (b *budgets) called(customer uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.saved[customer]; !known {
		evict(b.saved)
	}
	b.saved[customer] = min(b.saved[customer]+retryShare, retrySaved)
}

// spend takes a retry, where there is one.
func (b *budgets) spend(tenant, customer uuid.UUID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saved[customer] >= 1 {
		b.saved[customer]--
		return true
	}
	r := b.reserve(tenant, now)
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}

func (b *budgets) reserve(tenant uuid.UUID, now time.Time) *reserve {
	r := b.reserves[tenant]
	if r == nil {
		evict(b.reserves)
		r = &reserve{left: retryReserve / 2, at: now}
		b.reserves[tenant] = r
	}
	if passed := now.Sub(r.at); passed > 0 {
		r.left, r.at = min(r.left+float64(passed)/float64(retryEvery), retryReserve), now
	}
	return r
}

// evict makes room for one more entry of a map that holds at most mostNewer.
func evict[K comparable, V any](m map[K]V) {
	for drop := range m {
		if len(m) < mostNewer {
			return
		}
		delete(m, drop)
	}
}
