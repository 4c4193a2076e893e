package gateway

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// headroom is what this process last saw of the limits of provider keys, from
// its own decisions. It is safe for concurrent use.
type headroom struct {
	mu   sync.Mutex
	seen map[healthID][]level
}

// level is one limit as it was last seen.
type level struct {
	share float64       // that was left
	at    time.Time     // then
	full  time.Duration // until all of it is back; calendar: nothing is back before
	steps bool          // calendar
}

func newHeadroom() *headroom { return &headroom{seen: map[healthID][]level{}} }

// note keeps what a decision saw of the candidate that it charged.
func (h *headroom) note(key uuid.UUID, model string, states []limits.State, now time.Time) {
	var list []level
	for i := range states {
		st := &states[i]
		if k := st.Limit.Scope.Kind; k != limits.ScopeProviderKey && k != limits.ScopePool {
			continue
		}
		if amount := max(st.Limit.Amount, st.Limit.Burst); amount > 0 {
			list = append(list, level{float64(st.Remaining) / float64(amount), now, st.Full, !st.WindowStart.IsZero()})
		}
	}
	if list == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.seen) >= mostNewer {
		clear(h.seen)
	}
	h.seen[healthID{key, model}] = list
}

// of is the share that is left of a key's tightest limit, as far as is known:
// what refills has refilled since.
func (h *headroom) of(key uuid.UUID, model string, now time.Time) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	least := 1.0
	for _, l := range h.seen[healthID{key, model}] {
		least = min(least, l.now(now))
	}
	return least
}

func (l level) now(at time.Time) float64 {
	passed := at.Sub(l.at)
	switch {
	case passed >= l.full:
		return 1
	case l.steps:
		return l.share
	}
	return l.share + (1-l.share)*float64(passed)/float64(l.full)
}
