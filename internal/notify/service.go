package notify

import (
	"time"

	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// Service is where tenants say whom to tell, and see what was told. Sending is
// the Deliverer's. It is safe for concurrent use.
type Service struct {
	db      *postgres.DB // of the app role
	tenants *tenants.Service
	guard   *outbound.Guard
	now     func() time.Time
}

// New makes the service.
func New(db *postgres.DB, t *tenants.Service, guard *outbound.Guard, now func() time.Time) *Service {
	return &Service{db: db, tenants: t, guard: guard, now: now}
}

// instant is now, as the database keeps it.
func (s *Service) instant() time.Time { return s.now().UTC().Truncate(time.Microsecond) }
