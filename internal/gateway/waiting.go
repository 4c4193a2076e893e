package gateway

import (
	"sync"

	"github.com/google/uuid"
)

// What the bodies of calls that may wait take of this process's memory, and of it
// those of one tenant: a call whose body has no room is decided at once.
const (
	mostWaiting       = 256 << 20
	mostTenantWaiting = mostWaiting / 4
)

// waiting is the memory of bodies of calls that may wait. It is safe for
// concurrent use.
type waiting struct {
	mu  sync.Mutex
	all int64
	by  map[uuid.UUID]int64
}

func newWaiting() *waiting { return &waiting{by: map[uuid.UUID]int64{}} }

// enter takes room for a body of so many bytes, where there is any; leave gives it
// back.
func (w *waiting) enter(tenant uuid.UUID, bytes int64) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all+bytes > mostWaiting || w.by[tenant]+bytes > mostTenantWaiting {
		return nil, false
	}
	w.add(tenant, bytes)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.add(tenant, -bytes)
	}, true
}

func (w *waiting) add(tenant uuid.UUID, bytes int64) {
	w.all += bytes
	if w.by[tenant] += bytes; w.by[tenant] == 0 {
		delete(w.by, tenant)
	}
}
