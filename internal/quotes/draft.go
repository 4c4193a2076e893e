package quotes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/tenants"
)

// Wanted is what a draft is to offer.
type Wanted struct {
	To         Recipient
	Customer   uuid.UUID // zero: a new one, made by accepting
	Plan       uuid.UUID // whose published version is offered
	Own        *Own      // what this quote alone has otherwise; nil: nothing
	Volumes    []Volume
	Note       string    // shown to the customer
	ValidUntil time.Time // zero: the end of the day in two weeks
}

// Own is what one quote alone has in place of its plan's. Nil members are as in
// the plan.
type Own struct {
	Limits  *[]limits.Limit
	Prices  *[]billing.Price
	BaseFee *money.Amount
}

const (
	mostNote     = 2000
	validDays    = 14
	mostValidity = 366 * 24 * time.Hour
)

func (w Wanted) check(now time.Time) (wrong []fault.Field) {
	wrong = append(tenants.CheckName("/to/name", w.To.Name), tenants.CheckEmail("/to/email", w.To.Email)...)
	if w.To.Company != "" {
		wrong = append(wrong, tenants.CheckName("/to/company", w.To.Company)...)
	}
	if w.Plan == uuid.Nil {
		wrong = append(wrong, fault.Field{Pointer: "/plan", Code: "required", Message: "Say which plan is offered."})
	}
	wrong = append(wrong, checkVolumes(w.Volumes)...)
	if utf8.RuneCountInString(w.Note) > mostNote {
		wrong = append(wrong, fault.Field{Pointer: "/note", Code: "too_long", Message: "This may have at most 2,000 characters."})
	}
	if !printable(w.Note) {
		wrong = append(wrong, fault.Field{Pointer: "/note", Code: "bad_characters", Message: "This holds control characters; use printable text."})
	}
	if !w.ValidUntil.IsZero() && (!w.ValidUntil.After(now) || w.ValidUntil.After(now.Add(mostValidity))) {
		wrong = append(wrong, fault.Field{Pointer: "/valid_until", Code: "out_of_range", Message: "A quote is valid until an instant that is to come, within a year."})
	}
	return wrong
}

// printable tells whether text of several lines holds no control character.
func printable(s string) bool {
	return len(tenants.CheckText("", strings.NewReplacer("\n", " ", "\t", " ").Replace(s))) == 0
}

// Add makes a quote, a draft with a number. It is seen by nobody outside.
func (s *Service) Add(ctx context.Context, tenant uuid.UUID, w Wanted) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		if err := tenants.HoldCustomer(ctx, tx, tenant, w.Customer); err != nil {
			return err
		}
		q = Quote{ID: id.New(), CreatedAt: s.stamp()}
		zone, err := time.LoadLocation(t.Zone)
		if err != nil {
			return err
		}
		year, sequence := q.CreatedAt.In(zone).Year(), 0
		if err := tx.QueryRow(ctx, `
			insert into quote_numbers (tenant_id, year, last) values ($1, $2, 1)
			on conflict (tenant_id, year) do update set last = quote_numbers.last + 1
			returning last`, tenant, year).Scan(&sequence); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `
			insert into quotes (tenant_id, quote_id, year, sequence, status, created_at)
			values ($1, $2, $3, $4, 'draft', $5)`, tenant, q.ID, year, sequence, q.CreatedAt); err != nil {
			return err
		}
		q, err = s.draft(ctx, tx, t, q.ID, 1, w)
		if err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "quote.created", format(q), noted(q))
	})
	return q, err
}

