package billing_test

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/outbound"
	"weir/internal/postgres"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

// lives is two services on one database, with one clock that tests move.
type lives struct {
	books
	other  *billing.Service
	turner *billing.Turner
	db     *postgres.DB
	mu     *sync.Mutex
	at     *time.Time
}

func newLives(t *testing.T, start string) lives {
	t.Helper()
	at, err := time.Parse(time.RFC3339, start)
	must(t, err)
	l := lives{mu: &sync.Mutex{}, at: &at}
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	must(t, err)
	guard := outbound.New(outbound.Policy{})
	t.Cleanup(guard.Close)
	s := tenants.New(db.App, ring, guard, catalogue.NewClient(guard), l.now)
	made, err := s.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "Europe/Berlin", Currency: "EUR"})
	must(t, err)
	l.books, l.other, l.db = books{billing.New(db.App, l.now), s, made.Tenant.ID}, billing.New(db.App, l.now), db.App
	key := []byte("of both")
	l.Sign(key)
	l.other.Sign(key)
	l.turner = billing.NewTurner(l.other, slog.New(slog.DiscardHandler))
	return l
}

func (l lives) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.at
}

func (l lives) wait(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.at = l.at.Add(d)
}

func (l lives) until(t time.Time) { l.wait(t.Sub(l.now())) }

func priced(fee string, n int64) billing.NewVersion {
	v := requests(n)
	v.BaseFee = &money.Amount{Amount: fee, Currency: "EUR"}
	return v
}

func (l lives) sold(t *testing.T, name string, n billing.NewVersion) billing.Plan {
	t.Helper()
	p, err := l.AddPublished(t.Context(), l.tenant, name, n)
	must(t, err)
	return p
}

func (l lives) on(t *testing.T, p billing.Plan) billing.Subscription {
	t.Helper()
	customer := l.customerOn(t, p.ID)
	page, err := l.Subscriptions(t.Context(), l.tenant, billing.SubscriptionFilter{Customer: customer}, uuid.Nil, 1)
	must(t, err)
	return page.Items[0]
}

func (l lives) read(t *testing.T, sub billing.Subscription) billing.Subscription {
	t.Helper()
	sub, err := l.Subscription(t.Context(), l.tenant, sub.ID)
	must(t, err)
	return sub
}

