package quotes

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/notify"
	"weir/internal/portal"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// Service makes and keeps quotes. It is safe for concurrent use.
type Service struct {
	db       *postgres.DB
	tenants  *tenants.Service
	billing  *billing.Service
	mail     *notify.Service
	portal   *portal.Service
	capacity *capacity.Service
	url      string // what browsers call this installation
	now      func() time.Time
}

// New makes the service. url has no stroke at its end.
func New(db *postgres.DB, t *tenants.Service, b *billing.Service, mail *notify.Service, p *portal.Service, c *capacity.Service, url string, now func() time.Time) *Service {
	return &Service{db: db, tenants: t, billing: b, mail: mail, portal: p, capacity: c, url: url, now: now}
}

// stamp is now as the database keeps it.
func (s *Service) stamp() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// lock reads a quote that no other transaction changes until this one ends. Locks
// are taken in one order everywhere: customer, quote, its versions, subscription,
// and the audit last.
func (s *Service) lock(ctx context.Context, tx pgx.Tx, tenant, quote uuid.UUID) (Quote, error) {
	var customer uuid.UUID
	err := tx.QueryRow(ctx, `
		select customer_id from quotes where tenant_id = $1 and quote_id = $2 and customer_id is not null`, tenant, quote).Scan(&customer)
	if err == nil {
		err = tenants.HoldCustomer(ctx, tx, tenant, customer)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Quote{}, err
	}
	if _, err := tx.Exec(ctx, `
		select from quotes where tenant_id = $1 and quote_id = $2 for update`, tenant, quote); err != nil {
		return Quote{}, err
	}
	return s.read(ctx, tx, tenant, quote, 0)
}

// Quote reads a quote with the version that counts; with version, that one.
func (s *Service) Quote(ctx context.Context, tenant, quote uuid.UUID, version int) (Quote, error) {
	var q Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		q, err = s.read(ctx, tx, tenant, quote, version)
		return err
	})
	return q, err
}

const quoteQuery = `
	select q.quote_id, q.year, q.sequence, q.status, coalesce(q.customer_id, '00000000-0000-0000-0000-000000000000'), v.to_name, v.to_email, v.to_company, q.created_at,
	       v.version, v.plan_version_id, v.own_terms, v.volumes, v.note, v.valid_until, v.ratio_percent, v.reason,
	       v.sent_at, v.viewed_at, v.views, v.decided_at, v.decided_name, v.decided_email, v.decline_reason,
	       coalesce(v.customer_id, '00000000-0000-0000-0000-000000000000'), coalesce(v.subscription_id, '00000000-0000-0000-0000-000000000000'), coalesce(v.api_key_id, '00000000-0000-0000-0000-000000000000'),
	       coalesce((select d.version from quote_versions d where d.tenant_id = q.tenant_id and d.quote_id = q.quote_id and d.state = 'draft' and d.version <> v.version), 0)
	from quotes q
	join quote_versions v on v.tenant_id = q.tenant_id and v.quote_id = q.quote_id
	where q.tenant_id = $1 `

// counts is the version that counts.
const counts = `and v.version = coalesce(q.out_version, (
	select max(d.version) from quote_versions d where d.tenant_id = q.tenant_id and d.quote_id = q.quote_id)) `

func (s *Service) read(ctx context.Context, tx pgx.Tx, tenant, quote uuid.UUID, version int) (Quote, error) {
	if version > math.MaxInt32 {
		return Quote{}, tenants.NotFound("quote")
	}
	which, args := counts, []any{tenant, quote}
	if version != 0 {
		which, args = `and v.version = $3 `, append(args, version)
	}
	rows, err := tx.Query(ctx, quoteQuery+which+`and q.quote_id = $2`, args...)
	if err != nil {
		return Quote{}, err
	}
	q, err := pgx.CollectExactlyOneRow(rows, s.scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return q, tenants.NotFound("quote")
	}
	if err != nil {
		return q, err
	}
	return q, s.complete(ctx, tx, tenant, &q)
}

func (s *Service) scan(row pgx.CollectableRow) (q Quote, err error) {
	var year, sequence int
	err = row.Scan(&q.ID, &year, &sequence, &q.Status, &q.Customer, &q.To.Name, &q.To.Email, &q.To.Company, &q.CreatedAt,
		&q.Version.Number, &q.Offer.Terms.ID, &q.Offer.OwnTerms, &q.Offer.Volumes, &q.Offer.Note, &q.Offer.ValidUntil, &q.Offer.RatioPercent, &q.Offer.Reason,
		&q.SentAt, &q.ViewedAt, &q.Views, &q.DecidedAt, &q.DecidedBy.Name, &q.DecidedBy.Email, &q.DeclinedBy,
		&q.Result.Customer, &q.Result.Subscription, &q.Result.APIKey, &q.NextDraft)
	q.Number = number(year, sequence)
	q.Status = statusAt(q.Status, q.Offer.ValidUntil, s.now())
	return q, err
}

// complete reads what the quote's version offers.
func (s *Service) complete(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, q *Quote) error {
	terms, err := s.billing.TermsTx(ctx, tx, tenant, q.Offer.Terms.ID)
	q.Offer.Plan, q.Offer.PlanID, q.Offer.Terms = terms.Plan, terms.PlanID, terms.Version
	return err
}

// Filter narrows a list of quotes. Zero members narrow nothing.
type Filter struct {
	Statuses []Status
	Customer uuid.UUID
	Text     string // in the number, or in a name or address of whom it is for
}

// Quotes lists quotes, the newest first, after an id.
func (s *Service) Quotes(ctx context.Context, tenant uuid.UUID, f Filter, after uuid.UUID, limit int) (tenants.Page[Quote], error) {
	statuses := make([]string, len(f.Statuses))
	for i, x := range f.Statuses {
		statuses[i] = string(x)
	}
	var list []Quote
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, quoteQuery+counts+`
			and q.quote_id < $2
			and ($3 = '{}'::text[] or case when q.status in ('sent', 'viewed') and v.valid_until <= $7 then 'expired' else q.status end = any($3))
			and ($4 = '00000000-0000-0000-0000-000000000000'::uuid or q.customer_id = $4 or v.customer_id = $4)
			and ($5 = '' or v.to_name ilike $6 or v.to_company ilike $6 or v.to_email ilike $6 or 'q-' || q.year || '-' || lpad(q.sequence::text, greatest(3, length(q.sequence::text)), '0') ilike $6)
			order by q.quote_id desc limit $8`,
			tenant, tenants.After(after), statuses, f.Customer, f.Text, tenants.Containing(f.Text), s.now(), limit+1)
		if err != nil {
			return err
		}
		if list, err = pgx.CollectRows(rows, s.scan); err != nil {
			return err
		}
		for i := range list {
			if err := s.complete(ctx, tx, tenant, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return tenants.PageOf(list, limit, func(q Quote) uuid.UUID { return q.ID }), err
}

// Versions are the versions of a quote, the newest first.
func (s *Service) Versions(ctx context.Context, tenant, quote uuid.UUID) ([]VersionRef, error) {
	var list []VersionRef
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select version, state, sent_at from quote_versions
			where tenant_id = $1 and quote_id = $2 and state <> 'discarded' order by version desc`, tenant, quote)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[VersionRef])
		return err
	})
	return list, err
}

// broken is what a state forbids.
func broken(code, message string) *fault.Error { return fault.New(fault.Conflict, code, message) }

func format(q Quote) string { return id.Quote.Format(q.ID) }
