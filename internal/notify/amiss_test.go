package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/usage"
)

// instance is a process that has given so many numbers of the tenant's shard and
// said so just now; the books have them up to committed, and everything that
// ended before fresh.
func (r *rig) instance(name string, given, committed int64, fresh time.Time) {
	r.t.Helper()
	var numbers [usage.Shards]int64
	shard := usage.ShardOf(r.tenant)
	numbers[shard] = given
	instance := id.New()
	err := r.pg.App.Tx(r.t.Context(), func(tx pgx.Tx) error {
		err := tx.QueryRow(r.t.Context(), `select instance_id from instances where host = $1`, name).Scan(&instance)
		if err != nil && err != pgx.ErrNoRows { //nolint:errorlint // of this very query
			return err
		}
		_, err = tx.Exec(r.t.Context(), `
			insert into instances (instance_id, host, started_at, seen_at, numbers, fresh_at) values ($1, $2, $3, $4, $5, $3)
			on conflict (instance_id) do update set seen_at = excluded.seen_at, numbers = excluded.numbers, fresh_at = excluded.fresh_at`,
			instance, name, fresh, r.clock(), numbers[:])
		return err
	})
	if err == nil && committed > 0 {
		err = r.pg.Worker.Tx(r.t.Context(), func(tx pgx.Tx) error {
			_, err := tx.Exec(r.t.Context(), `
				insert into usage_marks (instance_id, shard, committed) values ($1, $2, int8multirange(int8range(1, $3, '[]')))
				on conflict (instance_id, shard) do update set committed = excluded.committed`, instance, shard, committed)
			return err
		})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) watch(kind AlertKind, minutes int) Alert {
	r.t.Helper()
	a, err := r.AddAlert(r.t.Context(), r.tenant, Alert{Kind: kind, Minutes: minutes, Mail: true, Webhook: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func TestBooksThatFallBehindAreToldOnceUntilTheyHadCaughtUp(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	a := r.watch(AlertBehind, 0)
	if a.Minutes != BehindMinutes {
		t.Fatalf("without minutes: %+v", a)
	}
	stuck := r.clock()
	for i, step := range []struct {
		pass             time.Duration
		given, committed int64
		fresh            bool
		fired            int
	}{
		{0, 40, 40, true, 0},
		{9 * time.Minute, 41, 40, false, 0},
		{2 * time.Minute, 60, 40, false, 1},
		{time.Hour, 90, 50, false, 1},       // it moves on, and is not well
		{time.Minute, 95, 90, true, 1},      // what is missing is new
		{11 * time.Minute, 99, 95, true, 1}, // on its way
		{time.Hour, 99, 98, false, 2},
		{time.Minute, 99, 99, false, 2}, // all of it
		{time.Hour, 99, 99, false, 2},
	} {
		r.pass(step.pass)
		if step.fresh {
			stuck = r.clock().Add(-5 * time.Second)
		}
		r.instance("api-1", step.given, step.committed, stuck)
		r.evaluate()
		r.evaluate()
		if n := r.fired(); n != step.fired {
			t.Fatalf("step %d: fired %d times, not %d", i, n, step.fired)
		}
	}
	if m := r.outbox.Messages()[1]; !strings.Contains(m.Text, "The books are 11 minutes behind (alert at 10)") || !strings.Contains(m.Text, "No call is lost") {
		t.Errorf("mail: %+v", m)
	}
}

func TestAnInstanceThatIsSilentIsBehindAndOneOfOtherTenantsIsNot(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	r.watch(AlertBehind, 5)
	other := id.New()
	for usage.ShardOf(other) == usage.ShardOf(r.tenant) {
		other = id.New()
	}
	tenant := r.tenant
	r.tenant = other // whose shard stands still
	r.instance("api-1", 10, 2, r.clock())
	r.tenant = tenant
	r.pass(6 * time.Minute)
	if err := r.pg.App.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update instances set seen_at = $1`, r.clock())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.evaluate()
	if n := r.fired(); n != 0 {
		t.Fatalf("another tenant's shard: fired %d times", n)
	}
	r.pass(5 * time.Minute)
	r.evaluate()
	if n := r.fired(); n != 1 {
		t.Fatalf("a silent instance: fired %d times", n)
	}
}

// compared notes that a day was compared, as the nightly check or Reconcile does.
func (r *rig) compared(day time.Time, differ ...usage.Difference) {
	r.t.Helper()
	if err := usage.NewReports(r.pg.App, r.clock).Saw(r.t.Context(), r.tenant, day, day.Add(24*time.Hour), differ, r.clock()); err != nil {
		r.t.Fatal(err)
	}
}

func TestADayWhoseBooksDifferIsToldOnceUntilTheyAgreed(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 3, 29, 0, 0, 0, 0, berlin) // of 23 hours
	second := time.Date(2026, 3, 30, 0, 0, 0, 0, berlin)
	wrong := usage.Difference{Table: "usage_day", Key: "k", Booked: "2", Events: "3"}
	r.compared(second, wrong)
	r.pass(time.Second)
	r.watch(AlertDiffer, 0)
	for i, step := range []struct {
		day    time.Time
		differ []usage.Difference
		fired  int
	}{
		{first, nil, 0}, // the second differed before anybody asked to be told
		{first, []usage.Difference{wrong}, 1},
		{first, []usage.Difference{wrong, wrong}, 1},
		{first, nil, 1},
		{first, []usage.Difference{wrong}, 2},
		{second, nil, 2},
		{second, []usage.Difference{wrong}, 3},
	} {
		r.pass(time.Hour)
		r.compared(step.day, step.differ...)
		r.evaluate()
		r.evaluate()
		if n := r.fired(); n != step.fired {
			t.Fatalf("step %d: fired %d times, not %d", i, n, step.fired)
		}
	}
	if m := r.outbox.Messages()[2]; !strings.Contains(m.Text, "The books of 2026-03-29 differ from their calls") || !strings.Contains(m.Text, "https://weir.example/reconcile?day=2026-03-29") {
		t.Errorf("mail: %+v", m)
	}
}

func TestAnAlertThatRestsTellsNothingAndThenWhatStillHolds(t *testing.T) {
	r := newRig(t)
	r.endpoint(newFar(t, 200), "alert.fired")
	kestrel := r.customer("Kestrel", 1000)
	a := r.alert(ofDay)
	rests, name := true, "  Kestrel’s day "
	a, err := r.ChangeAlert(t.Context(), r.tenant, a.ID, AlertChange{Paused: &rests, Name: &name})
	if err != nil || a.PausedAt == nil || a.Name != "Kestrel’s day" {
		t.Fatalf("%+v, %v", a, err)
	}
	r.uses(kestrel, 900)
	r.evaluate()
	if n := r.fired(); n != 0 {
		t.Fatalf("fired %d times while it rests", n)
	}
	rests = false
	if a, err = r.ChangeAlert(t.Context(), r.tenant, a.ID, AlertChange{Paused: &rests}); err != nil || a.PausedAt != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	r.evaluate()
	r.evaluate()
	if n := r.fired(); n != 1 {
		t.Fatalf("fired %d times afterwards", n)
	}
	if m := r.outbox.Messages()[0]; !strings.Contains(m.Text, "Alert: Kestrel’s day.") {
		t.Errorf("mail: %+v", m)
	}
	long := strings.Repeat("x", 201)
	if _, err := r.ChangeAlert(t.Context(), r.tenant, a.ID, AlertChange{Name: &long}); fault.Of(err) == nil || fault.Of(err).Fields[0].Pointer != "/name" {
		t.Errorf("a long name: %v", err)
	}
}

// letter keeps something that could not be counted.
func (r *rig) letter() {
	r.t.Helper()
	if err := r.pg.Worker.Tx(r.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(r.t.Context(), `
			insert into dead_letters (dead_letter_id, reason, subject, headers, payload, created_at) values ($1, 'bad_signature', 'usage.v1.0', '{}', 'x', $2)`, id.New(), r.clock())
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
}

func TestTheOperatorAloneIsToldOfDeadLettersOnceAnHourInWhichSomeCame(t *testing.T) {
	r := newRig(t)
	_, err := r.AddAlert(t.Context(), r.tenant, Alert{Kind: AlertLetters, Mail: true})
	if f := fault.Of(err); len(f.Fields) != 1 || f.Fields[0].Code != "not_for_this_tenant" {
		t.Fatalf("of another tenant: %v", err)
	}
	if err := r.pg.App.WithTenant(t.Context(), r.tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update tenants set is_operator = true where tenant_id = $1`, r.tenant)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.endpoint(newFar(t, 200), "alert.fired")
	r.pass(r.clock().Truncate(time.Hour).Add(time.Hour).Sub(r.clock())) // an hour begins
	r.letter()                                                          // before anybody asked
	r.pass(time.Second)
	r.watch(AlertLetters, 0)
	for i, step := range []struct {
		pass   time.Duration
		letter bool
		fired  int
	}{{0, false, 0}, {time.Minute, true, 1}, {time.Minute, true, 1}, {time.Hour, false, 1}, {0, true, 2}, {24 * time.Hour, false, 2}} {
		r.pass(step.pass)
		if step.letter {
			r.letter()
		}
		r.evaluate()
		r.evaluate()
		if n := r.fired(); n != step.fired {
			t.Fatalf("step %d: fired %d times, not %d", i, n, step.fired)
		}
	}
	if m := r.outbox.Messages()[0]; !strings.Contains(m.Text, "could not be counted") || !strings.Contains(m.Text, "/pipeline") {
		t.Errorf("mail: %+v", m)
	}
}
