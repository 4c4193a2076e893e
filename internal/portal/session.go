package portal

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// How long a session lives.
const (
	SessionIdle     = 12 * time.Hour
	SessionAbsolute = 7 * 24 * time.Hour
)

// Visitor is who a session of the portal belongs to: a customer, and which of its
// addresses came in.
type Visitor struct {
	Session   uuid.UUID
	Tenant    uuid.UUID
	Customer  uuid.UUID
	Email     string // "" where the tenant handed the link out
	Name      string // of the customer
	Suspended bool   // may read, and change nothing
}

// Issued is a new session: the token for the cookie, and when it ends at the
// latest.
type Issued struct {
	Token     string
	ExpiresAt time.Time
}

func badLink() error {
	return fault.New(fault.Unauthenticated, "token_invalid", "This sign-in link was used already, or has expired. Ask for a new one.")
}

func ended() error {
	return fault.New(fault.Unauthenticated, "session_ended", "Your session has ended. Ask for a new sign-in link.")
}

// SignIn uses up a link and opens a session. A link that was used, has expired or
// never existed, and one of a customer that is gone or of a tenant that is
// suspended, is Unauthenticated token_invalid, all alike; of several at once one
// wins.
func (s *Service) SignIn(ctx context.Context, link, userAgent, ip string) (Issued, error) {
	hash := tenants.HashSecret(link)
	tenant, err := s.tenantOf(ctx, `select tenant_id from lookup_portal_link($1)`, hash)
	if err != nil {
		return Issued{}, err
	}
	if tenant == uuid.Nil {
		return Issued{}, badLink()
	}
	var issued Issued
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		var customer uuid.UUID
		var email string
		err := tx.QueryRow(ctx, `
			update portal_links l set used_at = $3
			from customers c join tenants t on t.tenant_id = c.tenant_id
			where l.tenant_id = $1 and l.link_hash = $2 and l.used_at is null and l.expires_at > $3
			  and c.tenant_id = l.tenant_id and c.customer_id = l.customer_id and c.removed_at is null and t.suspended_at is null
			returning l.customer_id, l.email`, tenant, hash, s.now()).Scan(&customer, &email)
		if errors.Is(err, pgx.ErrNoRows) {
			return badLink()
		}
		if err != nil {
			return err
		}
		issued, err = s.open(ctx, tx, tenant, customer, email, userAgent, ip)
		return err
	})
	return issued, err
}

func (s *Service) open(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID, email, userAgent, ip string) (Issued, error) {
	now, session := s.now(), id.New()
	issued := Issued{Token: newToken(), ExpiresAt: now.Add(SessionAbsolute)}
	var addr *netip.Addr
	if a, err := netip.ParseAddr(ip); err == nil {
		addr = &a
	}
	if _, err := tx.Exec(ctx, `
		delete from portal_sessions
		where tenant_id = $1 and customer_id = $2 and expires_at < $3`, tenant, customer, now.Add(-keptFor)); err != nil {
		return issued, err
	}
	_, err := tx.Exec(ctx, `
		insert into portal_sessions (tenant_id, session_hash, session_id, customer_id, email, created_at, seen_at, expires_at, user_agent, ip)
		values ($1, $2, $3, $4, $5, $6, $6, $7, left($8, 500), $9)`,
		tenant, tenants.HashSecret(issued.Token), session, customer, email, now, issued.ExpiresAt, userAgent, addr)
	if err != nil {
		return issued, err
	}
	by := tenants.Actor{Kind: "customer", ID: customer, Credential: "portal link", IP: ip}
	return issued, tenants.Audit(tenants.WithActor(ctx, by), tx, tenant, "portal.signed_in", id.Customer.Format(customer), map[string]string{})
}

// Visitor is who holds a session token; used counts it as a use of the session. A
// session that has ended, was idle or is unknown, and one of a customer that is
// gone or of a tenant that is suspended, are Unauthenticated session_ended.
func (s *Service) Visitor(ctx context.Context, token string, used bool) (Visitor, error) {
	hash := tenants.HashSecret(token)
	tenant, err := s.tenantOf(ctx, `select tenant_id from lookup_portal_session($1)`, hash)
	if err != nil {
		return Visitor{}, err
	}
	if tenant == uuid.Nil {
		return Visitor{}, ended()
	}
	v, now := Visitor{Tenant: tenant}, s.now()
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			with seen as (
				update portal_sessions set seen_at = $3
				where $5 and tenant_id = $1 and session_hash = $2 and ended_at is null and expires_at > $3 and seen_at > $4 and seen_at < $3 - interval '1 minute'
			)
			select s.session_id, s.customer_id, s.email, c.name, c.suspended_at is not null
			from portal_sessions s
			join customers c on c.tenant_id = s.tenant_id and c.customer_id = s.customer_id
			join tenants t on t.tenant_id = s.tenant_id
			where s.tenant_id = $1 and s.session_hash = $2 and s.ended_at is null and s.expires_at > $3 and s.seen_at > $4
			  and c.removed_at is null and t.suspended_at is null`, tenant, hash, now, now.Add(-SessionIdle), used).
			Scan(&v.Session, &v.Customer, &v.Email, &v.Name, &v.Suspended)
		if errors.Is(err, pgx.ErrNoRows) {
			return ended()
		}
		return err
	})
	return v, err
}

// SignOut ends a session; ending it again, or one that is unknown, changes
// nothing.
func (s *Service) SignOut(ctx context.Context, token string) error {
	hash := tenants.HashSecret(token)
	tenant, err := s.tenantOf(ctx, `select tenant_id from lookup_portal_session($1)`, hash)
	if err != nil || tenant == uuid.Nil {
		return err
	}
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update portal_sessions set ended_at = $3
			where tenant_id = $1 and session_hash = $2 and ended_at is null`, tenant, hash, s.now())
		return err
	})
}

// EndSessions ends every session of a customer, and its links that wait; it
// returns how many sessions worked until now. Where there is none of either it
// changes nothing.
func (s *Service) EndSessions(ctx context.Context, tenant, customer uuid.UUID) (ended int64, err error) {
	now := s.now()
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		x, err := tenants.ReadCustomer(ctx, tx, tenant, customer)
		if err != nil {
			return err
		}
		links, err := tx.Exec(ctx, `
			update portal_links set used_at = $3
			where tenant_id = $1 and customer_id = $2 and used_at is null and expires_at > $3`, tenant, customer, now)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update portal_sessions set ended_at = $3
			where tenant_id = $1 and customer_id = $2 and ended_at is null and expires_at > $3 and seen_at > $4`, tenant, customer, now, now.Add(-SessionIdle))
		if err != nil {
			return err
		}
		if ended = tag.RowsAffected(); ended+links.RowsAffected() == 0 {
			return nil
		}
		return tenants.Audit(ctx, tx, tenant, "portal.sessions_ended", id.Customer.Format(customer), map[string]string{"name": x.Name})
	})
	return ended, err
}

// tenantOf is whose a link or session is by its hash; zero: nobody's.
func (s *Service) tenantOf(ctx context.Context, sql string, hash []byte) (tenant uuid.UUID, err error) {
	err = s.db.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, sql, hash).Scan(&tenant)
		if errors.Is(err, pgx.ErrNoRows) {
			tenant = uuid.Nil
			return nil
		}
		return err
	})
	return tenant, err
}