// Revise makes w what the quote's draft offers, and makes that draft, the next
// version, where there is none: what was sent stays as it is, and counts, until
// the draft is sent. One that was sent stays its customer's (Conflict
// quote_customer_fixed). based is the Tag of the quote that w began as; where
// somebody changed it since, nothing is saved and the error is a Conflict
// (quote_changed). Without one, w wins. An accepted quote is a Conflict.
func (s *Service) Revise(ctx context.Context, tenant, quote uuid.UUID, based string, w Wanted) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		t, err := tenants.ReadTenant(ctx, tx, tenant, s.now())
		if err != nil {
			return err
		}
		if err := tenants.HoldCustomer(ctx, tx, tenant, w.Customer); err != nil {
			return err
		}
		if q, err = s.lock(ctx, tx, tenant, quote); err != nil {
			return err
		}
		switch {
		case q.Status == Accepted:
			return accepted()
		case q.SentAt != nil && w.Customer != q.Customer && (q.Customer != uuid.Nil || q.Status.Open()):
			return anothers()
		}
		latest, err := s.latest(ctx, tx, tenant, q)
		if err != nil {
			return err
		}
		if based != "" && based != latest.Tag() {
			return broken("quote_changed", "Somebody changed this quote since you opened it. Nothing of yours is saved yet: open the quote in another tab, compare, and save again to put yours in its place.")
		}
		n := latest.Version.Number
		if q.Status != Draft && q.NextDraft == 0 {
			n++
		}
		if q, err = s.draft(ctx, tx, t, quote, n, w); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "quote.saved", format(q), noted(q))
	})
	return q, err
}

// anothers is the Conflict of a link that would come to be of somebody else than
// who has it.
func anothers() error {
	return broken("quote_customer_fixed", "This quote was sent, and whoever has its link has it for this customer. Make a new quote for another one.").
		With(fault.Field{Pointer: "/customer", Code: "quote_customer_fixed", Message: "It was sent for the customer that it was for before."})
}

// Latest is a quote with its draft, where it has one.
func (s *Service) Latest(ctx context.Context, tenant, quote uuid.UUID) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if q, err = s.read(ctx, tx, tenant, quote, 0); err != nil {
			return err
		}
		q, err = s.latest(ctx, tx, tenant, q)
		return err
	})
	return q, err
}

// latest is the quote with its draft, where it has one.
func (s *Service) latest(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q Quote) (Quote, error) {
	if q.NextDraft == 0 {
		return q, nil
	}
	return s.read(ctx, tx, tenant, q.ID, q.NextDraft)
}

// draft writes version n of a quote.
func (s *Service) draft(ctx context.Context, tx pgx.Tx, t tenants.Tenant, quote uuid.UUID, n int, w Wanted) (Quote, error) {
	if wrong := w.check(s.now()); len(wrong) > 0 {
		return Quote{}, fault.InvalidFields(wrong...)
	}
	if w.Customer != uuid.Nil {
		if _, err := tenants.ReadCustomer(ctx, tx, t.ID, w.Customer); err != nil {
			return Quote{}, missing(err, "/customer", "customer")
		}
	}
	version, own, err := s.terms(ctx, tx, t.ID, quote, w)
	if err != nil {
		return Quote{}, err
	}
	if w.ValidUntil.IsZero() {
		if w.ValidUntil, err = endOfDays(s.now(), t.Zone, validDays); err != nil {
			return Quote{}, err
		}
	}
	if _, err = tx.Exec(ctx, `
		update quotes
		set customer_id = nullif($3, '00000000-0000-0000-0000-000000000000'::uuid),
		    status = case when out_version is null then 'draft' else status end
		where tenant_id = $1 and quote_id = $2`, t.ID, quote, w.Customer); err != nil {
		return Quote{}, err
	}
	if w.Volumes == nil {
		w.Volumes = []Volume{}
	}
	if _, err = tx.Exec(ctx, `
		insert into quote_versions (tenant_id, quote_id, version, state, plan_version_id, own_terms, volumes, note, valid_until, created_at, to_name, to_email, to_company)
		values ($1, $2, $3, 'draft', $4, $5, $6, $7, $8, $9, $10, $11, $12)
		on conflict (tenant_id, quote_id, version) do update
		set state = 'draft', plan_version_id = excluded.plan_version_id, own_terms = excluded.own_terms, volumes = excluded.volumes, note = excluded.note, valid_until = excluded.valid_until,
		    to_name = excluded.to_name, to_email = excluded.to_email, to_company = excluded.to_company`,
		t.ID, quote, n, version, own, w.Volumes, w.Note, w.ValidUntil.UTC().Truncate(time.Microsecond), s.stamp(), w.To.Name, w.To.Email, w.To.Company); err != nil {
		return Quote{}, err
	}
	return s.read(ctx, tx, t.ID, quote, n)
}

