package billing_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/fault"
	"weir/internal/limits"
)

// minute is what the customer may do in a minute now; 0: nothing.
func (l lives) minute(t *testing.T, customer uuid.UUID) int64 {
	t.Helper()
	c, err := l.ContractOf(t.Context(), l.tenant, customer)
	must(t, err)
	if len(c.Own) == 0 {
		return 0
	}
	if len(c.Own) > 1 {
		t.Fatalf("%d limits", len(c.Own))
	}
	return c.Own[0].Amount
}

func TestAnOverrideHoldsItsWholeTimeThroughMovesChangesAndPeriodsAndNoLonger(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	ctx := t.Context()
	p, small := l.sold(t, "Team", priced("10.00", 500)), l.sold(t, "Small", priced("5.00", 100))
	sub := l.on(t, p)
	at := func(from, until time.Duration, n int64) billing.NewOverride {
		begin, end := sub.Current.Start.Add(from), sub.Current.Start.Add(until)
		return billing.NewOverride{Customer: sub.Customer, Reason: "r", From: &begin, Until: &end, Limit: limits.Limit{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: n}}
	}
	whole := sub.Current.End.Sub(sub.Current.Start)
	for _, n := range []billing.NewOverride{at(time.Hour, 3*time.Hour, 800), at(3*time.Hour, 4*time.Hour, 900), at(whole-time.Hour, whole+time.Hour, 700)} {
		_, err := l.AddOverride(ctx, l.tenant, n)
		must(t, err)
	}
	for _, n := range []billing.NewOverride{at(0, time.Hour+time.Microsecond, 1), at(2*time.Hour, 3*time.Hour, 1), at(4*time.Hour-time.Microsecond, 5*time.Hour, 1), at(0, 9*time.Hour, 1), at(whole, 2*whole, 1)} {
		if _, err := l.AddOverride(ctx, l.tenant, n); err == nil || fault.Of(err).Code != "override_overlaps" {
			t.Errorf("from %v until %v: %v", n.From, n.Until, err)
		}
	}
	step := func(after time.Duration, want int64) {
		t.Helper()
		l.until(sub.Current.Start.Add(after))
		if got := l.minute(t, sub.Customer); got != want {
			t.Errorf("after %v it is %d, want %d", after, got, want)
		}
	}
	step(time.Hour-time.Microsecond, 500)
	step(time.Hour, 800)
	_, err := l.AddVersion(ctx, l.tenant, p.ID, priced("20.00", 600))
	must(t, err)
	_, err = l.Publish(ctx, l.tenant, p.ID)
	must(t, err)
	m, err := l.PreviewMany(ctx, l.tenant, billing.ManyMove{Plan: p.ID})
	must(t, err)
	if after := m.Moves[0].After; len(after) != 1 || after[0].Amount != 800 {
		t.Errorf("the move says %+v", after)
	}
	_, err = l.MoveMany(ctx, l.tenant, p.ID, m.Token)
	must(t, err)
	step(2*time.Hour, 800)
	step(3*time.Hour, 900)
	step(4*time.Hour, 600)
	c, err := l.PreviewChange(ctx, l.tenant, sub.ID, small.ID, "")
	must(t, err)
	if c.After[0].Amount != 700 || c.Before[0].Amount != 600 {
		t.Errorf("the downgrade says %+v, then %+v", c.Before, c.After)
	}
	_, err = l.ChangeBy(ctx, l.tenant, sub.ID, c.Token)
	must(t, err)
	step(whole-time.Hour, 700)
	step(whole, 700)
	must(t, l.turner.Turn(ctx))
	step(whole+time.Hour, 100)
	_, err = l.AddOverride(ctx, l.tenant, at(0, 3*whole, 1000))
	must(t, err)
	_, err = l.End(ctx, l.tenant, sub.ID)
	must(t, err)
	if got := l.minute(t, sub.Customer); got != 0 {
		t.Errorf("ended, it is %d", got)
	}
	_, err = l.Subscribe(ctx, l.tenant, sub.Customer, small.ID)
	must(t, err)
	if got := l.minute(t, sub.Customer); got != 100 {
		t.Errorf("on a plan anew, it is %d", got)
	}
}

