package billing_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
)

// number is what a query for one gives.
func (l lives) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	must(t, l.db.WithTenant(t.Context(), l.tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), sql, append([]any{l.tenant}, args...)...).Scan(&n)
	}))
	return n
}

func TestWhatIsDoneToSubscriptionsAtOnceWaitsForNobodyInACircleAndLeavesOneHistory(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := newLives(t, "2026-01-31T09:30:00Z")
	ctx := t.Context()
	none := func(_ any, err error) error { return err }
	other := l.sold(t, "Other", priced("5.00", 9))
	for round := range 12 {
		p := l.sold(t, fmt.Sprintf("Team %d", round), priced("10.00", 1))
		var subs []billing.Subscription
		for range 4 {
			subs = append(subs, l.on(t, p))
		}
		_, err := l.AddVersion(ctx, l.tenant, p.ID, priced("20.00", 2))
		must(t, err)
		_, err = l.Publish(ctx, l.tenant, p.ID)
		must(t, err)
		many, err := l.PreviewMany(ctx, l.tenant, billing.ManyMove{Plan: p.ID})
		must(t, err)
		var changes []string
		for _, sub := range subs {
			c, err := l.PreviewChange(ctx, l.tenant, sub.ID, other.ID, "")
			must(t, err)
			changes = append(changes, c.Token)
		}
		if round%2 == 1 {
			l.until(subs[0].Current.End.Add(-time.Millisecond))
			many, err = l.PreviewMany(ctx, l.tenant, billing.ManyMove{Plan: p.ID})
			must(t, err)
			l.wait(time.Millisecond) // everything is due
		}
		var doings []func(*billing.Service) error
		for i, sub := range subs {
			doings = append(doings,
				func(s *billing.Service) error { return none(s.ChangeBy(ctx, l.tenant, sub.ID, changes[i])) },
				func(s *billing.Service) error { return none(s.Cancel(ctx, l.tenant, sub.ID)) },
				func(s *billing.Service) error { return none(s.StayOnPlan(ctx, l.tenant, sub.ID)) },
				func(s *billing.Service) error { return none(s.Move(ctx, l.tenant, sub.Customer, p.ID)) },
				func(s *billing.Service) error {
					return none(s.AddOverride(ctx, l.tenant, billing.NewOverride{Customer: sub.Customer, Reason: "r", Limit: limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 1_000_000}}))
				})
		}
		doings = append(doings,
			func(s *billing.Service) error { return none(s.MoveMany(ctx, l.tenant, p.ID, many.Token)) },
			func(s *billing.Service) error {
				return none(s.PreviewMany(ctx, l.tenant, billing.ManyMove{Plan: p.ID}))
			},
			func(s *billing.Service) error { return billing.NewTurner(s, slog.New(slog.DiscardHandler)).Turn(ctx) },
			func(s *billing.Service) error { return none(s.SaveDraft(ctx, l.tenant, p.ID, "", priced("30.00", 3))) },
			func(s *billing.Service) error { return none(s.Publish(ctx, l.tenant, p.ID)) },
			func(s *billing.Service) error { return none(s.Retire(ctx, l.tenant, p.ID)) })
		var all sync.WaitGroup
		for i, f := range doings {
			if random.IntN(4) == 0 {
				continue
			}
			s := l.Service
			if i%2 == 1 {
				s = l.other
			}
			all.Go(func() {
				if err := f(s); err != nil && !fault.Is(err, fault.Conflict) {
					t.Errorf("round %d, doing %d: %v", round, i, err)
				}
			})
		}
		all.Wait()
	}
	if n := l.number(t, `select deadlocks from pg_stat_database where datname = current_database() and $1::uuid is not null`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	l.tells(t)
}