// terms is the plan version that the draft offers, and whether it is this
// quote's alone.
func (s *Service) terms(ctx context.Context, tx pgx.Tx, tenant, quote uuid.UUID, w Wanted) (version uuid.UUID, own bool, err error) {
	p, err := s.billing.PlanTx(ctx, tx, tenant, w.Plan)
	switch {
	case err != nil:
		return uuid.Nil, false, missing(err, "/plan", "plan")
	case p.Quote == quote && w.Own == nil:
		return p.Version.ID, true, nil // as it was before
	case p.Quote != quote && (p.Version.Status != billing.Published || p.Quote != uuid.Nil):
		return uuid.Nil, false, fault.InvalidFields(fault.Field{Pointer: "/plan", Code: "plan_not_published", Message: "This plan has no published version yet; publish it first."})
	case w.Own == nil:
		return p.Version.ID, false, nil
	}
	v, err := s.billing.QuotedTx(ctx, tx, tenant, quote, p.Name, w.Own.over(p.Version))
	return v.ID, true, err
}

// over is a version with this quote's own terms in their places.
func (o Own) over(v billing.Version) billing.NewVersion {
	n := v.Again()
	if o.Limits != nil {
		n.Limits = *o.Limits
	}
	if o.Prices != nil {
		n.Prices = *o.Prices
	}
	if o.BaseFee != nil {
		n.BaseFee = o.BaseFee
	}
	return n
}

// missing puts a NotFound at the member that names what is not there.
func missing(err error, pointer, what string) error {
	if fault.Is(err, fault.NotFound) {
		return tenants.Missing(pointer, what)
	}
	return err
}

// endOfDays is the end of the day that many days after the one of now.
func endOfDays(now time.Time, name string, days int) (time.Time, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return now, err
	}
	end := limits.DayEnd(now, zone)
	for range days {
		end = limits.DayEnd(end, zone)
	}
	return end, nil
}

// Wanted is the quote's offer as the start of a change. A validity that is over
// is left out: it begins anew.
func (q Quote) Wanted(now time.Time) Wanted {
	w := Wanted{To: q.To, Customer: q.Customer, Plan: q.Offer.PlanID, Volumes: q.Offer.Volumes, Note: q.Offer.Note, ValidUntil: q.Offer.ValidUntil}
	if !w.ValidUntil.After(now) {
		w.ValidUntil = time.Time{}
	}
	return w
}

// Tag is the state of a quote's offer as text: it differs after every change.
func (q Quote) Tag() string {
	sum := sha256.New()
	fmt.Fprintln(sum, q.ID, q.Version.Number, q.Customer, q.To, q.Offer.Terms.Tag(), q.Offer.Volumes, q.Offer.Note, q.Offer.ValidUntil.UnixMicro())
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

func accepted() error {
	return broken("quote_accepted", "This quote was accepted; it does not change any more. Make a new one, or change the customer's plan.")
}

type toldQuote struct {
	ID          string `json:"id"`
	Number      string `json:"number"`
	Version     int    `json:"version"`
	To          string `json:"to,omitempty"`
	Plan        string `json:"plan"`
	PlanVersion string `json:"plan_version"`
	Sentence    string `json:"sentence"`
	Reason      string `json:"reason,omitempty"`

	Customer     string `json:"customer,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	APIKey       string `json:"api_key,omitempty"`
}

// noted is what the audit says of a quote. It keeps that for good, so it names
// nobody, and repeats nothing that a customer wrote.
func noted(q Quote) toldQuote {
	t := told(q)
	t.To, t.Reason = "", q.Offer.Reason
	return t
}

// told is what messages say of a quote.
func told(q Quote) toldQuote {
	return toldQuote{
		ID: format(q), Number: q.Number, Version: q.Version.Number, To: q.To.Called(), Plan: q.Offer.Plan,
		PlanVersion: id.PlanVersion.Format(q.Offer.Terms.ID), Sentence: billing.Sentence(q.Offer.Terms.Limits), Reason: cmp.Or(q.DeclinedBy, q.Offer.Reason),
		Customer: id.Customer.Format(q.Result.Customer), Subscription: id.Subscription.Format(q.Result.Subscription), APIKey: id.APIKey.Format(q.Result.APIKey),
	}
}
