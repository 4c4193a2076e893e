package billing_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
)

// C17 of the cases from the field: what is told late never brings back what has
// ended.
func TestNothingThatComesLateBringsBackASubscriptionThatWasCancelledOrHasEnded(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	ctx := t.Context()
	p, large := l.sold(t, "Team", priced("10.00", 1)), l.sold(t, "Large", priced("20.00", 2))
	sub := l.on(t, p)
	change, err := l.PreviewChange(ctx, l.tenant, sub.ID, large.ID, "")
	must(t, err)
	_, err = l.AddVersion(ctx, l.tenant, p.ID, priced("11.00", 3))
	must(t, err)
	_, err = l.Publish(ctx, l.tenant, p.ID)
	must(t, err)
	many, err := l.PreviewMany(ctx, l.tenant, billing.ManyMove{Plan: p.ID})
	must(t, err)
	none := func(_ any, err error) error { return err }
	late := map[string]struct {
		do   func() error
		code string // of one that has ended
	}{
		"that all is paid":    {func() error { return none(l.SetPastDue(ctx, l.tenant, sub.ID, false)) }, "subscription_ended"},
		"that it is owed":     {func() error { return none(l.SetPastDue(ctx, l.tenant, sub.ID, true)) }, "subscription_ended"},
		"a resume":            {func() error { return none(l.Resume(ctx, l.tenant, sub.ID)) }, "subscription_ended"},
		"a change by token":   {func() error { return none(l.ChangeBy(ctx, l.tenant, sub.ID, change.Token)) }, "subscription_ended"},
		"a move":              {func() error { return none(l.Move(ctx, l.tenant, sub.Customer, large.ID)) }, "no_active_subscription"},
		"a move of many":      {func() error { return none(l.MoveMany(ctx, l.tenant, p.ID, many.Token)) }, "preview_stale"},
		"a change taken back": {func() error { return none(l.StayOnPlan(ctx, l.tenant, sub.ID)) }, "subscription_ended"},
		"the turn":            {func() error { return l.turner.Turn(ctx) }, ""},
		"the end again":       {func() error { return none(l.Cancel(ctx, l.tenant, sub.ID)) }, "subscription_ended"},
	}
	_, err = l.Cancel(ctx, l.tenant, sub.ID)
	must(t, err)
	for what, x := range late {
		if err := x.do(); err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", what, err)
		}
		if got := l.read(t, sub); got.Status != billing.Cancelled || got.PlanVersion != sub.PlanVersion {
			t.Fatalf("%s, and it is %s on %s", what, got.Status, got.PlanVersion)
		}
	}
	for range 2 {
		_, err = l.End(ctx, l.tenant, sub.ID)
		must(t, err)
	}
	ended := l.read(t, sub)
	late["that it goes on"] = struct {
		do   func() error
		code string
	}{func() error { return none(l.Keep(ctx, l.tenant, sub.ID)) }, "subscription_ended"}
	late["an override"] = struct {
		do   func() error
		code string
	}{func() error {
		return none(l.AddOverride(ctx, l.tenant, billing.NewOverride{Customer: sub.Customer, Reason: "r", Limit: limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 1}}))
	}, "no_active_subscription"}
	for what, x := range late {
		if err := x.do(); (err != nil || x.code != "") && (err == nil || fault.Of(err).Code != x.code) {
			t.Errorf("%s: %v, want %s", what, err, x.code)
		}
		if got := l.read(t, sub); got.Status != billing.Ended || got.Revision != ended.Revision {
			t.Fatalf("%s, and it is %+v", what, got)
		}
	}
	if n := l.audited(t, "subscription.ended"); n != 1 {
		t.Errorf("it ended %d times", n)
	}
	if err := l.db.WithTenant(ctx, l.tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update subscriptions set status = 'active', ended_at = null where tenant_id = $1 and subscription_id = $2`, l.tenant, sub.ID)
		return err
	}); err == nil {
		t.Error("the database lets it come back")
	}
}

func TestAfterMonthsOfOutageACancelledSubscriptionEndsAtItsOwnEndAndADowngradeBeginsAtIts(t *testing.T) {
	for _, start := range []string{"2026-01-29T09:30:00Z", "2026-01-30T22:59:59Z", "2026-01-31T23:30:00Z", "2026-08-31T01:30:00Z", "2026-02-28T01:30:00Z", "2028-02-29T01:30:00Z"} {
		t.Run(start, func(t *testing.T) {
			l := newLives(t, start)
			ctx := t.Context()
			p, small := l.sold(t, "Team", priced("10.00", 9)), l.sold(t, "Small", priced("5.00", 1))
			smaller, going := l.on(t, p), l.on(t, p)
			for _, sub := range []billing.Subscription{smaller, going} {
				c, err := l.PreviewChange(ctx, l.tenant, sub.ID, small.ID, "")
				must(t, err)
				_, err = l.ChangeBy(ctx, l.tenant, sub.ID, c.Token)
				must(t, err)
			}
			_, err := l.Cancel(ctx, l.tenant, going.ID)
			must(t, err)
			l.wait(7 * 31 * 24 * time.Hour)
			l.twenty(t, func(s *billing.Service) error {
				if _, err := s.Cancel(ctx, l.tenant, going.ID); err == nil || fault.Of(err).Code != "subscription_ended" {
					t.Errorf("of one that has ended: %v", err)
				}
				_, err := s.SetPastDue(ctx, l.tenant, smaller.ID, true)
				return err
			})
			must(t, l.turner.Turn(ctx))
			if got := l.read(t, going); got.Status != billing.Ended || !got.EndedAt.Equal(going.Current.End) || got.PlanVersion != p.Version.ID || got.Current != going.Current {
				t.Errorf("the cancelled one: %+v", got)
			}
			got := l.read(t, smaller)
			eras, err := l.History(ctx, l.tenant, smaller.Customer)
			must(t, err)
			if got.PlanVersion != small.Version.ID || got.Status != billing.PastDue || len(eras) != 2 || !eras[1].From.Equal(smaller.Current.End) {
				t.Errorf("the smaller one: %+v, eras %+v", got, eras)
			}
			if got.Current.Number < 6 || !got.Current.End.After(l.now()) || got.Current.Start.After(l.now()) {
				t.Errorf("its period is %+v at %v", got.Current, l.now())
			}
			l.tells(t)
		})
	}
}

func TestFeesOfChangesInOnePeriodAddUpHoweverTheyAreCut(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	ctx := t.Context()
	plans := []billing.Plan{l.sold(t, "A", priced("10.00", 1)), l.sold(t, "B", priced("33.33", 2)), l.sold(t, "C", priced("99.99", 3))}
	sub := l.on(t, plans[0])
	whole := int64(sub.Current.End.Sub(sub.Current.Start) / time.Second)
	fees := []int64{1000, 3333, 9999}
	total, want, last, on := fees[0], int64(0), int64(0), 0
	for _, at := range []time.Duration{0, time.Second, time.Second + time.Microsecond, 2 * time.Second, 11 * 24 * time.Hour, 11*24*time.Hour + 500*time.Millisecond, sub.Current.End.Sub(sub.Current.Start) - time.Microsecond} {
		l.until(sub.Current.Start.Add(at))
		to := (on + 1) % len(plans)
		c, err := l.PreviewChange(ctx, l.tenant, sub.ID, plans[to].ID, billing.AtOnce)
		must(t, err)
		_, err = l.ChangeBy(ctx, l.tenant, sub.ID, c.Token)
		must(t, err)
		cut := int64(at / time.Second)
		total += c.TotalMinor
		want += billing.Piece(fees[on], last, cut, whole)
		last, on = cut, to
	}
	if want += billing.Piece(fees[on], last, whole, whole); total != want {
		t.Errorf("%d is charged, and the pieces are %d", total, want)
	}
	l.tells(t)
}
