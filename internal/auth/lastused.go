package auth

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/tenants"
)

// LastUsed remembers when keys were used and writes it down now and then, so
// that no call waits for it: of a key at most once a minute, of a tenant's keys
// in one statement. It is safe for concurrent use.
type LastUsed struct {
	tenants *tenants.Service
	log     *slog.Logger
	now     func() time.Time
	mu      sync.Mutex
	noted   map[uuid.UUID]time.Time               // key → what is written of it, or will be
	by      map[uuid.UUID]map[uuid.UUID]time.Time // tenant → key → instant to write
	swept   time.Time
}

// NewLastUsed makes one.
func NewLastUsed(t *tenants.Service, log *slog.Logger, now func() time.Time) *LastUsed {
	return &LastUsed{tenants: t, log: log, now: now, noted: map[uuid.UUID]time.Time{}, by: map[uuid.UUID]map[uuid.UUID]time.Time{}, swept: now()}
}

// usedEvery is how late a use may show.
const usedEvery = time.Minute

// Note remembers that a caller's key was used now.
func (l *LastUsed) Note(c Caller) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.noted[c.Key.ID]; known && now.Sub(at) < usedEvery {
		return
	}
	l.noted[c.Key.ID] = now
	keys := l.by[c.Tenant.ID]
	if keys == nil {
		keys = map[uuid.UUID]time.Time{}
		l.by[c.Tenant.ID] = keys
	}
	keys[c.Key.ID] = now
}

// Run writes every few seconds until ctx ends, and once more then.
func (l *LastUsed) Run(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			l.flush(last)
			return nil
		case <-tick.C:
			l.flush(ctx)
		}
	}
}

// flush writes what is noted. What cannot be written now is let go: the next
// use notes it again.
func (l *LastUsed) flush(ctx context.Context) {
	for tenant, used := range l.take() {
		if err := l.tenants.TouchAPIKeys(ctx, tenant, used); err != nil {
			l.log.WarnContext(ctx, "last use of keys not written", "error", err)
			l.forget(used)
		}
	}
}

// take is what has to be written. What was noted long ago is forgotten.
func (l *LastUsed) take() map[uuid.UUID]map[uuid.UUID]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	by := l.by
	l.by = map[uuid.UUID]map[uuid.UUID]time.Time{}
	if now := l.now(); now.Sub(l.swept) >= usedEvery {
		l.swept = now
		maps.DeleteFunc(l.noted, func(_ uuid.UUID, at time.Time) bool { return now.Sub(at) >= usedEvery })
	}
	return by
}

func (l *LastUsed) forget(used map[uuid.UUID]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range used {
		delete(l.noted, key)
	}
}
