package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// How long a session lives.
const (
	SessionIdle     = 12 * time.Hour
	SessionAbsolute = 7 * 24 * time.Hour
)

// Person is who a session belongs to, in the tenant that it looks at. The role
// is read with every request, never kept in the cookie.
type Person struct {
	Session    uuid.UUID
	User       tenants.User
	Tenant     uuid.UUID
	TenantName string
	Role       string
}

// Sessions signs people in and out. It is safe for concurrent use.
type Sessions struct {
	db  *postgres.DB
	now func() time.Time
}

// NewSessions makes the service.
func NewSessions(db *postgres.DB, now func() time.Time) *Sessions {
	return &Sessions{db: db, now: now}
}

// Issued is a new session: the token for the cookie, and when it ends at the
// latest.
type Issued struct {
	Token     string
	ExpiresAt time.Time
}

// SignIn uses up a one-time link and opens a session. A link that was used, has
// expired or never existed is Unauthenticated token_invalid, all alike; of two
// at once one wins.
func (s *Sessions) SignIn(ctx context.Context, link, userAgent, ip string) (Issued, error) {
	now := s.now()
	var issued Issued
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		var user, tenant uuid.UUID
		err := tx.QueryRow(ctx, `
			update sign_in_links set used_at = $2
			where link_hash = $1 and used_at is null and expires_at > $2
			returning user_id, tenant_id`, tenants.HashSecret(link), now).Scan(&user, &tenant)
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.Unauthenticated, "token_invalid", "This sign-in link was used already, or has expired. Ask for a new one.")
		}
		if err != nil {
			return err
		}
		issued, err = s.openTx(ctx, tx, user, tenant, userAgent, ip)
		return err
	})
	return issued, err
}

// openTx opens a session in the caller's transaction.
func (s *Sessions) openTx(ctx context.Context, tx pgx.Tx, user, tenant uuid.UUID, userAgent, ip string) (Issued, error) {
	now := s.now()
	issued := Issued{Token: token(), ExpiresAt: now.Add(SessionAbsolute)}
	var addr *netip.Addr
	if a, err := netip.ParseAddr(ip); err == nil {
		addr = &a
	}
	_, err := tx.Exec(ctx, `
		insert into sessions (session_hash, session_id, user_id, tenant_id, created_at, seen_at, expires_at, user_agent, ip)
		values ($1, $2, $3, $4, $5, $5, $6, left($7, 500), $8)`,
		tenants.HashSecret(issued.Token), id.New(), user, tenant, now, issued.ExpiresAt, userAgent, addr)
	return issued, err
}

// token is 256 random bits as text.
func token() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Person is who holds a session token, and counts as a use of the session. An
// ended, idle or unknown session, and a person who is no member any more, are
// Unauthenticated session_ended.
func (s *Sessions) Person(ctx context.Context, sessionToken string) (Person, error) {
	return s.person(ctx, sessionToken, true)
}

// Glance is Person for what an open page asks by itself: it is no use of the
// session, so that a page that is left open keeps none from ending.
func (s *Sessions) Glance(ctx context.Context, sessionToken string) (Person, error) {
	return s.person(ctx, sessionToken, false)
}

func (s *Sessions) person(ctx context.Context, sessionToken string, used bool) (Person, error) {
	var p Person
	now := s.now()
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			with live as (
				select s.session_hash, s.session_id, s.user_id, s.tenant_id from sessions s
				where s.session_hash = $1 and s.ended_at is null and s.expires_at > $2 and s.seen_at > $3
			), seen as (
				update sessions s set seen_at = $2 from live
				where $4 and s.session_hash = live.session_hash and s.seen_at < $2 - interval '1 minute'
			)
			select l.session_id, l.tenant_id, u.user_id, u.email, u.name, m.role, m.tenant_name
			from live l
			join users u on u.user_id = l.user_id
			cross join lateral lookup_memberships(l.user_id) m
			where m.tenant_id = l.tenant_id`, tenants.HashSecret(sessionToken), now, now.Add(-SessionIdle), used).
			Scan(&p.Session, &p.Tenant, &p.User.ID, &p.User.Email, &p.User.Name, &p.Role, &p.TenantName)
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.Unauthenticated, "session_ended", "Your session has ended. Sign in again.")
		}
		return err
	})
	return p, err
}

// SignOut ends a session; ending it again changes nothing.
func (s *Sessions) SignOut(ctx context.Context, sessionToken string) error {
	return s.db.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update sessions set ended_at = $2
			where session_hash = $1 and ended_at is null`, tenants.HashSecret(sessionToken), s.now())
		return err
	})
}
