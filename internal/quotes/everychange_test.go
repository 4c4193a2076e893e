package quotes_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/portal"
	"weir/internal/quotes"
	"weir/internal/tenants"
)

// process is what one server asks.
type process struct {
	billing *billing.Service
	quotes  *quotes.Service
	portal  *portal.Service
}

// ask is a change that is asked for, any number of times.
type ask func(ctx context.Context, p process) error

// once are the changes of state, by the method that makes them. Each begins with
// something new and is asked for twenty times at once on two servers; whoever comes
// late is told nothing, or one of these codes.
var once = map[string]struct {
	begin func(s subject) ask
	late  string
}{
	"billing.Subscribe": {func(s subject) ask {
		x := s.customer()
		return func(ctx context.Context, p process) error {
			return only(p.billing.Subscribe(ctx, s.tenant, x, s.plan.ID))
		}
	}, "already_subscribed"},
	"billing.Onboard": {func(s subject) ask {
		o := billing.Onboarding{Customer: tenants.NewCustomer{Name: "Kestrel"}, Plan: s.plan.ID, Key: tenants.NewAPIKey{Name: "Own"}, Asked: s.clock()}
		return func(ctx context.Context, p process) error {
			return only(p.billing.Onboard(ctx, s.tenants, s.tenant, o))
		}
	}, "already_made"},
	"billing.Move": {func(s subject) ask {
		sub := s.subscription()
		return func(ctx context.Context, p process) error {
			return only(p.billing.Move(ctx, s.tenant, sub.Customer, s.large.ID))
		}
	}, "already_on_plan"},
	"billing.ChangeBy": {func(s subject) ask {
		sub := s.subscription()
		c, err := s.billing.PreviewChange(s.t.Context(), s.tenant, sub.ID, s.large.ID, "")
		must(s.t, err)
		return func(ctx context.Context, p process) error {
			return only(p.billing.ChangeBy(ctx, s.tenant, sub.ID, c.Token))
		}
	}, ""},
	"billing.ChangeBy, at the period's end": {func(s subject) ask {
		sub := s.subscription()
		c, err := s.billing.PreviewChange(s.t.Context(), s.tenant, sub.ID, s.large.ID, billing.AtPeriodEnd)
		must(s.t, err)
		return func(ctx context.Context, p process) error {
			return only(p.billing.ChangeBy(ctx, s.tenant, sub.ID, c.Token))
		}
	}, ""},
	"billing.StayOnPlan": {func(s subject) ask {
		sub := s.subscription()
		c, err := s.billing.PreviewChange(s.t.Context(), s.tenant, sub.ID, s.large.ID, billing.AtPeriodEnd)
		must(s.t, err)
		must(s.t, only(s.billing.ChangeBy(s.t.Context(), s.tenant, sub.ID, c.Token)))
		return func(ctx context.Context, p process) error { return only(p.billing.StayOnPlan(ctx, s.tenant, sub.ID)) }
	}, ""},
	"billing.Cancel": {func(s subject) ask {
		sub := s.subscription()
		return func(ctx context.Context, p process) error { return only(p.billing.Cancel(ctx, s.tenant, sub.ID)) }
	}, ""},
	"billing.Keep": {func(s subject) ask {
		sub := s.subscription()
		must(s.t, only(s.billing.Cancel(s.t.Context(), s.tenant, sub.ID)))
		return func(ctx context.Context, p process) error { return only(p.billing.Keep(ctx, s.tenant, sub.ID)) }
	}, ""},
	"billing.End": {func(s subject) ask {
		sub := s.subscription()
		return func(ctx context.Context, p process) error { return only(p.billing.End(ctx, s.tenant, sub.ID)) }
	}, ""},
	"billing.SetPastDue": {func(s subject) ask {
		sub := s.subscription()
		return func(ctx context.Context, p process) error {
			return only(p.billing.SetPastDue(ctx, s.tenant, sub.ID, true))
		}
	}, ""},
	"billing.SetPastDue, settled": {func(s subject) ask {
		sub := s.subscription()
		must(s.t, only(s.billing.SetPastDue(s.t.Context(), s.tenant, sub.ID, true)))
		return func(ctx context.Context, p process) error {
			return only(p.billing.SetPastDue(ctx, s.tenant, sub.ID, false))
		}
	}, ""},
	"billing.Suspend": {func(s subject) ask {
		sub := s.subscription()
		return func(ctx context.Context, p process) error { return only(p.billing.Suspend(ctx, s.tenant, sub.ID)) }
	}, ""},
	"billing.Resume": {func(s subject) ask {
		sub := s.subscription()
		must(s.t, only(s.billing.Suspend(s.t.Context(), s.tenant, sub.ID)))
		return func(ctx context.Context, p process) error { return only(p.billing.Resume(ctx, s.tenant, sub.ID)) }
	}, ""},
	"billing.AddOverride": {func(s subject) ask {
		sub := s.subscription()
		return func(ctx context.Context, p process) error {
			return only(p.billing.AddOverride(ctx, s.tenant, s.override(sub)))
		}
	}, "override_overlaps"},
	"billing.EndOverride": {func(s subject) ask {
		o, err := s.billing.AddOverride(s.t.Context(), s.tenant, s.override(s.subscription()))
		must(s.t, err)
		s.pass(time.Hour)
		return func(ctx context.Context, p process) error { return only(p.billing.EndOverride(ctx, s.tenant, o.ID)) }
	}, ""},
	"billing.EndOverride, before it begins": {func(s subject) ask {
		n, from := s.override(s.subscription()), s.clock().Add(time.Hour)
		n.From = &from
		o, err := s.billing.AddOverride(s.t.Context(), s.tenant, n)
		must(s.t, err)
		return func(ctx context.Context, p process) error { return only(p.billing.EndOverride(ctx, s.tenant, o.ID)) }
	}, ""},
	"billing.AddPlan": {func(s subject) ask {
		name := "Plan " + uuid.NewString()
		return func(ctx context.Context, p process) error {
			return only(p.billing.AddPlan(ctx, s.tenant, name, terms(1, "1.00")))
		}
	}, "name_taken"},
	"billing.AddPublished": {func(s subject) ask {
		name := "Plan " + uuid.NewString()
		return func(ctx context.Context, p process) error {
			return only(p.billing.AddPublished(ctx, s.tenant, name, terms(1, "1.00")))
		}
	}, "name_taken"},
	"billing.SaveDraft": {func(s subject) ask {
		p, err := s.billing.AddPlan(s.t.Context(), s.tenant, "Plan "+uuid.NewString(), terms(1, "1.00"))
		must(s.t, err)
		return func(ctx context.Context, x process) error {
			return only(x.billing.SaveDraft(ctx, s.tenant, p.ID, p.Version.Tag(), terms(2, "2.00")))
		}
	}, "version_changed"},
	"billing.Publish": {func(s subject) ask {
		p := s.draft()
		return func(ctx context.Context, x process) error { return only(x.billing.Publish(ctx, s.tenant, p)) }
	}, ""},
	"billing.Retire": {func(s subject) ask {
		p, err := s.billing.AddPublished(s.t.Context(), s.tenant, "Plan "+uuid.NewString(), terms(1, "1.00"))
		must(s.t, err)
		return func(ctx context.Context, x process) error { return only(x.billing.Retire(ctx, s.tenant, p.ID)) }
	}, ""},
	"billing.MoveMany": {func(s subject) ask {
		p := s.draft()
		must(s.t, only(s.billing.Publish(s.t.Context(), s.tenant, p)))
		for range 3 {
			must(s.t, only(s.billing.Subscribe(s.t.Context(), s.tenant, s.customer(), p)))
		}
		must(s.t, only(s.billing.AddVersion(s.t.Context(), s.tenant, p, terms(7, "7.00"))))
		must(s.t, only(s.billing.Publish(s.t.Context(), s.tenant, p)))
		m, err := s.billing.PreviewMany(s.t.Context(), s.tenant, billing.ManyMove{Plan: p})
		must(s.t, err)
		return func(ctx context.Context, x process) error { return only(x.billing.MoveMany(ctx, s.tenant, p, m.Token)) }
	}, ""},
	"billing.Turner": {func(s subject) ask {
		sub := s.subscription()
		c, err := s.billing.PreviewChange(s.t.Context(), s.tenant, sub.ID, s.large.ID, billing.AtPeriodEnd)
		must(s.t, err)
		must(s.t, only(s.billing.ChangeBy(s.t.Context(), s.tenant, sub.ID, c.Token)))
		s.pass(sub.Current.End.Sub(s.clock()))
		return func(ctx context.Context, x process) error {
			return billing.NewTurner(x.billing, slog.New(slog.DiscardHandler)).Turn(ctx)
		}
	}, ""},
	"quotes.Send": {func(s subject) ask {
		q := s.add(s.wanted())
		return func(ctx context.Context, p process) error { return only(p.quotes.Send(ctx, s.tenant, q.ID, "")) }
	}, ""},
	"quotes.Revise": {func(s subject) ask {
		q, _ := s.sent(s.wanted())
		w := s.wanted()
		w.Note = "another"
		return func(ctx context.Context, p process) error {
			return only(p.quotes.Revise(ctx, s.tenant, q.ID, q.Tag(), w))
		}
	}, "quote_changed"},
	"quotes.Discard": {func(s subject) ask {
		q, _ := s.sent(s.wanted())
		must(s.t, only(s.quotes[0].Revise(s.t.Context(), s.tenant, q.ID, "", s.wanted())))
		return func(ctx context.Context, p process) error { return only(p.quotes.Discard(ctx, s.tenant, q.ID)) }
	}, ""},
	"quotes.Withdraw": {func(s subject) ask {
		q, _ := s.sent(s.wanted())
		return func(ctx context.Context, p process) error { return only(p.quotes.Withdraw(ctx, s.tenant, q.ID)) }
	}, ""},
	"quotes.Accept": {func(s subject) ask {
		_, token := s.sent(s.wanted())
		return func(ctx context.Context, p process) error { return only(p.quotes.Accept(ctx, token, yes(1))) }
	}, ""},
	"quotes.Decline": {func(s subject) ask {
		_, token := s.sent(s.wanted())
		return func(ctx context.Context, p process) error { return only(p.quotes.Decline(ctx, token, 1, "no")) }
	}, ""},
	"quotes.Lapse": {func(s subject) ask {
		q, _ := s.sent(s.wanted())
		s.pass(q.Offer.ValidUntil.Sub(s.clock()))
		return func(ctx context.Context, p process) error { return p.quotes.Lapse(ctx) }
	}, ""},
	"portal.SignIn": {func(s subject) ask {
		link := s.way()
		return func(ctx context.Context, p process) error { return only(p.portal.SignIn(ctx, link, "", "")) }
	}, "token_invalid"},
	"portal.SignOut": {func(s subject) ask {
		in, err := s.doors[0].SignIn(s.t.Context(), s.way(), "", "")
		must(s.t, err)
		return func(ctx context.Context, p process) error { return p.portal.SignOut(ctx, in.Token) }
	}, ""},
	"portal.EndSessions": {func(s subject) ask {
		in, err := s.doors[0].SignIn(s.t.Context(), s.way(), "", "")
		must(s.t, err)
		v, err := s.doors[0].Visitor(s.t.Context(), in.Token, true)
		must(s.t, err)
		return func(ctx context.Context, p process) error {
			return only(p.portal.EndSessions(ctx, s.tenant, v.Customer))
		}
	}, ""},
}

