package quotes

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
	"weir/internal/portal"
	"weir/internal/tenants"
)

// tokenLength is that of 256 bits in base64url.
const tokenLength = 43

// Public is a quote as whoever has its link sees it.
type Public struct {
	Quote
	Tenant tenants.Tenant
}

// Open reads the quote behind a link. With seen it is noted that somebody looked.
// A link that leads nowhere is NotFound, as is a quote that was never sent.
func (s *Service) Open(ctx context.Context, token string, seen bool) (Public, error) {
	var p Public
	err := s.behind(ctx, token, func(tx pgx.Tx, tenant, quote uuid.UUID) (err error) {
		if p.Tenant, err = tenants.ReadTenant(ctx, tx, tenant, s.now()); err != nil {
			return err
		}
		if p.Quote, err = s.read(ctx, tx, tenant, quote, 0); err != nil || !seen || !p.Status.Open() {
			return err
		}
		if p.Quote, err = s.lock(ctx, tx, tenant, quote); err != nil || !p.Status.Open() {
			return err
		}
		return s.note(ctx, tx, tenant, &p.Quote)
	})
	return p, err
}

// note counts a look at an open quote.
func (s *Service) note(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q *Quote) error {
	if _, err := tx.Exec(ctx, `
		update quote_versions set views = views + 1, viewed_at = coalesce(viewed_at, $4)
		where tenant_id = $1 and quote_id = $2 and version = $3`, tenant, q.ID, q.Version.Number, s.stamp()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		update quotes set status = 'viewed' where tenant_id = $1 and quote_id = $2`, tenant, q.ID)
	q.Status = Viewed
	return err
}

// behind runs f in the tenant's transaction of the quote that a link leads to.
func (s *Service) behind(ctx context.Context, token string, f func(tx pgx.Tx, tenant, quote uuid.UUID) error) error {
	if len(token) != tokenLength {
		return tenants.NotFound("quote")
	}
	var tenant, quote uuid.UUID
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select tenant_id, quote_id from lookup_quote($1)`, tenants.HashSecret(token)).Scan(&tenant, &quote)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenants.NotFound("quote")
	}
	if err != nil {
		return err
	}
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error { return f(tx, tenant, quote) })
}

// Acceptance is who accepts, and which version they read.
type Acceptance struct {
	Version int // 0: the one that is out
	Name    string
	Email   string
}

// Taken is what accepting gave. Secret is that of the first API key, in the
// answer of the call that made it and in no other.
type Taken struct {
	Public
	Secret string
}

// Accept makes customer, subscription and first API key of an open quote, and
// mails the way into the customer's portal, or nothing of it: to who accepted,
// where the customer is made by that, else to whom the quote was sent. Accepted
// again, also at once, it gives the same result without the secret. A customer
// that is on a plan moves to the quote's; one that has a key gets no other. A version that is not out any more, and a quote that cannot
// be accepted any more, are Conflicts.
func (s *Service) Accept(ctx context.Context, token string, a Acceptance) (Taken, error) {
	a.Name, a.Email = strings.TrimSpace(a.Name), strings.TrimSpace(a.Email)
	var out Taken
	err := s.behind(ctx, token, func(tx pgx.Tx, tenant, quote uuid.UUID) (err error) {
		out = Taken{}
		if out.Tenant, err = tenants.ReadTenant(ctx, tx, tenant, s.now()); err != nil {
			return err
		}
		if out.Quote, err = s.lock(ctx, tx, tenant, quote); err != nil || out.Status == Accepted {
			return err
		}
		if err := answerable(out.Public, a.Version); err != nil {
			return err
		}
		if err := s.servable(ctx, tx, tenant, out.Customer); err != nil {
			return err
		}
		if wrong := append(tenants.CheckName("/name", a.Name), tenants.CheckEmail("/email", a.Email)...); len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
		out.Secret, err = s.take(ctx, tx, &out.Public, a)
		return err
	})
	return out, err
}

// servable is the Conflict of a quote for a customer that there is no more, or
// that is suspended.
func (s *Service) servable(ctx context.Context, tx pgx.Tx, tenant, customer uuid.UUID) error {
	if customer == uuid.Nil {
		return nil
	}
	c, err := tenants.ReadCustomer(ctx, tx, tenant, customer)
	if fault.Is(err, fault.NotFound) || err == nil && c.SuspendedAt != nil {
		return unavailable()
	}
	return err
}

func unavailable() error {
	return broken("quote_unavailable", "This quote cannot be answered at the moment. Ask whoever sent it.")
}

// answerable is the Conflict that an answer to the quote runs into, if any.
func answerable(p Public, version int) error {
	switch {
	case p.Tenant.SuspendedAt != nil:
		return unavailable()
	case p.Status == Expired:
		return broken("quote_expired", "The time of this quote is over. Ask whoever sent it for a new one.")
	case p.Status == Declined:
		return broken("quote_declined", "This quote was declined. Ask whoever sent it for a new one.")
	case !p.Status.Open():
		return broken("quote_withdrawn", "This quote was withdrawn. Ask whoever sent it for a new one.")
	case version != 0 && version != p.Version.Number:
		return broken("quote_superseded", "A newer version of this quote was sent meanwhile. Read it, then answer that one.")
	}
	return nil
}

