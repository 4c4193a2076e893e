package portal

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/branding"
	"weir/internal/fault"
	"weir/internal/tenants"
)

const (
	mostAsked  = 20 // links in one mail
	askedLasts = time.Minute
)

// Ask mails a link for each customer that has this address, in one mail. To an
// address that none has it mails nothing; the answer, and its time, is the same.
// Too many askings of an address or network are Limited.
func (s *Service) Ask(ctx context.Context, email, ip string) error {
	if s.mailer == nil {
		return fault.New(fault.Refused, "no_mail", "This installation sends no mail. Ask the company whose customer you are for a link.")
	}
	email = strings.TrimSpace(email)
	if wrong := tenants.CheckEmail("/email", email); len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	if err := s.attempts.Take(email, ip); err != nil {
		f := *fault.Of(err)
		f.Message = "Too many links were asked for. Wait a while; the last one that came works for 30 minutes."
		return &f
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askedLasts)
	go func() { // not in the answer's time
		defer cancel()
		if err := s.answer(ctx, email); err != nil {
			s.log.WarnContext(ctx, "portal links not sent", "error", err)
		}
	}()
	return nil
}

// answer makes the links and sends them at once. They are of several tenants, so
// that no tenant's books hold the mail.
func (s *Service) answer(ctx context.Context, email string) error {
	type found struct{ Tenant, Customer uuid.UUID }
	var list []found
	err := s.db.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, customer_id from lookup_portal_customers($1, $2)`, email, mostAsked)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[found])
		return err
	})
	if err != nil || len(list) == 0 {
		return err
	}
	var ways []way
	for _, x := range list {
		w, err := s.wayTo(ctx, x.Tenant, x.Customer, email)
		if err != nil {
			return err
		}
		if w.URL != "" {
			ways = append(ways, w)
		}
	}
	if len(ways) == 0 {
		return nil
	}
	return s.mailer.Send(ctx, askedMail(email, s.url, ways, s.now()))
}

// wayTo makes a link; none where the customer has another address, or was erased,
// since it was found by this one.
func (s *Service) wayTo(ctx context.Context, tenant, customer uuid.UUID, email string) (way, error) {
	var w way
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		x, err := held(ctx, tx, tenant, customer)
		if err != nil || !strings.EqualFold(x.Email, email) {
			return err
		}
		brand, err := branding.Read(ctx, tx, tenant)
		if err != nil {
			return err
		}
		link, err := s.insertLink(ctx, tx, tenant, customer, email, Asked)
		w = way{tenant, brand, x.Name, link.URL}
		return err
	})
	return w, err
}
