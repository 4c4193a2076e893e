package notify

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
	"weir/internal/fault"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// customer makes one whose plan allows so many tokens a day.
func (r *rig) customer(name string, tokens int64) uuid.UUID {
	r.t.Helper()
	ctx, bills := r.t.Context(), billing.New(r.pg.App, r.clock)
	c, err := r.tenants.AddCustomer(ctx, r.tenant, tenants.NewCustomer{Name: name})
	p, err1 := bills.AddPlan(ctx, r.tenant, name, billing.NewVersion{Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: tokens}}})
	_, err2 := bills.Publish(ctx, r.tenant, p.ID)
	_, err3 := bills.Subscribe(ctx, r.tenant, c.ID, p.ID)
	if err := errors.Join(err, err1, err2, err3); err != nil {
		r.t.Fatal(err)
	}
	return c.ID
}

// uses books tokens of a customer, as the pipeline does.
func (r *rig) uses(customer uuid.UUID, tokens int64) {
	r.t.Helper()
	now := r.clock()
	t, err := r.tenants.Get(r.t.Context(), r.tenant)
	if err != nil {
		r.t.Fatal(err)
	}
	day, _, _ := t.Zones.Day(now)
	ledger := limits.Limit{Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: customer}, Dimension: limits.DimensionTokens, Window: limits.WindowDay}.Ledger("")
	err = r.pg.Worker.Tx(r.t.Context(), func(tx pgx.Tx) error {
		for table, bucket := range map[string]time.Time{"usage_minute": now.Truncate(time.Minute), "usage_day": day} {
			if _, err := tx.Exec(r.t.Context(), `
				insert into `+table+` as t (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency,
					requests, refused, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, units, charge_pico, cost_pico)
				values ($1, $2, $3, $3, '00000000-0000-0000-0000-000000000000', 'm', 'm', 'ok', false, 'USD', '', 1, 0, $4, 0, 0, 0, 0, 0, $4::bigint * 1000000, 0)
				on conflict (tenant_id, bucket, customer_id, counter_id, provider_key_id, model_asked, model_served, outcome, test, currency, cost_currency)
				do update set input_tokens = t.input_tokens + excluded.input_tokens, charge_pico = t.charge_pico + excluded.charge_pico`, r.tenant, bucket, customer, tokens); err != nil {
				return err
			}
		}
		_, err := tx.Exec(r.t.Context(), `
			insert into cap_totals as c (tenant_id, ledger, window_start, used) values ($1, $2, $3, $4)
			on conflict (tenant_id, ledger, window_start) do update set used = c.used + excluded.used`, r.tenant, ledger, day, tokens)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// evaluate runs two evaluators at once: one that was there before, and one that
// has just started.
func (r *rig) evaluate() {
	r.t.Helper()
	fresh := NewEvaluator(r.Service, "https://weir.example", slog.New(slog.DiscardHandler))
	if r.evaluator == nil {
		r.evaluator = fresh
		if err := fresh.Evaluate(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		fresh = NewEvaluator(r.Service, "https://weir.example", slog.New(slog.DiscardHandler))
	}
	var wait sync.WaitGroup
	for _, e := range []*Evaluator{r.evaluator, fresh} {
		wait.Go(func() {
			if err := e.Evaluate(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		})
	}
	wait.Wait()
}

func (r *rig) alert(a Alert) Alert {
	r.t.Helper()
	a.Kind, a.Mail, a.Webhook = AlertUsage, true, true
	out, err := r.AddAlert(r.t.Context(), r.tenant, a)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// fired is how often alerts told, which is once by mail and once by webhook.
func (r *rig) fired() int {
	r.t.Helper()
	r.deliver(r.worker())
	list, err := r.Firings(r.t.Context(), r.tenant, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	if mails := len(r.outbox.Messages()); mails != len(list) {
		r.t.Errorf("%d mails of %d firings", mails, len(list))
	}
	told := 0
	for _, m := range r.all() {
		if m.Type == "alert.fired" {
			told++
		}
	}
	if told != len(list) {
		r.t.Errorf("%d messages of %d firings", told, len(list))
	}
	return len(list)
}

var ofDay = Alert{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Percent: 80}

func TestAnAlertFiresOncePerPeriodWhateverRunsAtOnceOrAgain(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	r.at = time.Date(2030, 1, 15, 12, 0, 0, 0, time.UTC)
	kestrel := r.customer("Kestrel", 1000)
	r.alert(ofDay)
	r.uses(kestrel, 790)
	r.evaluate()
	if n := r.fired(); n != 0 {
		t.Fatalf("fired %d times below its threshold", n)
	}
	r.uses(kestrel, 60)
	for range 3 {
		r.evaluate()
	}
	if n := r.fired(); n != 1 {
		t.Fatalf("fired %d times", n)
	}
	m := r.outbox.Messages()[0]
	if m.To != "ann@acme.example" || !strings.Contains(m.Text, "Kestrel: 850 of 1,000, tokens of the day (alert at 80%)") {
		t.Errorf("mail: %+v", m)
	}
	r.pass(24 * time.Hour)
	r.evaluate()
	if n := r.fired(); n != 1 {
		t.Fatalf("a new day fired by itself: %d", n)
	}
	r.uses(kestrel, 900)
	r.evaluate()
	r.evaluate()
	if n := r.fired(); n != 2 {
		t.Fatalf("in the next period: %d", n)
	}
}

// TestAThresholdThatAPeriodReachedAtItsEndStillTells: the books learn of calls
// after they ended, and of one that runs over midnight long after. It tells of that
// period, once; alerts and thresholds that came later do not.
func TestAThresholdThatAPeriodReachedAtItsEndStillTells(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	r.at = time.Date(2030, 1, 31, 22, 59, 58, 0, time.UTC) // the zone is Europe/Berlin
	kestrel := r.customer("Kestrel", 1000)
	a := r.alert(ofDay)
	r.alert(Alert{Scope: limits.ScopeTenant, Dimension: limits.DimensionTokens, Window: limits.WindowMonth, Amount: 850})
	r.uses(kestrel, 790)
	r.evaluate()
	r.uses(kestrel, 60) // on their way to the books
	r.pass(3 * time.Second)
	r.alert(Alert{Scope: limits.ScopeCustomer, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 10})
	for range 2 {
		r.evaluate()
	}
	list, err := r.Firings(t.Context(), r.tenant, 100)
	if n := r.fired(); n != 2 || err != nil {
		t.Fatalf("fired %d times, %v", n, err)
	}
	for _, f := range list {
		if day := time.Date(2030, 1, 30, 23, 0, 0, 0, time.UTC); f.Reading.Value != 850 || !f.Reading.Period.Equal(day) && !f.Reading.Period.Equal(day.AddDate(0, 0, -30)) {
			t.Errorf("told of %+v", f.Reading)
		}
	}
	half := int64(50)
	if _, err := r.ChangeAlert(t.Context(), r.tenant, a.ID, AlertChange{Percent: &half}); err != nil {
		t.Fatal(err)
	}
	r.evaluate()
	if n := r.fired(); n != 2 {
		t.Errorf("a threshold tells of a day that was over before it: %d", n)
	}
}

// TestAPeriodThatTheBooksDoNotHaveYetTellsWhenTheyDo: an outage over midnight
// loses no alert, and where nothing can come any more nothing tells.
func TestAPeriodThatTheBooksDoNotHaveYetTellsWhenTheyDo(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	r.at = time.Date(2030, 1, 15, 22, 59, 58, 0, time.UTC)
	kestrel, heron := r.customer("Kestrel", 1000), r.customer("Heron", 1000)
	r.alert(ofDay)
	r.uses(kestrel, 850)
	r.uses(heron, 700)
	fresh := func(at time.Time) {
		t.Helper()
		if err := r.pg.App.Tx(t.Context(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `
				insert into instances (instance_id, host, started_at, seen_at, fresh_at) values ($1, 'h', $2, $2, $2)
				on conflict (instance_id) do update set fresh_at = excluded.fresh_at`, r.tenant, at)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	fresh(r.clock())
	r.pass(5 * time.Hour)
	r.evaluate()
	if n := r.fired(); n != 1 {
		t.Fatalf("after the outage it fired %d times", n)
	}
	fresh(r.clock())
	bills := billing.New(r.pg.App, r.clock)
	p, err := bills.AddPlan(t.Context(), r.tenant, "smaller", billing.NewVersion{Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 100}}})
	_, err1 := bills.Publish(t.Context(), r.tenant, p.ID)
	_, err2 := bills.Move(t.Context(), r.tenant, heron, p.ID)
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	r.evaluate()
	if n := r.fired(); n != 1 {
		t.Errorf("a day that is over was held to a limit that is new: %d", n)
	}
}

func TestAnotherThresholdFiresAndTheOldOneDoesNotAgain(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	kestrel := r.customer("Kestrel", 1000)
	a := r.alert(ofDay)
	r.uses(kestrel, 600)
	to := func(percent int64) {
		t.Helper()
		if _, err := r.ChangeAlert(t.Context(), r.tenant, a.ID, AlertChange{Percent: &percent}); err != nil {
			t.Fatal(err)
		}
		r.evaluate()
	}
	for i, x := range []struct{ percent, fired int64 }{{80, 0}, {50, 1}, {80, 1}, {50, 1}, {60, 2}} {
		if to(x.percent); int64(r.fired()) != x.fired {
			t.Fatalf("step %d: at %d%% it had fired %d times", i, x.percent, r.fired())
		}
	}
}

func TestAShareFollowsTheLimitThatChanges(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	kestrel := r.customer("Kestrel", 1000)
	r.alert(ofDay)
	r.uses(kestrel, 600)
	r.evaluate()
	if r.fired() != 0 {
		t.Fatal("60% is not 80%")
	}
	bills := billing.New(r.pg.App, r.clock)
	move := func(name string, tokens int64) {
		t.Helper()
		r.pass(time.Second)
		p, err := bills.AddPlan(t.Context(), r.tenant, name, billing.NewVersion{Limits: []limits.Limit{{Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: tokens}}})
		_, err1 := bills.Publish(t.Context(), r.tenant, p.ID)
		_, err2 := bills.Move(t.Context(), r.tenant, kestrel, p.ID)
		if err := errors.Join(err, err1, err2); err != nil {
			t.Fatal(err)
		}
		r.evaluate()
	}
	move("larger", 10_000)
	if r.fired() != 0 {
		t.Fatal("6% is not 80%")
	}
	move("smaller", 700)
	if r.fired() != 1 {
		t.Fatal("86% did not fire")
	}
	move("large again", 10_000)
	r.uses(kestrel, 9000)
	r.evaluate()
	if n := r.fired(); n != 1 {
		t.Fatalf("the same threshold fired %d times in its period", n)
	}
}

func TestAnAmountIsOfTheTenantOrOfEachCustomer(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	kestrel, heron := r.customer("Kestrel", 1_000_000), r.customer("Heron", 1_000_000)
	r.alert(Alert{Scope: limits.ScopeTenant, Dimension: limits.DimensionTokens, Window: limits.WindowMonth, Amount: 1000})
	r.alert(Alert{Scope: limits.ScopeCustomer, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Amount: 700})
	r.alert(Alert{Scope: limits.ScopeCustomer, ScopeID: heron, Dimension: limits.DimensionSpend, Window: limits.WindowDay, Amount: 500})
	r.uses(kestrel, 600)
	r.uses(heron, 300)
	r.evaluate()
	if n := r.fired(); n != 0 {
		t.Fatalf("fired %d", n)
	}
	r.uses(kestrel, 150)
	r.evaluate()
	if n := r.fired(); n != 2 {
		t.Fatalf("tenant and Kestrel: %d", n)
	}
	r.uses(heron, 250)
	r.evaluate()
	if n := r.fired(); n != 3 {
		t.Fatalf("Heron's spend: %d", n)
	}
	list, err := r.Standings(t.Context(), r.tenant)
	if err != nil || len(list) != 3 || list[0].Closest.Value != 550 || list[1].Closest.Name != "Kestrel" || list[2].Closest.Value != 1300 || list[0].LastFired == nil {
		t.Errorf("standings: %+v, %v", list, err)
	}
}

func TestAKeyThatCoolsIsToldOncePerCooldown(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	k, err := r.tenants.AddProviderKey(t.Context(), r.tenant, tenants.NewProviderKey{Provider: "practice", Name: "P"})
	_, err1 := r.AddAlert(t.Context(), r.tenant, Alert{Kind: AlertCooling, Mail: true, Webhook: true})
	if err := errors.Join(err, err1); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		r.pass(time.Hour)
		at := r.clock()
		if _, err := r.tenants.ReportFailure(t.Context(), r.tenant, k.ID, "m", limits.Failure{Status: 429, Wait: time.Minute, Sent: at, At: at}); err != nil {
			t.Fatal(err)
		}
		r.evaluate()
		r.evaluate()
		if n := r.fired(); n != i+1 {
			t.Fatalf("cooldown %d: fired %d times", i+1, n)
		}
	}
}

func TestAnAlertThatCouldNeverFireIsRefusedAtItsField(t *testing.T) {
	r := newRig(t)
	for at, a := range map[string]Alert{
		"/threshold": {Kind: AlertUsage, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Mail: true},
		"/window":    {Kind: AlertUsage, Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Percent: 80, Mail: true},
		"/dimension": {Kind: AlertUsage, Dimension: limits.DimensionConcurrency, Window: limits.WindowDay, Percent: 80, Mail: true},
		"/channels":  {Kind: AlertUsage, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Percent: 80},
		"/emails/0":  {Kind: AlertUsage, Dimension: limits.DimensionTokens, Window: limits.WindowDay, Percent: 80, Mail: true, Emails: []string{"x"}},
		"/kind":      {Kind: AlertCooling, Percent: 80, Mail: true},
	} {
		_, err := r.AddAlert(t.Context(), r.tenant, a)
		if f := fault.Of(err); f == nil || len(f.Fields) != 1 || f.Fields[0].Pointer != at {
			t.Errorf("%s: %v", at, err)
		}
	}
	a := ofDay
	a.Kind, a.Mail, a.Scope, a.ScopeID = AlertUsage, true, limits.ScopeCustomer, uuid.New()
	if _, err := r.AddAlert(t.Context(), r.tenant, a); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown customer: %v", err)
	}
}