// other are the methods that change nothing, and those that are asked for another
// one each time: of mails, links, looks and drafts.
var other = map[string]string{
	"billing": "Sign PreviewChange ContractOf Contracts Versions FindPlans History PreviewMany Override Overrides Plan PlanTx Plans Supposed Standings " +
		"Subscribed Subscription Subscriptions Periods Suppose PartyOf TermsOf TermsTx OnPlan" + // read
		" QuotedTx PublishQuotedTx SubscribeVersionTx SubscribeTx" + // part of another's
		" AddVersion", // another draft
	"quotes": "Latest Link Capacity Quote Quotes Versions Run Open Add Resend",
	"portal": "CanMail Visitor Ask MakeLink SendLink OweLink",
}

func TestEveryChangeOfStateIsMadeOnceHoweverOftenItIsAskedAtOnce(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(once)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t)
			do := once[name].begin(s)
			before := s.rows()
			must(t, do(t.Context(), s.process(0)))
			want := difference(before, s.rows())

			s = newSubject(t)
			do = once[name].begin(s)
			before = s.rows()
			late := s.twenty(do)
			must(t, joined(s.unlike(late, once[name].late)))
			must(t, joined(s.unlike([]error{do(t.Context(), s.process(1))}, once[name].late)))
			if len(slices.DeleteFunc(late, func(err error) bool { return err != nil })) == 0 {
				t.Error("nobody was told that it is done")
			}
			if got := difference(before, s.rows()); !maps.Equal(got, want) {
				t.Errorf("asked once it leaves %v, and often %v", want, got)
			}
		})
	}
}

