// Package portal lets a customer's people in: by one-time links, into sessions of
// their own kind. A session is one customer's of one tenant, and opens nothing of
// the dashboard; a member's session opens nothing of the portal. Addresses of
// customers and of members have nothing to do with each other.
//
// A link is found by its hash before a tenant is known; everything after that is
// the tenant's, and is read as the tenant. Who is suspended may still come in and
// read. Who was removed or erased, and everybody of a tenant that is suspended,
// is out with the next request.
package portal

import (
	"log/slog"
	"strings"
	"time"

	"weir/internal/auth"
	"weir/internal/notify"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// Service makes links and sessions. It is safe for concurrent use.
type Service struct {
	db       *postgres.DB
	tenants  *tenants.Service
	teller   *notify.Service
	mailer   notify.Mailer // nil: this installation sends no mail
	url      string
	attempts *auth.Attempts
	log      *slog.Logger
	now      func() time.Time
}

// New makes the service. url is what links begin with.
func New(db *postgres.DB, t *tenants.Service, teller *notify.Service, mailer notify.Mailer, url string, log *slog.Logger, now func() time.Time) *Service {
	return &Service{
		db: db, tenants: t, teller: teller, mailer: mailer, url: strings.TrimRight(url, "/"),
		attempts: auth.NewAttempts("portal", now), log: log, now: now,
	}
}

// CanMail tells whether this installation sends mail.
func (s *Service) CanMail() bool { return s.mailer != nil }
