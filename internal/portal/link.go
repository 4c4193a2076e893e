package portal

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/branding"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

// Why is what a link is sent for.
type Why string

// The reasons of links.
const (
	Asked    Why = "asked"    // the customer asked for it
	Sent     Why = "sent"     // the tenant sent it, or handed it out
	Accepted Why = "accepted" // the customer has accepted a quote
)

// How long a link works.
const (
	LinkLifetime     = 30 * time.Minute
	AcceptedLifetime = 7 * 24 * time.Hour // of the one in an accepted quote's mail
)

// Lifetime is how long a link of this reason works.
func (w Why) Lifetime() time.Duration {
	if w == Accepted {
		return AcceptedLifetime
	}
	return LinkLifetime
}

// Link is a way into a portal, once.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// MakeLink makes a link that the tenant hands out by itself. Whoever has it
// becomes the customer.
func (s *Service) MakeLink(ctx context.Context, tenant, customer uuid.UUID) (Link, error) {
	var link Link
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		x, err := held(ctx, tx, tenant, customer)
		if err != nil {
			return err
		}
		if link, err = s.insertLink(ctx, tx, tenant, customer, "", Sent); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "portal.link_made", id.Customer.Format(customer), map[string]string{"name": x.Name})
	})
	return link, err
}

// SendLink mails a link to the customer's address. A customer without one, and an
// installation without mail, are Refused.
func (s *Service) SendLink(ctx context.Context, tenant, customer uuid.UUID) (to string, err error) {
	if s.mailer == nil {
		return "", fault.New(fault.Refused, "no_mail", "This installation sends no mail. Make the link and hand it over yourself.")
	}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		x, err := held(ctx, tx, tenant, customer)
		if err != nil {
			return err
		}
		if to = x.Email; to == "" {
			return fault.New(fault.Refused, "customer_without_email", "This customer has no e-mail address. Give it one first, or make the link and hand it over yourself.")
		}
		if err := s.OweLink(ctx, tx, tenant, customer, to, Sent); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "portal.link_sent", id.Customer.Format(customer), map[string]string{"name": x.Name})
	})
	return to, err
}

// OweLink owes the mail with a new link in the caller's transaction: with it the
// mail is sent, or nothing happened.
func (s *Service) OweLink(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID, email string, why Why) error {
	x, err := held(ctx, tx, tenant, customer)
	if err != nil {
		return err
	}
	brand, err := branding.Read(ctx, tx, tenant)
	if err != nil {
		return err
	}
	link, err := s.insertLink(ctx, tx, tenant, customer, email, why)
	if err != nil {
		return err
	}
	m := brand.Letter(linkMail(brand.Name(), x.Name, s.url, why))
	m.To, m.Link = email, link.URL
	return s.teller.OweMail(ctx, tx, tenant, m)
}

// held reads a customer that is not erased while its link is made.
func held(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) (tenants.Customer, error) {
	if err := tenants.HoldCustomer(ctx, tx, tenant, customer); err != nil {
		return tenants.Customer{}, err
	}
	return tenants.ReadCustomer(ctx, tx, tenant, customer)
}

// insertLink writes a link down, and forgets the customer's that are long over.
func (s *Service) insertLink(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID, email string, why Why) (Link, error) {
	now, token := s.now(), newToken()
	link := Link{URL: s.url + "/portal/in/" + token, ExpiresAt: now.Add(why.Lifetime()).UTC().Truncate(time.Microsecond)}
	if _, err := tx.Exec(ctx, `
		delete from portal_links
		where tenant_id = $1 and link_hash in (
		    select link_hash from portal_links
		    where tenant_id = $1 and customer_id = $2 and expires_at < $3 for update skip locked)`, tenant, customer, now.Add(-keptFor)); err != nil {
		return link, err
	}
	_, err := tx.Exec(ctx, `
		insert into portal_links (tenant_id, link_hash, customer_id, email, why, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7)`, tenant, tenants.HashSecret(token), customer, email, string(why), now, link.ExpiresAt)
	return link, err
}

// keptFor is how long links and sessions that are over are kept.
const keptFor = 30 * 24 * time.Hour

// newToken is 256 random bits as text.
func newToken() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Forget deletes what is kept of a customer's people, and ends their sessions, in
// the transaction that erases the customer.
func Forget(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error {
	if _, err := tx.Exec(ctx, `delete from portal_links where tenant_id = $1 and customer_id = $2`, tenant, customer); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `delete from portal_sessions where tenant_id = $1 and customer_id = $2`, tenant, customer)
	return err
}
