package quotes

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/branding"
	"weir/internal/capacity"
	"weir/internal/fault"
	"weir/internal/message"
	"weir/internal/notify"
	"weir/internal/tenants"
)

// leastValid is how long a quote must be valid yet to be sent.
const leastValid = time.Minute

const mostWhy = 500

// Send freezes the quote's draft, supersedes the version that was out, and mails
// the link. A quote whose newest version is out already is left as it is; one
// that has no draft and cannot be accepted any more is a Conflict. One that sells
// more of a model than the tenant's ceiling allows needs a reason, else it is
// Refused (over_capacity).
func (s *Service) Send(ctx context.Context, tenant, quote uuid.UUID, reason string) (Quote, error) {
	if utf8.RuneCountInString(reason) > mostWhy || len(tenants.CheckText("/reason", reason)) > 0 {
		return Quote{}, fault.InvalidFields(fault.Field{Pointer: "/reason", Code: "too_long", Message: "This may be one line of at most 500 characters."})
	}
	var q Quote
	latest, err := s.Latest(ctx, tenant, quote)
	if err != nil {
		return q, err
	}
	checked, err := s.Capacity(ctx, tenant, latest)
	if err != nil {
		return q, err
	}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		if q, err = s.lock(ctx, tx, tenant, quote); err != nil {
			return err
		}
		draft, err := s.latest(ctx, tx, tenant, q)
		switch {
		case err != nil:
			return err
		case q.Status == Accepted:
			return accepted()
		case q.Status != Draft && q.NextDraft == 0 && q.Status.Open():
			return nil
		case q.Status != Draft && q.NextDraft == 0:
			return broken("nothing_to_send", "This quote is "+string(q.Status)+", and nothing of it was changed since. Change it first: that makes the next version.")
		}
		if draft.Offer.ValidUntil.Before(s.now().Add(leastValid)) {
			return broken("validity_over", "The day until which this quote is valid is over. Choose a later one, then send it.")
		}
		if draft.Offer.Terms.Tag() != latest.Offer.Terms.Tag() {
			return broken("quote_changed", "Somebody changed this quote just now. Look at it again, then send it.")
		}
		if checked.Over() && reason == "" {
			return overCapacity(checked)
		}
		if !checked.Over() {
			reason = ""
		}
		draft.Offer.Reason, draft.Offer.RatioPercent = reason, percentOf(checked)
		if err := s.release(ctx, tx, t, &q, draft); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "quote.sent", format(q), noted(q))
	})
	return q, err
}

// Capacity is what a quote would sell on top of what is sold, beside what the
// provider keys carry.
func (s *Service) Capacity(ctx context.Context, tenant uuid.UUID, q Quote) (capacity.Report, error) {
	return s.capacity.Check(ctx, tenant, capacity.Change{Limits: q.Offer.Terms.Limits, Customer: q.Customer, New: q.Customer == uuid.Nil})
}

// mostRatio is the highest ratio that is kept.
const mostRatio = 1_000_000_000

// percentOf is the ratio that is kept with a quote that is sent.
func percentOf(r capacity.Report) *int64 {
	if len(r.Rows) == 0 {
		return nil
	}
	n := min(r.Percent(), mostRatio)
	return &n
}

func overCapacity(r capacity.Report) error {
	for _, row := range r.Rows {
		if row.Over(r.CeilingPercent) {
			m, _ := row.Tightest()
			_, after := m.Percent()
			return fault.New(fault.Refused, "over_capacity", fmt.Sprintf("With this quote, %s would be sold %s what your provider keys carry of %s; your ceiling is %s. Say why it is sent all the same.",
				strings.Join(row.Models[:min(3, len(row.Models))], ", "), capacity.Times(after), m.Words(), capacity.Times(r.CeilingPercent))).
				With(fault.Field{Pointer: "/reason", Code: "over_capacity", Message: "Say why it is sent all the same."})
		}
	}
	return nil
}