func TestEveryMethodThatCouldChangeAStateIsAsked(t *testing.T) {
	for of, x := range map[string]any{"billing": &billing.Service{}, "quotes": &quotes.Service{}, "portal": &portal.Service{}} {
		for method := range reflect.TypeOf(x).Methods() {
			isIn := func(name string) bool { return strings.HasPrefix(name, of+"."+method.Name) }
			if !slices.Contains(strings.Fields(other[of]), method.Name) && !slices.ContainsFunc(slices.Collect(maps.Keys(once)), isIn) {
				t.Errorf("%s.%s: say what it does when it is asked twice and at once", of, method.Name)
			}
		}
	}
}

// subject is a tenant to which things are done.
type subject struct {
	*rig
	large billing.Plan
}

func newSubject(t *testing.T) subject {
	t.Helper()
	s := subject{rig: newRig(t)}
	var err error
	s.large, err = s.billing.AddPublished(t.Context(), s.tenant, "Large", terms(900, "99.00"))
	must(t, err)
	s.sent(s.wanted()) // with it comes the tenant's data key
	return s
}

func (s subject) process(i int) process { return process{s.books[i], s.quotes[i], s.doors[i]} }

func (s subject) twenty(do ask) []error {
	errs := make([]error, 20)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = do(s.t.Context(), s.process(i%2)) })
	}
	all.Wait()
	return errs
}

