package gateway

import (
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
)

// outliers are providers that fail much of what they are asked for, as this
// process sees it: others are tried first while there are any. It is safe for
// concurrent use.
type outliers struct {
	mu   sync.Mutex
	seen map[served]*tally
}

// served is a model at an address, as one tenant's calls find it.
type served struct {
	tenant         uuid.UUID
	baseURL, model string
}

// at is where a candidate's calls are counted.
func (c candidate) at() served { return served{c.Endpoint.Tenant, c.Endpoint.BaseURL, c.model} }

// tally counts calls, of which older ones count less and less.
type tally struct {
	ok, failed float64
	at         time.Time
}

const (
	outlierHalf  = 30 * time.Second // after which a call counts half
	outlierCalls = 5                // that are too few to say anything
	outlierShare = 0.5              // of failures
)

func newOutliers() *outliers { return &outliers{seen: map[served]*tally{}} }

func (o *outliers) note(at served, failed bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.seen[at]
	if t == nil {
		if !failed {
			return // what never failed is no outlier
		}
		if len(o.seen) >= mostNewer {
			clear(o.seen)
		}
		t = &tally{at: now}
		o.seen[at] = t
	}
	t.fade(now)
	if failed {
		t.failed++
	} else {
		t.ok++
	}
}

func (t *tally) fade(now time.Time) {
	if passed := now.Sub(t.at); passed > 0 {
		f := math.Exp2(-float64(passed) / float64(outlierHalf))
		t.ok, t.failed, t.at = t.ok*f, t.failed*f, now
	}
}

func (o *outliers) is(at served, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.seen[at]
	if t == nil {
		return false
	}
	t.fade(now)
	return t.failed >= outlierCalls && t.failed > outlierShare*(t.ok+t.failed)
}