func TestEveryStateCanBeTakenBackInATrialAsOutsideOfIt(t *testing.T) {
	for name, trial := range map[string]int{"in a trial": 14, "outside": 0} {
		t.Run(name, func(t *testing.T) {
			l := newLives(t, "2026-04-01T00:00:00Z")
			ctx := t.Context()
			v := priced("10.00", 1)
			v.TrialDays = trial
			sub := l.on(t, l.sold(t, "Team", v))
			set := func(owed bool) (billing.Subscription, error) { return l.SetPastDue(ctx, l.tenant, sub.ID, owed) }
			cancel := func() (billing.Subscription, error) { return l.Cancel(ctx, l.tenant, sub.ID) }
			keep := func() (billing.Subscription, error) { return l.Keep(ctx, l.tenant, sub.ID) }
			owed := func() (billing.Subscription, error) { return set(true) }
			paid := func() (billing.Subscription, error) { return set(false) }
			for i, step := range []struct {
				do   func() (billing.Subscription, error)
				want billing.Status
			}{
				{owed, billing.PastDue},
				{paid, sub.Status},
				{cancel, billing.Cancelled},
				{keep, sub.Status},
				{owed, billing.PastDue},
				{cancel, billing.Cancelled},
				{paid, billing.Cancelled},
				{keep, sub.Status},
				{cancel, billing.Cancelled},
				{owed, billing.Cancelled},
				{keep, billing.PastDue},
				{paid, sub.Status},
			} {
				got, err := step.do()
				if err != nil || got.Status != step.want {
					t.Fatalf("step %d: %s, want %s, %v", i, got.Status, step.want, err)
				}
			}
		})
	}
}

func TestATokenOfOneKindOfPreviewCarriesOutNoOther(t *testing.T) {
	l := newLives(t, "2026-04-01T00:00:00Z")
	ctx := t.Context()
	p, large := l.sold(t, "Team", priced("10.00", 1)), l.sold(t, "Large", priced("20.00", 2))
	sub := l.on(t, p)
	_, err := l.AddVersion(ctx, l.tenant, p.ID, priced("11.00", 3))
	must(t, err)
	_, err = l.Publish(ctx, l.tenant, p.ID)
	must(t, err)
	many, err := l.PreviewMany(ctx, l.tenant, billing.ManyMove{Plan: p.ID})
	must(t, err)
	one, err := l.PreviewChange(ctx, l.tenant, sub.ID, large.ID, "")
	must(t, err)
	for what, do := range map[string]func() error{
		"one by that of many":           func() error { _, err := l.ChangeBy(ctx, l.tenant, sub.ID, many.Token); return err },
		"many by that of one":           func() error { _, err := l.MoveMany(ctx, l.tenant, p.ID, one.Token); return err },
		"another plan's by that of one": func() error { _, err := l.MoveMany(ctx, l.tenant, large.ID, many.Token); return err },
		"one by half of a token":        func() error { _, err := l.ChangeBy(ctx, l.tenant, sub.ID, one.Token[:len(one.Token)/2]); return err },
		"one by nothing":                func() error { _, err := l.ChangeBy(ctx, l.tenant, sub.ID, ""); return err },
	} {
		if err := do(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The same bytes written otherwise are the same token, and carry it out once.
	for _, token := range []string{one.Token, one.Token[:9] + "\n" + one.Token[9:], "\r" + one.Token} {
		_, err := l.ChangeBy(ctx, l.tenant, sub.ID, token)
		if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", token[:12], err)
		}
	}
	if got := l.read(t, sub); got.PlanVersion != large.Version.ID || l.audited(t, "subscription.changed") != 1 {
		t.Errorf("it is on %s after %d changes", got.PlanVersion, l.audited(t, "subscription.changed"))
	}
}