// unlike are the errors that are not of a code.
func (s subject) unlike(errs []error, late string) (other []error) {
	for _, err := range errs {
		if err != nil && (late == "" || code(err) != late) {
			other = append(other, fmt.Errorf("late: %w", err))
		}
	}
	return other
}

// rows counts the tenant's rows, by table.
func (s subject) rows() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	must(s.t, s.pg.App.WithTenant(s.t.Context(), s.tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), `
			select c.relname::text from pg_class c
			join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
			where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace and has_table_privilege(c.oid, 'select')`)
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, table := range tables {
			var n int
			if err := tx.QueryRow(s.t.Context(), `select count(*) from `+table+` where tenant_id = $1`, s.tenant).Scan(&n); err != nil {
				return err
			}
			counts[table] = n
		}
		return nil
	}))
	return counts
}

func difference(before, after map[string]int) map[string]int {
	out := map[string]int{}
	for table, n := range after {
		if n != before[table] {
			out[table] = n - before[table]
		}
	}
	return out
}

func (s subject) customer() uuid.UUID {
	s.t.Helper()
	c, err := s.tenants.AddCustomer(s.t.Context(), s.tenant, tenants.NewCustomer{Name: "Kestrel"})
	must(s.t, err)
	return c.ID
}

func (s subject) subscription() billing.Subscription {
	s.t.Helper()
	sub, err := s.billing.Subscribe(s.t.Context(), s.tenant, s.customer(), s.plan.ID)
	must(s.t, err)
	return sub
}

func (s subject) draft() uuid.UUID {
	s.t.Helper()
	p, err := s.billing.AddPlan(s.t.Context(), s.tenant, "Plan "+uuid.NewString(), terms(1, "1.00"))
	must(s.t, err)
	return p.ID
}

func (s subject) override(sub billing.Subscription) billing.NewOverride {
	return billing.NewOverride{Customer: sub.Customer, Reason: "a fair", Limit: limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 700}}
}

// way is the token of a link into a customer's portal.
func (s subject) way() string {
	s.t.Helper()
	link, err := s.doors[0].MakeLink(s.t.Context(), s.tenant, s.customer())
	must(s.t, err)
	return strings.TrimPrefix(link.URL, "https://weir.example/portal/in/")
}

func only(_ any, err error) error { return err }