// tells fails where changes, periods, audit and what subscriptions are now say
// different things.
func (l lives) tells(t *testing.T) {
	t.Helper()
	for what, sql := range map[string]string{
		"changes do not begin where the one before ended": `
			select count(*) from (
			    select from_version_id, lag(to_version_id) over (partition by subscription_id order by changed_at) as before
			    from subscription_changes where tenant_id = $1) c
			where before is not null and before <> from_version_id`,
		"subscriptions are not where their last change led": `
			select count(*) from subscriptions s where s.tenant_id = $1 and s.plan_version_id <> (
			    select to_version_id from subscription_changes c where c.tenant_id = $1 and c.subscription_id = s.subscription_id order by changed_at desc limit 1)`,
		"periods do not begin where the one before ended": `
			select count(*) from (
			    select starts_at, lag(ends_at) over (partition by subscription_id order by starts_at) as before from subscription_periods where tenant_id = $1) p
			where before <> starts_at`,
		"changes more or fewer than the audit says": `
			select abs((select count(*) from subscription_changes where tenant_id = $1) - (select count(*) from audit_entries where tenant_id = $1 and action = 'subscription.changed'))`,
		"periods more or fewer than the audit says": `
			select abs((select count(*) from subscription_periods where tenant_id = $1)
			    - (select count(*) from audit_entries where tenant_id = $1 and action in ('subscription.created', 'subscription.renewed', 'subscription.activated')))`,
	} {
		if n := l.number(t, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}

func TestTwoChangesOfOneInstantAreBothMadeAndStandInTheirOrder(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	a, b, c := l.sold(t, "A", priced("10.00", 1)), l.sold(t, "B", priced("20.00", 2)), l.sold(t, "C", priced("30.00", 3))
	sub := l.on(t, a)
	l.wait(24 * time.Hour)
	for _, p := range []billing.Plan{b, c, a, b} {
		if _, err := l.Move(t.Context(), l.tenant, sub.Customer, p.ID); err != nil {
			t.Fatal(err)
		}
	}
	l.tells(t)
	eras, err := l.History(t.Context(), l.tenant, sub.Customer)
	must(t, err)
	if last := eras[len(eras)-1]; last.Version.ID != b.Version.ID || eras[0].Version.ID != a.Version.ID {
		t.Errorf("it began on %s and ended on %s", eras[0].Plan, last.Plan)
	}
	if at, is := billing.At(eras, l.now().Add(time.Millisecond)); !is || at.Version.ID != b.Version.ID {
		t.Errorf("now it is on %+v", at)
	}
}

func TestAnOverrideThatHasNotBegunIsEndedOnceAndStandsInNobodysWay(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	sub := l.on(t, l.sold(t, "Small", requests(500)))
	good := limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 800}
	from := l.now().Add(24 * time.Hour)
	o, err := l.AddOverride(t.Context(), l.tenant, billing.NewOverride{Customer: sub.Customer, Limit: good, Reason: "a fair", From: &from})
	must(t, err)
	l.twenty(t, func(s *billing.Service) error { _, err := s.EndOverride(t.Context(), l.tenant, o.ID); return err })
	if n := l.audited(t, "override.ended"); n != 1 {
		t.Errorf("it was ended %d times", n)
	}
	if _, err := l.AddOverride(t.Context(), l.tenant, billing.NewOverride{Customer: sub.Customer, Limit: good, Reason: "longer"}); err != nil {
		t.Errorf("one that spans it: %v", err)
	}
}

func TestAMoveOfManyHoldsOnlyWhileNobodyOfThemWentAwayAndCameBack(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	other, p := l.sold(t, "Other", priced("5.00", 9)), l.sold(t, "Team", priced("10.00", 1))
	sub := l.on(t, p)
	_, err := l.AddVersion(t.Context(), l.tenant, p.ID, priced("20.00", 2))
	must(t, err)
	old := p.Version.ID
	p, err = l.Publish(t.Context(), l.tenant, p.ID)
	must(t, err)
	m, err := l.PreviewMany(t.Context(), l.tenant, billing.ManyMove{Plan: p.ID})
	must(t, err)
	l.wait(time.Minute)
	_, err = l.Move(t.Context(), l.tenant, sub.Customer, other.ID)
	must(t, err)
	must(t, l.db.WithTenant(t.Context(), l.tenant, func(tx pgx.Tx) error {
		_, err := l.SubscribeVersionTx(t.Context(), tx, l.tenant, sub.Customer, old)
		return err
	}))
	if _, err := l.MoveMany(t.Context(), l.tenant, p.ID, m.Token); err == nil || fault.Of(err).Code != "preview_stale" {
		t.Errorf("got %v", err)
	}
	l.tells(t)
}

func TestALookAtAMoveOfManyWhosePeriodsAreOverWaitsForNobodyInACircle(t *testing.T) {
	l := newLives(t, "2026-01-31T09:30:00Z")
	for round := range 5 {
		p := l.sold(t, fmt.Sprintf("Team %d", round), priced("10.00", 1))
		var subs []billing.Subscription
		for range 12 {
			subs = append(subs, l.on(t, p))
		}
		_, err := l.AddVersion(t.Context(), l.tenant, p.ID, priced("20.00", 2))
		must(t, err)
		_, err = l.Publish(t.Context(), l.tenant, p.ID)
		must(t, err)
		l.until(subs[11].Current.End)
		errs := make(chan error)
		go func() {
			_, err := l.PreviewMany(t.Context(), l.tenant, billing.ManyMove{Plan: p.ID})
			errs <- err
		}()
		for _, sub := range subs {
			go func() {
				_, err := l.other.Cancel(t.Context(), l.tenant, sub.ID)
				errs <- err
			}()
		}
		for range 13 {
			must(t, <-errs)
		}
	}
}
