package web

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/usage"
)

// maxViewers is how many pages of one tenant may be told at once.
const maxViewers = 200

// watches tell the open pages of a tenant when its books moved. While a tenant
// has viewers, one goroutine looks, once in a while, however many they are. It
// ends with the last of them, or with stop. Safe for concurrent use.
type watches struct {
	pulse func(context.Context, uuid.UUID) (usage.Pulse, error)
	every time.Duration

	mu      sync.Mutex
	by      map[uuid.UUID]*watch
	stopped bool
}

// watch is one tenant that is looked at.
type watch struct {
	viewers map[chan struct{}]struct{}
	end     context.CancelFunc
}

func newWatches(pulse func(context.Context, uuid.UUID) (usage.Pulse, error), every time.Duration) *watches {
	return &watches{pulse: pulse, every: every, by: map[uuid.UUID]*watch{}}
}

// join makes a viewer of a tenant. The channel gets a word when the books moved,
// one word for all that moved since the last, and is closed by stop. leave must
// be called once. Unavailable says that there are too many viewers, or that no
// more are taken.
func (w *watches) join(tenant uuid.UUID) (moved <-chan struct{}, leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.by[tenant]
	if w.stopped || t != nil && len(t.viewers) >= maxViewers {
		return nil, nil, fault.New(fault.Unavailable, "too_many_viewers", "Too many pages are open at once. This one still shows what is there when it is loaded again.")
	}
	if t == nil {
		ctx, end := context.WithCancel(context.Background())
		t = &watch{viewers: map[chan struct{}]struct{}{}, end: end}
		w.by[tenant] = t
		go w.look(ctx, tenant, t)
	}
	viewer := make(chan struct{}, 1)
	t.viewers[viewer] = struct{}{}
	return viewer, func() { w.leave(tenant, t, viewer) }, nil
}

func (w *watches) leave(tenant uuid.UUID, t *watch, viewer chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(t.viewers, viewer)
	if len(t.viewers) == 0 {
		t.end()
		if w.by[tenant] == t {
			delete(w.by, tenant)
		}
	}
}

// look compares one pulse with the one before. Books that cannot be read are
// looked at again.
func (w *watches) look(ctx context.Context, tenant uuid.UUID, t *watch) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	var last usage.Pulse
	known := false
	for {
		within, cancel := context.WithTimeout(ctx, reportWithin)
		now, err := w.pulse(within, tenant)
		cancel()
		if err == nil {
			if known && now != last {
				w.tell(t)
			}
			last, known = now, true
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *watches) tell(t *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for viewer := range t.viewers {
		select {
		case viewer <- struct{}{}:
		default: // it has a word waiting
		}
	}
}

// stop ends every watch and closes every viewer's channel; none is taken after.
func (w *watches) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for tenant, t := range w.by {
		t.end()
		for viewer := range t.viewers {
			close(viewer)
		}
		clear(t.viewers)
		delete(w.by, tenant)
	}
}
