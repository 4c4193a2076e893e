package gateway

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// The retry budget of a tenant: of ten calls one may be tried again after a
// provider failed. What is saved is bounded, so that an outage is not answered
// with a burst; one retry every ten seconds is there for whoever calls rarely.
const (
	retryShare = 0.1
	retrySaved = 10.0
	retryEvery = 10 * time.Second
)

// budgets are the retry budgets of tenants in this process. They are safe for
// concurrent use.
type budgets struct {
	mu sync.Mutex
	by map[uuid.UUID]*savings
}

type savings struct {
	left float64
	at   time.Time
}

func newBudgets() *budgets { return &budgets{by: map[uuid.UUID]*savings{}} }

// called notes a call, which earns its tenant a part of a retry.
func (b *budgets) called(tenant uuid.UUID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of(tenant, now)
	s.left = min(s.left+retryShare, retrySaved)
}

// spend takes a retry, where there is one.
func (b *budgets) spend(tenant uuid.UUID, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of(tenant, now)
	if s.left < 1 {
		return false
	}
	s.left--
	return true
}

func (b *budgets) of(tenant uuid.UUID, now time.Time) *savings {
	s := b.by[tenant]
	if s == nil {
		if len(b.by) >= mostNewer {
			clear(b.by)
		}
		s = &savings{left: retrySaved / 2, at: now}
		b.by[tenant] = s
	}
	if passed := now.Sub(s.at); passed > 0 {
		s.left, s.at = min(s.left+float64(passed)/float64(retryEvery), retrySaved), now
	}
	return s
}