// audited is how often each action stands in the audit.
func (l lives) audited(t *testing.T, action string) (n int) {
	t.Helper()
	must(t, l.db.WithTenant(t.Context(), l.tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from audit_entries where tenant_id = $1 and action = $2`, l.tenant, action).Scan(&n)
	}))
	return n
}

// twenty runs f twenty times at once, half of them on the other service.
func (l lives) twenty(t *testing.T, f func(s *billing.Service) error) {
	t.Helper()
	var group sync.WaitGroup
	errs := make(chan error, 20)
	for i := range 20 {
		s := l.Service
		if i%2 == 1 {
			s = l.other
		}
		group.Go(func() { errs <- f(s) })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
}

func TestPeriodsOpenAsTheyBeginAndAfterAnOutageAllOfThem(t *testing.T) {
	l := newLives(t, "2026-01-31T09:30:00Z")
	sub := l.on(t, l.sold(t, "Team", requests(1)))
	l.until(sub.Current.End.Add(-time.Microsecond))
	must(t, l.turner.Turn(t.Context()))
	if got := l.read(t, sub); got.Current != sub.Current {
		t.Fatalf("it was turned before its end: %+v", got.Current)
	}
	l.until(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	l.twenty(t, func(s *billing.Service) error {
		return billing.NewTurner(s, slog.New(slog.DiscardHandler)).Turn(t.Context())
	})
	list, err := l.Periods(t.Context(), l.tenant, sub.ID, 10)
	must(t, err)
	var starts []string
	for _, p := range list {
		starts = append(starts, p.Start.Format(time.RFC3339))
	}
	slices.Reverse(starts)
	want := []string{"2026-01-31T09:30:00Z", "2026-02-28T09:30:00Z", "2026-03-31T08:30:00Z", "2026-04-30T08:30:00Z"}
	if diff := cmp.Diff(want, starts); diff != "" {
		t.Fatal(diff)
	}
	if n := l.audited(t, "subscription.renewed"); n != 3 {
		t.Errorf("%d audit entries of three new periods", n)
	}
}

func TestALaterZoneMovesNoStoredPeriod(t *testing.T) {
	l := newLives(t, "2026-01-15T10:00:00Z")
	sub := l.on(t, l.sold(t, "Team", requests(1)))
	zone := "America/New_York"
	_, err := l.tenants.Change(t.Context(), l.tenant, tenants.TenantChange{Zone: &zone})
	must(t, err)
	l.until(sub.Current.End.Add(time.Hour))
	must(t, l.turner.Turn(t.Context()))
	list, err := l.Periods(t.Context(), l.tenant, sub.ID, 10)
	must(t, err)
	if list[1].End != sub.Current.End || list[0].Start != sub.Current.End || list[0].End.Format(time.RFC3339) != "2026-03-15T15:00:00Z" {
		t.Errorf("%+v", list)
	}
}

func TestATrialIsFollowedByBilledPeriodsAndIsMarked(t *testing.T) {
	l := newLives(t, "2026-01-31T09:30:00Z")
	n := priced("49.00", 1)
	n.TrialDays = 14
	sub := l.on(t, l.sold(t, "Team", n))
	if sub.Status != billing.Trialing || !sub.Current.Trial || sub.TrialEndsAt == nil || sub.TrialEndsAt.Format(time.RFC3339) != "2026-02-14T09:30:00Z" {
		t.Fatalf("%+v", sub)
	}
	dear := l.sold(t, "Dear", priced("99.00", 2))
	c, err := l.PreviewChange(t.Context(), l.tenant, sub.ID, dear.ID, "")
	must(t, err)
	if len(c.Lines) != 0 || c.TotalMinor != 0 || c.NextFeeMinor != 9900 {
		t.Errorf("a change within a trial costs %+v", c.Lines)
	}
	l.until(*sub.TrialEndsAt)
	must(t, l.turner.Turn(t.Context()))
	got := l.read(t, sub)
	if got.Status != billing.Active || got.Current.Trial || got.Current.Number != 0 || got.Current.End.Format(time.RFC3339) != "2026-03-14T09:30:00Z" {
		t.Errorf("%+v", got)
	}
}

func TestEachChangeOfStateIsMadeOnceHoweverOftenItIsAsked(t *testing.T) {
	l := newLives(t, "2026-01-31T09:30:00Z")
	sub := l.on(t, l.sold(t, "Team", requests(1)))
	ctx := t.Context()
	for _, step := range []struct {
		action string
		do     func(*billing.Service) (billing.Subscription, error)
		want   billing.Status
	}{
		{"subscription.past_due", func(s *billing.Service) (billing.Subscription, error) {
			return s.SetPastDue(ctx, l.tenant, sub.ID, true)
		}, billing.PastDue},
		{"subscription.cancelled", func(s *billing.Service) (billing.Subscription, error) { return s.Cancel(ctx, l.tenant, sub.ID) }, billing.Cancelled},
		{"subscription.kept", func(s *billing.Service) (billing.Subscription, error) { return s.Keep(ctx, l.tenant, sub.ID) }, billing.PastDue},
		{"subscription.settled", func(s *billing.Service) (billing.Subscription, error) {
			return s.SetPastDue(ctx, l.tenant, sub.ID, false)
		}, billing.Active},
		{"subscription.suspended", func(s *billing.Service) (billing.Subscription, error) { return s.Suspend(ctx, l.tenant, sub.ID) }, billing.Active},
		{"subscription.resumed", func(s *billing.Service) (billing.Subscription, error) { return s.Resume(ctx, l.tenant, sub.ID) }, billing.Active},
		{"subscription.ended", func(s *billing.Service) (billing.Subscription, error) { return s.End(ctx, l.tenant, sub.ID) }, billing.Ended},
	} {
		l.twenty(t, func(s *billing.Service) error { _, err := step.do(s); return err })
		if got := l.read(t, sub); got.Status != step.want {
			t.Fatalf("after %s it is %s", step.action, got.Status)
		}
		if n := l.audited(t, step.action); n != 1 {
			t.Errorf("%s: %d audit entries", step.action, n)
		}
	}
	if _, err := l.Cancel(ctx, l.tenant, sub.ID); fault.Of(err).Code != "subscription_ended" {
		t.Errorf("of an ended one: %v", err)
	}
}

func TestACancelledSubscriptionEndsWithItsPeriodEvenIfNobodyTurnsIt(t *testing.T) {
	l := newLives(t, "2026-01-31T09:30:00Z")
	sub := l.on(t, l.sold(t, "Team", requests(1)))
	_, err := l.Cancel(t.Context(), l.tenant, sub.ID)
	must(t, err)
	holds := func() error {
		c, err := l.ContractOf(t.Context(), l.tenant, sub.Customer)
		must(t, err)
		return c.RequireActive()
	}
	must(t, holds())
	l.until(sub.Current.End)
	if err := holds(); fault.Of(err).Code != "no_active_subscription" {
		t.Errorf("at its end: %v", err)
	}
	must(t, l.turner.Turn(t.Context()))
	if got := l.read(t, sub); got.Status != billing.Ended || !got.EndedAt.Equal(sub.Current.End) {
		t.Errorf("%+v", got)
	}
	if _, err := l.Keep(t.Context(), l.tenant, sub.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("kept after its end: %v", err)
	}
}

func TestAnUpgradeIsProratedToTheSecondAndMadeOnceByItsPreview(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z") // a period of 30 days
	small, large := l.sold(t, "Small", priced("10.00", 1)), l.sold(t, "Large", priced("40.00", 9))
	sub := l.on(t, small)
	l.wait(10 * 24 * time.Hour)
	c, err := l.PreviewChange(t.Context(), l.tenant, sub.ID, large.ID, "")
	must(t, err)
	if c.Direction != billing.Upgrade || c.When != billing.AtOnce || c.NextFeeMinor != 4000 || c.Before[0].Amount != 1 || c.After[0].Amount != 9 {
		t.Fatalf("%+v", c)
	}
	if diff := cmp.Diff([]billing.Line{{"proration", "Unused time on Small", -667}, {"proration", "Remaining time on Large", 2667}}, c.Lines); diff != "" {
		t.Error(diff)
	}
	l.wait(time.Minute)
	l.twenty(t, func(s *billing.Service) error {
		got, err := s.ChangeBy(t.Context(), l.tenant, sub.ID, c.Token)
		if err == nil && got.PlanVersion != large.Version.ID {
			t.Errorf("it is on %s", got.PlanVersion)
		}
		return err
	})
	if n := l.audited(t, "subscription.changed"); n != 1 {
		t.Errorf("%d changes", n)
	}
	eras, err := l.History(t.Context(), l.tenant, sub.Customer)
	must(t, err)
	if len(eras) != 2 || !eras[1].From.Equal(c.At) {
		t.Errorf("%+v", eras)
	}
}

func TestADowngradeWaitsForThePeriodsEndAndCanBeTakenBack(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	small, large := l.sold(t, "Small", priced("10.00", 1)), l.sold(t, "Large", priced("40.00", 9))
	sub := l.on(t, large)
	change := func() {
		t.Helper()
		c, err := l.PreviewChange(t.Context(), l.tenant, sub.ID, small.ID, "")
		must(t, err)
		if c.Direction != billing.Downgrade || c.When != billing.AtPeriodEnd || len(c.Lines) != 0 || !c.At.Equal(sub.Current.End) {
			t.Fatalf("%+v", c)
		}
		l.twenty(t, func(s *billing.Service) error {
			_, err := s.ChangeBy(t.Context(), l.tenant, sub.ID, c.Token)
			return err
		})
	}
	amount := func() int64 {
		c, err := l.ContractOf(t.Context(), l.tenant, sub.Customer)
		must(t, err)
		return c.Own[0].Amount
	}
	change()
	got, err := l.StayOnPlan(t.Context(), l.tenant, sub.ID)
	must(t, err)
	if got.Pending != uuid.Nil {
		t.Error("it was not taken back")
	}
	change()
	l.until(sub.Current.End.Add(-time.Second))
	if n := amount(); n != 9 {
		t.Errorf("before the end %d requests", n)
	}
	l.until(sub.Current.End)
	if n := amount(); n != 1 {
		t.Errorf("at the end, before the turn, %d requests", n)
	}
	must(t, l.turner.Turn(t.Context()))
	if got := l.read(t, sub); got.PlanVersion != small.Version.ID || got.Pending != uuid.Nil || amount() != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAPreviewThatNoLongerHoldsChangesNothingAndSaysWhy(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		meanwhile func(lives, billing.Subscription, billing.Plan) error
		code      string
	}{
		"another plan": {func(l lives, sub billing.Subscription, other billing.Plan) error {
			_, err := l.Move(ctx, l.tenant, sub.Customer, other.ID)
			return err
		}, "preview_stale"},
		"cancelled": {func(l lives, sub billing.Subscription, _ billing.Plan) error {
			_, err := l.Cancel(ctx, l.tenant, sub.ID)
			return err
		}, "preview_stale"},
		"a new period": {func(l lives, sub billing.Subscription, _ billing.Plan) error {
			l.until(sub.Current.End)
			return l.turner.Turn(ctx)
		}, "preview_stale"},
		"a quarter of an hour": {func(l lives, _ billing.Subscription, _ billing.Plan) error {
			l.wait(15 * time.Minute)
			return nil
		}, "preview_stale"},
		"ended": {func(l lives, sub billing.Subscription, _ billing.Plan) error {
			_, err := l.End(ctx, l.tenant, sub.ID)
			return err
		}, "subscription_ended"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLives(t, "2026-04-01T00:00:00Z")
			small, large, other := l.sold(t, "Small", priced("10.00", 1)), l.sold(t, "Large", priced("40.00", 9)), l.sold(t, "Other", priced("20.00", 4))
			sub := l.on(t, small)
			p, err := l.PreviewChange(ctx, l.tenant, sub.ID, large.ID, "")
			must(t, err)
			must(t, c.meanwhile(l, sub, other))
			before := l.read(t, sub)
			if _, err := l.other.ChangeBy(ctx, l.tenant, sub.ID, p.Token); err == nil || fault.Of(err).Code != c.code {
				t.Errorf("got %v", err)
			}
			if got := l.read(t, sub); got.Revision != before.Revision {
				t.Errorf("it was changed: %+v", got)
			}
		})
	}
}

func TestATokenIsOfItsSubscriptionAndTenantAlone(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	small, large := l.sold(t, "Small", priced("10.00", 1)), l.sold(t, "Large", priced("40.00", 9))
	one, two := l.on(t, small), l.on(t, small)
	p, err := l.PreviewChange(t.Context(), l.tenant, one.ID, large.ID, "")
	must(t, err)
	forged := []byte(p.Token)
	forged[len(forged)/2] ^= 1
	stranger := billing.New(l.db, l.now)
	for name, err := range map[string]error{
		"another subscription": second(l.ChangeBy(t.Context(), l.tenant, two.ID, p.Token)),
		"forged":               second(l.ChangeBy(t.Context(), l.tenant, one.ID, string(forged))),
		"nothing":              second(l.ChangeBy(t.Context(), l.tenant, one.ID, "")),
		"another key":          second(stranger.ChangeBy(t.Context(), l.tenant, one.ID, p.Token)),
	} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAnOverrideHoldsFromItsStartToItsVeryEnd(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	sub := l.on(t, l.sold(t, "Small", requests(500)))
	from, until := l.now().Add(time.Hour), l.now().Add(2*time.Hour)
	more := limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 800}
	o, err := l.AddOverride(t.Context(), l.tenant, billing.NewOverride{Customer: sub.Customer, Limit: more, Reason: "a launch", From: &from, Until: &until})
	must(t, err)
	day := limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 7}
	_, err = l.AddOverride(t.Context(), l.tenant, billing.NewOverride{Customer: sub.Customer, Limit: day, Reason: "trust", Until: &until})
	must(t, err)
	amounts := func() (out []int64) {
		c, err := l.ContractOf(t.Context(), l.tenant, sub.Customer)
		must(t, err)
		for _, x := range c.Own {
			out = append(out, x.Amount)
			if x.Scope.ID != sub.Customer {
				t.Errorf("placed at %+v", x.Scope)
			}
		}
		return out
	}
	for _, step := range []struct {
		at   time.Time
		want []int64
	}{
		{from.Add(-time.Microsecond), []int64{500, 7}},
		{from, []int64{800, 7}},
		{until.Add(-time.Microsecond), []int64{800, 7}},
		{until, []int64{500}},
	} {
		l.until(step.at)
		if diff := cmp.Diff(step.want, amounts()); diff != "" {
			t.Errorf("at %v: %s", step.at, diff)
		}
	}
	if _, err := l.EndOverride(t.Context(), l.tenant, o.ID); err != nil {
		t.Error(err)
	}
	if n := l.audited(t, "override.ended"); n != 0 {
		t.Error("one that was over was ended")
	}
}

func TestOfTwentyOverridesOfOneLimitOneIsMade(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	sub := l.on(t, l.sold(t, "Small", requests(500)))
	n := billing.NewOverride{Customer: sub.Customer, Reason: "a launch", Limit: limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 800}}
	l.twenty(t, func(s *billing.Service) error {
		_, err := s.AddOverride(t.Context(), l.tenant, n)
		if err != nil && fault.Of(err).Code == "override_overlaps" {
			return nil
		}
		return err
	})
	page, err := l.Overrides(t.Context(), l.tenant, sub.Customer, uuid.Nil, 10)
	must(t, err)
	if len(page.Items) != 1 {
		t.Fatalf("%d overrides", len(page.Items))
	}
	l.twenty(t, func(s *billing.Service) error {
		_, err := s.EndOverride(t.Context(), l.tenant, page.Items[0].ID)
		return err
	})
	if n := l.audited(t, "override.ended"); n != 1 {
		t.Errorf("%d ends", n)
	}
}

func TestAnOverrideNeedsAReasonALimitThatWorksAndAnEndToCome(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	sub := l.on(t, l.sold(t, "Small", requests(500)))
	good := limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 800}
	past := l.now().Add(-time.Second)
	for name, n := range map[string]billing.NewOverride{
		"/reason":       {Limit: good, Reason: "  "},
		"/limit/window": {Limit: limits.Limit{Dimension: limits.DimensionRequests, Window: "week", Amount: 1}, Reason: "r"},
		"/until":        {Limit: good, Reason: "r", Until: &past},
	} {
		n.Customer = sub.Customer
		_, err := l.AddOverride(t.Context(), l.tenant, n)
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Fields[0].Pointer != name {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

func TestManyAreMovedOnceOrNotAtAll(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	p := l.sold(t, "Team", priced("10.00", 1))
	var subs []billing.Subscription
	for range 5 {
		subs = append(subs, l.on(t, p))
	}
	_, err := l.Cancel(t.Context(), l.tenant, subs[4].ID)
	must(t, err)
	_, err = l.AddVersion(t.Context(), l.tenant, p.ID, priced("20.00", 2))
	must(t, err)
	p, err = l.Publish(t.Context(), l.tenant, p.ID)
	must(t, err)
	l.wait(24 * time.Hour)
	stalePreview, err := l.PreviewMany(t.Context(), l.tenant, billing.ManyMove{Plan: p.ID})
	must(t, err)
	if len(stalePreview.Moves) != 4 || len(stalePreview.Left) != 1 || stalePreview.TotalMinor != 4*966 {
		t.Fatalf("%d move, %d stay, for %d", len(stalePreview.Moves), len(stalePreview.Left), stalePreview.TotalMinor)
	}
	_, err = l.Move(t.Context(), l.tenant, subs[0].Customer, p.ID)
	must(t, err)
	if _, err := l.MoveMany(t.Context(), l.tenant, p.ID, stalePreview.Token); err == nil || fault.Of(err).Code != "preview_stale" {
		t.Errorf("one went meanwhile: %v", err)
	}
	m, err := l.PreviewMany(t.Context(), l.tenant, billing.ManyMove{Plan: p.ID, Customers: []uuid.UUID{subs[1].Customer, subs[2].Customer}})
	must(t, err)
	l.twenty(t, func(s *billing.Service) error {
		n, err := s.MoveMany(t.Context(), l.tenant, p.ID, m.Token)
		if err == nil && n != 2 {
			t.Errorf("%d were moved", n)
		}
		return err
	})
	if n := l.audited(t, "subscription.changed"); n != 3 {
		t.Errorf("%d changes", n)
	}
	if l.read(t, subs[3]).PlanVersion == p.Version.ID {
		t.Error("one was moved that was not meant")
	}
}

func TestARetiredPlanTakesNobodyAndKeepsWhoIsOnIt(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	p := l.sold(t, "Team", requests(1))
	sub := l.on(t, p)
	l.twenty(t, func(s *billing.Service) error { _, err := s.Retire(t.Context(), l.tenant, p.ID); return err })
	if n := l.audited(t, "plan_version.retired"); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	c, err := l.tenants.AddCustomer(t.Context(), l.tenant, tenants.NewCustomer{Name: "Late"})
	must(t, err)
	if _, err := l.Subscribe(t.Context(), l.tenant, c.ID, p.ID); err == nil || fault.Of(err).Code != "plan_not_published" {
		t.Errorf("somebody was put on it: %v", err)
	}
	if got := l.read(t, sub); got.PlanVersion != p.Version.ID || got.Status != billing.Active {
		t.Errorf("%+v", got)
	}
}

func TestTheDatabaseRefusesTransitionsAndChangesOfWhatWasSold(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	p := l.sold(t, "Team", requests(1))
	sub := l.on(t, p)
	_, err := l.End(t.Context(), l.tenant, sub.ID)
	must(t, err)
	for name, sql := range map[string]string{
		"an ended subscription": `update subscriptions set status = 'active', ended_at = null where tenant_id = $1`,
		"trial days":            `update plan_versions set trial_days = 3 where tenant_id = $1`,
		"a minimum":             `update plan_versions set minimum_minor = 3 where tenant_id = $1`,
		"a published draft":     `update plan_versions set status = 'draft' where tenant_id = $1`,
		"a period":              `update subscription_periods set ends_at = now() where tenant_id = $1`,
		"a version in use":      `delete from plan_versions where tenant_id = $1`,
	} {
		err := l.db.WithTenant(t.Context(), l.tenant, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), sql, l.tenant)
			return err
		})
		if err == nil {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestTwoVersionsAreComparedLineByLine(t *testing.T) {
	one := func(n int64, w limits.Window) limits.Limit {
		return limits.Limit{Dimension: limits.DimensionRequests, Window: w, Amount: n}
	}
	c := billing.Compare(billing.Version{Limits: []limits.Limit{one(1, "minute"), one(5, "day")}}, billing.Version{Limits: []limits.Limit{one(1, "minute"), one(9, "month")}})
	var changed []bool
	for _, p := range c.Limits {
		changed = append(changed, p.Changed(billing.SameLimit))
	}
	if diff := cmp.Diff([]bool{false, true, true}, changed); diff != "" {
		t.Fatal(diff)
	}
}
