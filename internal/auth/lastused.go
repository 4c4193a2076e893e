package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/tenants"
)

// LastUsed remembers when keys were used and writes it down now and then, so
// that no call waits for it. It is safe for concurrent use.
type LastUsed struct {
	tenants *tenants.Service
	log     *slog.Logger
	now     func() time.Time
	mu      sync.Mutex
	by      map[uuid.UUID]map[uuid.UUID]time.Time // tenant → key → instant
}

// NewLastUsed makes one.
func NewLastUsed(t *tenants.Service, log *slog.Logger, now func() time.Time) *LastUsed {
	return &LastUsed{tenants: t, log: log, now: now, by: map[uuid.UUID]map[uuid.UUID]time.Time{}}
}

// Note remembers that a caller's key was used now.
func (l *LastUsed) Note(c Caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.by[c.Tenant.ID]
	if keys == nil {
		keys = map[uuid.UUID]time.Time{}
		l.by[c.Tenant.ID] = keys
	}
	keys[c.Key.ID] = l.now()
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
	l.mu.Lock()
	by := l.by
	l.by = map[uuid.UUID]map[uuid.UUID]time.Time{}
	l.mu.Unlock()
	for tenant, used := range by {
		if err := l.tenants.TouchAPIKeys(ctx, tenant, used); err != nil {
			l.log.WarnContext(ctx, "last use of keys not written", "error", err)
			return
		}
	}
}
