package quotes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/exports"
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
	"weir/internal/usage"
)

// struggle is a customer on a plan whom a quote was sent, and all that can be
// done to either.
type struggle struct {
	*rig
	customer uuid.UUID
	sub      billing.Subscription
	quote    quotes.Quote
	token    string
}

func (r *rig) struggle(n int) struggle {
	r.t.Helper()
	ctx := r.t.Context()
	c, err := r.tenants.AddCustomer(ctx, r.tenant, tenants.NewCustomer{Name: fmt.Sprintf("Marlow %d", n), Email: fmt.Sprintf("marlow%d@marlow.example", n)})
	must(r.t, err)
	sub, err := r.billing.Subscribe(ctx, r.tenant, c.ID, r.plan.ID)
	must(r.t, err)
	w := r.wanted()
	w.Customer, w.Own, w.Note = c.ID, ownTerms(600, "59.00"), "Dear Adaeze"
	q, token := r.sent(w)
	w.Note = "Dear Adaeze, once more"
	_, err = r.quotes[0].Revise(ctx, r.tenant, q.ID, "", w)
	must(r.t, err)
	return struggle{r, c.ID, sub, q, token}
}

func (x struggle) doings() map[string]func(context.Context, *quotes.Service) error {
	none := func(_ any, err error) error { return err }
	w := x.wanted()
	w.Customer, w.Own = x.customer, ownTerms(700, "69.00")
	return map[string]func(context.Context, *quotes.Service) error{
		"accept": func(ctx context.Context, s *quotes.Service) error { return none(s.Accept(ctx, x.token, yes(0))) },
		"decline": func(ctx context.Context, s *quotes.Service) error {
			return none(s.Decline(ctx, x.token, 0, "Adaeze says no"))
		},
		"look":   func(ctx context.Context, s *quotes.Service) error { return none(s.Open(ctx, x.token, true)) },
		"send":   func(ctx context.Context, s *quotes.Service) error { return none(s.Send(ctx, x.tenant, x.quote.ID, "")) },
		"resend": func(ctx context.Context, s *quotes.Service) error { return none(s.Resend(ctx, x.tenant, x.quote.ID)) },
		"revise": func(ctx context.Context, s *quotes.Service) error {
			return none(s.Revise(ctx, x.tenant, x.quote.ID, "", w))
		},
		"withdraw": func(ctx context.Context, s *quotes.Service) error {
			return none(s.Withdraw(ctx, x.tenant, x.quote.ID))
		},
		"lapse": func(ctx context.Context, s *quotes.Service) error { return s.Lapse(ctx) },
		"erase": func(ctx context.Context, _ *quotes.Service) error {
			return none(x.tenants.EraseCustomer(ctx, x.tenant, x.customer, usage.Erase, quotes.Forget, billing.Forget, portal.Forget, exports.Forget))
		},
		"suspend": func(ctx context.Context, _ *quotes.Service) error {
			return none(x.tenants.SuspendCustomer(ctx, x.tenant, x.customer))
		},
		"rename": func(ctx context.Context, _ *quotes.Service) error {
			name := "Marlow & Finch " + uuid.NewString()
			return none(x.tenants.ChangeCustomer(ctx, x.tenant, x.customer, tenants.CustomerChange{Name: &name}))
		},
		"cancel": func(ctx context.Context, _ *quotes.Service) error {
			return none(x.billing.Cancel(ctx, x.tenant, x.sub.ID))
		},
		"end": func(ctx context.Context, _ *quotes.Service) error {
			return none(x.billing.End(ctx, x.tenant, x.sub.ID))
		},
		"override": func(ctx context.Context, _ *quotes.Service) error {
			return none(x.billing.AddOverride(ctx, x.tenant, billing.NewOverride{
				Customer: x.customer, Reason: "r",
				Limit: limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 1_000_000},
			}))
		},
	}
}

func TestWhatIsDoneToAQuoteAndItsCustomerAtOnceWaitsForNobodyInACircle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	for round := range 25 {
		x := r.struggle(round)
		if round%2 == 1 {
			r.pass(32 * 24 * time.Hour) // a period is over, and so is the quote
		}
		doings, began := x.doings(), time.Now()
		var all sync.WaitGroup
		for name, f := range doings {
			if random.IntN(3) == 0 {
				continue
			}
			all.Go(func() {
				if err := f(t.Context(), r.quotes[len(name)%2]); err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
					t.Errorf("round %d, %s: %v", round, name, err)
				}
			})
		}
		all.Wait()
		if d := time.Since(began); d > 900*time.Millisecond {
			t.Logf("round %d took %v", round, d)
		}
	}
	if n := r.count(`select deadlocks from pg_stat_database where datname = current_database() and $1::uuid is not null`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func TestALinkThatIsSentWhileItsCustomerIsErasedNamesNobodyAfterwards(t *testing.T) {
	r := newRig(t)
	for round := range 20 {
		x := r.struggle(round)
		email := fmt.Sprintf("marlow%d@marlow.example", round)
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if _, err := r.doors[i%2].SendLink(t.Context(), r.tenant, x.customer); err != nil && code(err) != "customer_without_email" {
					t.Errorf("sent: %v", err)
				}
			})
			if i != 2 {
				continue
			}
			all.Go(func() {
				if err := x.doings()["erase"](t.Context(), r.quotes[0]); err != nil {
					t.Errorf("erased: %v", err)
				}
			})
		}
		all.Wait()
		if n := r.count(`select (select count(*) from portal_links where tenant_id = $1 and email = $2) + (select count(*) from mails where tenant_id = $1 and recipient = $2)`, email); n != 0 {
			t.Fatalf("round %d: %d links and mails are left", round, n)
		}
	}
}
