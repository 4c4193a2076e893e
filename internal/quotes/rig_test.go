package quotes_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/capacity"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/notify"
	"weir/internal/outbound"
	"weir/internal/portal"
	"weir/internal/postgres/postgrestest"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// rig is a tenant that quotes, twice: as two processes on one database.
type rig struct {
	t       *testing.T
	pg      postgrestest.Database
	quotes  [2]*quotes.Service
	books   [2]*billing.Service
	doors   [2]*portal.Service
	billing *billing.Service
	tenants *tenants.Service
	tenant  uuid.UUID
	plan    billing.Plan

	mu  sync.Mutex
	now time.Time
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, pg: postgrestest.New(t), now: time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC)}
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	guard := outbound.New(outbound.Policy{})
	t.Cleanup(guard.Close)
	r.tenants = tenants.New(r.pg.App, ring, guard, catalogue.NewClient(guard), r.clock)
	for i := range r.quotes {
		r.books[i] = billing.New(r.pg.App, r.clock)
		r.books[i].Sign([]byte("of both"))
		teller := notify.New(r.pg.App, r.tenants, guard, r.clock)
		r.doors[i] = portal.New(r.pg.App, r.tenants, teller, &notify.Outbox{}, "https://weir.example", slog.New(slog.DiscardHandler), r.clock)
		r.quotes[i] = quotes.New(r.pg.App, r.tenants, r.books[i], teller, r.doors[i], capacity.New(r.tenants, r.books[i], r.clock), "https://weir.example", r.clock)
	}
	r.billing = r.books[0]
	made, err := r.tenants.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "Europe/Berlin", Currency: "EUR"})
	must(t, err)
	r.tenant = made.Tenant.ID
	r.sql(`insert into webhook_endpoints (tenant_id, endpoint_id, url, last4, created_at) values ($1, $1, 'https://x.example', 'aaaa', now())`)
	r.plan, err = r.billing.AddPublished(t.Context(), r.tenant, "Team", terms(500, "49.00"))
	must(t, err)
	return r
}

func terms(requests int64, fee string) billing.NewVersion {
	return billing.NewVersion{
		Limits:  []limits.Limit{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: requests}},
		Prices:  []billing.Price{{Models: "*", Class: usage.Input, MicrosPerMillion: 2_500_000}, {Models: "*", Class: usage.Output, MicrosPerMillion: 10_000_000}},
		BaseFee: &money.Amount{Amount: fee, Currency: "EUR"},
	}
}

// ownTerms are of one quote alone; its prices are the plan's.
func ownTerms(requests int64, fee string) *quotes.Own {
	list := terms(requests, fee).Limits
	return &quotes.Own{Limits: &list, BaseFee: &money.Amount{Amount: fee, Currency: "EUR"}}
}

func (r *rig) wanted() quotes.Wanted {
	return quotes.Wanted{To: quotes.Recipient{Name: "Adaeze Finch", Email: "adaeze@marlow.example", Company: "Marlow & Finch"}, Plan: r.plan.ID}
}

func (r *rig) add(w quotes.Wanted) quotes.Quote {
	r.t.Helper()
	q, err := r.quotes[0].Add(r.t.Context(), r.tenant, w)
	must(r.t, err)
	return q
}

// sent is a quote that is out, with its token.
func (r *rig) sent(w quotes.Wanted) (quotes.Quote, string) {
	r.t.Helper()
	q := r.add(w)
	q, err := r.quotes[0].Send(r.t.Context(), r.tenant, q.ID, "")
	must(r.t, err)
	link, err := r.quotes[1].Link(r.t.Context(), r.tenant, q.ID)
	must(r.t, err)
	return q, strings.TrimPrefix(link, "https://weir.example/q/")
}

func (r *rig) sql(q string, args ...any) {
	r.t.Helper()
	must(r.t, r.try(q, args...))
}

func (r *rig) try(q string, args ...any) error {
	return r.pg.App.WithTenant(r.t.Context(), r.tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(r.t.Context(), q, append([]any{r.tenant}, args...)...)
		return err
	})
}

// count is what a query for one number gives.
func (r *rig) count(q string, args ...any) (n int) {
	r.t.Helper()
	must(r.t, r.pg.App.WithTenant(r.t.Context(), r.tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(r.t.Context(), q, append([]any{r.tenant}, args...)...).Scan(&n)
	}))
	return n
}

func (r *rig) told(kind string) int {
	return r.count(`select count(*) from webhook_messages where tenant_id = $1 and type = $2`, kind)
}

func (r *rig) mails() int { return r.count(`select count(*) from mails where tenant_id = $1`) }

func yes(version int) quotes.Acceptance {
	return quotes.Acceptance{Version: version, Name: "Adaeze Finch", Email: "adaeze@marlow.example"}
}

// atOnce runs f twenty times at once, on both processes in turn.
func (r *rig) atOnce(f func(s *quotes.Service) error) []error {
	r.t.Helper()
	errs := make([]error, 20)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(r.quotes[i%2]) })
	}
	all.Wait()
	return errs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

func joined(errs []error) error { return errors.Join(errs...) }