// release puts a draft out in place of what was, and tells the customer.
func (s *Service) release(ctx context.Context, tx pgx.Tx, t tenants.Tenant, q *Quote, draft Quote) error {
	if err := s.billing.PublishQuotedTx(ctx, tx, t.ID, draft.Offer.Terms.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update quote_versions set state = 'superseded' where tenant_id = $1 and quote_id = $2 and state = 'out'`, t.ID, q.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update quote_versions set state = 'out', sent_at = $4, reason = $5, ratio_percent = $6
		where tenant_id = $1 and quote_id = $2 and version = $3`, t.ID, q.ID, draft.Version.Number, s.stamp(), draft.Offer.Reason, draft.Offer.RatioPercent); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update quotes set status = 'sent', out_version = $3 where tenant_id = $1 and quote_id = $2`, t.ID, q.ID, draft.Version.Number); err != nil {
		return err
	}
	link, err := s.link(ctx, tx, t.ID, q.ID)
	if err != nil {
		return err
	}
	if *q, err = s.read(ctx, tx, t.ID, q.ID, 0); err != nil {
		return err
	}
	if err := s.oweOffer(ctx, tx, t, *q, link); err != nil {
		return err
	}
	return message.Emit(ctx, tx, t.ID, message.QuoteSent, told(*q))
}

// Resend mails the link of an open quote once more.
func (s *Service) Resend(ctx context.Context, tenant, quote uuid.UUID) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		if q, err = s.lock(ctx, tx, tenant, quote); err != nil {
			return err
		}
		if !q.Status.Open() {
			return broken("quote_not_out", "This quote is "+string(q.Status)+": there is nothing to accept.")
		}
		link, err := s.link(ctx, tx, tenant, quote)
		if err != nil {
			return err
		}
		if err := s.oweOffer(ctx, tx, t, q, link); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "quote.resent", format(q), noted(q))
	})
	return q, err
}

// Withdraw takes a quote back: its link says so. A draft that was never sent is
// thrown away. Withdrawn again it stays as it is; one that was decided, or whose
// time is over, is a Conflict.
func (s *Service) Withdraw(ctx context.Context, tenant, quote uuid.UUID) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if q, err = s.lock(ctx, tx, tenant, quote); err != nil {
			return err
		}
		switch {
		case q.Status == Withdrawn:
			return nil
		case !q.Status.Open() && q.Status != Draft:
			return broken("quote_not_out", "This quote is "+string(q.Status)+" already.")
		}
		if _, err := tx.Exec(ctx, `
			update quotes set status = 'withdrawn' where tenant_id = $1 and quote_id = $2`, tenant, quote); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, discardDraft, tenant, quote); err != nil {
			return err
		}
		q.Status, q.NextDraft = Withdrawn, 0
		return tenants.Audit(ctx, tx, tenant, "quote.withdrawn", format(q), noted(q))
	})
	return q, err
}

const discardDraft = `
	update quote_versions set state = 'discarded'
	where tenant_id = $1 and quote_id = $2 and state = 'draft'`

// Discard throws the draft away that revises a quote; what was sent stays. A
// quote without one is left as it is.
func (s *Service) Discard(ctx context.Context, tenant, quote uuid.UUID) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if q, err = s.lock(ctx, tx, tenant, quote); err != nil || q.NextDraft == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, discardDraft, tenant, quote); err != nil {
			return err
		}
		q.NextDraft = 0
		return tenants.Audit(ctx, tx, tenant, "quote.draft_discarded", format(q), noted(q))
	})
	return q, err
}

// oweOffer owes the mail with the quote's link, under the tenant's brand.
func (s *Service) oweOffer(ctx context.Context, tx pgx.Tx, t tenants.Tenant, q Quote, link string) error {
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return err
	}
	brand, err := branding.Read(ctx, tx, t.ID)
	if err != nil {
		return err
	}
	note := ""
	if q.Offer.Note != "" {
		note = q.Offer.Note + "\n\n"
	}
	m := notify.Mail{To: q.To.Email, Link: link, Subject: fmt.Sprintf("%s: quote %s", brand.Name(), q.Number), At: s.now(), Text: fmt.Sprintf(`Hello %s,

%s offers you: %s.

%sRead it, with what each number means, and accept it here, until %s:
%s
`, q.To.Name, brand.Name(), billing.Sentence(q.Offer.Terms.Limits), note, q.Offer.ValidUntil.In(zone).Format("2 January 2006, 15:04 MST"), notify.LinkHere)}
	return s.mail.OweMail(ctx, tx, t.ID, brand.Letter(m))
}