func (s *Service) take(ctx context.Context, tx pgx.Tx, p *Public, a Acceptance) (secret string, err error) {
	tenant := p.Tenant.ID
	q := &p.Quote
	to := q.To.Email // of a customer that there is: its portal is nobody's who came by the link
	q.Result.Customer = q.Customer
	if q.Customer == uuid.Nil {
		to = a.Email
		c, err := s.tenants.AddCustomerTx(ctx, tx, tenant, tenants.NewCustomer{Name: q.To.Called(), Email: a.Email})
		if err != nil {
			return "", err
		}
		q.Result.Customer = c.ID
	}
	sub, err := s.billing.SubscribeVersionTx(ctx, tx, tenant, q.Result.Customer, q.Offer.Terms.ID)
	if err != nil {
		return "", err
	}
	q.Result.Subscription = sub.ID
	if secret, err = s.firstKey(ctx, tx, tenant, q); err != nil {
		return "", err
	}
	at := s.stamp()
	q.Status, q.DecidedAt, q.DecidedBy = Accepted, &at, Recipient{Name: a.Name, Email: a.Email}
	if err := s.decide(ctx, tx, tenant, *q); err != nil {
		return "", err
	}
	if err := message.Emit(ctx, tx, tenant, message.QuoteAccepted, told(*q)); err != nil {
		return "", err
	}
	if err := s.portal.OweLink(ctx, tx, tenant, q.Result.Customer, to, portal.Accepted); err != nil {
		return "", err
	}
	return secret, tenants.Audit(ctx, tx, tenant, "quote.accepted", format(*q), noted(*q))
}

// firstKey makes the customer's first API key, unless it has one that works.
func (s *Service) firstKey(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q *Quote) (string, error) {
	var has bool
	err := tx.QueryRow(ctx, `
		select exists (
		    select from api_keys
		    where tenant_id = $1 and customer_id = $2 and revoked_at is null and (expires_at is null or expires_at > $3))`,
		tenant, q.Result.Customer, s.now()).Scan(&has)
	if err != nil || has {
		return "", err
	}
	k, err := s.tenants.AddAPIKeyTx(ctx, tx, tenant, tenants.NewAPIKey{Kind: tenants.ForCustomer, Customer: q.Result.Customer, Name: "First key"})
	q.Result.APIKey = k.ID
	return k.Secret, err
}

// decide writes the answer down.
func (s *Service) decide(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q Quote) error {
	if _, err := tx.Exec(ctx, `
		update quote_versions
		set decided_at = $4, decided_name = $5, decided_email = $6, decline_reason = $7,
		    customer_id = nullif($8, '00000000-0000-0000-0000-000000000000'::uuid),
		    subscription_id = nullif($9, '00000000-0000-0000-0000-000000000000'::uuid),
		    api_key_id = nullif($10, '00000000-0000-0000-0000-000000000000'::uuid)
		where tenant_id = $1 and quote_id = $2 and version = $3`,
		tenant, q.ID, q.Version.Number, q.DecidedAt, q.DecidedBy.Name, q.DecidedBy.Email, q.DeclinedBy,
		q.Result.Customer, q.Result.Subscription, q.Result.APIKey); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		update quotes set status = $3, customer_id = coalesce(customer_id, nullif($4, '00000000-0000-0000-0000-000000000000'::uuid))
		where tenant_id = $1 and quote_id = $2`, tenant, q.ID, string(q.Status), q.Result.Customer)
	return err
}

const mostReason = 1000

// Decline says no to an open quote, with a reason that may be empty. Declined
// again it stays as it is.
func (s *Service) Decline(ctx context.Context, token string, version int, reason string) (Public, error) {
	reason = strings.TrimSpace(reason)
	reason = strings.ReplaceAll(reason, "\r\n", "\n")
	if utf8.RuneCountInString(reason) > mostReason || !printable(reason) {
		return Public{}, fault.InvalidFields(fault.Field{Pointer: "/reason", Code: "too_long", Message: "This may be printable text of at most 1,000 characters."})
	}
	var p Public
	err := s.behind(ctx, token, func(tx pgx.Tx, tenant, quote uuid.UUID) (err error) {
		if p.Tenant, err = tenants.ReadTenant(ctx, tx, tenant, s.now()); err != nil {
			return err
		}
		if p.Quote, err = s.lock(ctx, tx, tenant, quote); err != nil || p.Status == Declined {
			return err
		}
		if p.Status == Accepted {
			return accepted()
		}
		if err := answerable(p, version); err != nil {
			return err
		}
		at := s.stamp()
		p.Status, p.DecidedAt, p.DeclinedBy = Declined, &at, reason
		if err := s.decide(ctx, tx, tenant, p.Quote); err != nil {
			return err
		}
		if err := message.Emit(ctx, tx, tenant, message.QuoteDeclined, told(p.Quote)); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "quote.declined", id.Quote.Format(quote), noted(p.Quote))
	})
	return p, err
}
