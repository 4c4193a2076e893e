package tenants_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/gateway/upstreamtest"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/outbound"
	"weir/internal/postgres/postgrestest"
	"weir/internal/tenants"
)

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bench is two replicas with one clock, and a tenant whose key reaches a
// provider that does what it is told.
type bench struct {
	fixture
	other *tenants.Service
	clock *clock
	up    *upstreamtest.Upstream
	key   uuid.UUID
}

func newBench(t *testing.T) bench {
	t.Helper()
	db := postgrestest.New(t)
	ring, err := keyring.ParseRing(keyring.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	guard := outbound.New(outbound.Policy{AllowLoopback: true})
	t.Cleanup(guard.Close)
	c := &clock{at: time.Now().UTC().Truncate(time.Microsecond)}
	b := bench{clock: c, up: upstreamtest.New(t), other: tenants.New(db.App, ring, guard, catalogue.NewClient(guard), c.now)}
	b.fixture = fixture{Service: tenants.New(db.App, ring, guard, catalogue.NewClient(guard), c.now), db: db}
	if b.made, err = b.Create(t.Context(), tenants.NewTenant{Name: "Acme", OwnerEmail: "ann@acme.example", Zone: "UTC"}); err != nil {
		t.Fatal(err)
	}
	b.tenant = b.made.Tenant.ID
	b.key = b.add(t, "main")
	return b
}

func (b bench) add(t *testing.T, name string) uuid.UUID {
	t.Helper()
	k, err := b.AddProviderKey(t.Context(), b.tenant, tenants.NewProviderKey{Provider: "custom", Name: name, Secret: keyring.NewSecret("sk-test-1234"), BaseURL: b.up.URL})
	if err != nil || k.Status != tenants.Active {
		t.Fatalf("%v, %v", k.Status, err)
	}
	return k.ID
}

func (b bench) fail(t *testing.T, key uuid.UUID, status int, f limits.Failure) []tenants.KeyHealth {
	t.Helper()
	f.Sent, f.At, f.Status = b.clock.now().Add(-time.Millisecond), b.clock.now(), status
	changed, err := b.ReportFailure(t.Context(), b.tenant, key, "test-small", f)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// seen is the key as the other replica reads it.
func (b bench) seen(t *testing.T, key uuid.UUID) tenants.ProviderKey {
	t.Helper()
	k, err := b.other.ProviderKey(t.Context(), b.tenant, key)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (b bench) audited(t *testing.T, action string) (n int) {
	t.Helper()
	if err := b.db.App.WithTenant(t.Context(), b.tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from audit_entries where tenant_id = $1 and action = $2`, b.tenant, action).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestABenchIsStoredSeenElsewhereAndEndsByItself(t *testing.T) {
	b := newBench(t)
	b.fail(t, b.key, 429, limits.Failure{Wait: time.Minute, Detail: "TPM"})
	got, ok := b.seen(t, b.key).Cools("test-small", b.clock.now())
	want := limits.Bench{Source: limits.BenchAuthoritative, Reason: limits.BenchStated, Status: 429, Detail: "TPM", Since: b.clock.now(), Until: b.clock.now().Add(time.Minute)}
	if !ok || got != want {
		t.Fatalf("the other replica has %+v, want %+v", got, want)
	}
	if _, ok := b.seen(t, b.key).Cools("test-large", b.clock.now()); ok {
		t.Error("another model cools too")
	}
	b.clock.pass(time.Minute)
	if _, ok := b.seen(t, b.key).Cools("test-small", b.clock.now()); ok {
		t.Error("it cools beyond its end")
	}
}

func TestParallelFailuresOfOneBurstAreOneStepInTheBooks(t *testing.T) {
	b := newBench(t)
	at := b.clock.now()
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			s := b.Service
			if i%2 == 1 {
				s = b.other
			}
			f := limits.Failure{Sent: at.Add(-time.Second), At: at.Add(time.Duration(i) * time.Millisecond), Status: 429, Daily: limits.DailySpent}
			if _, err := s.ReportFailure(t.Context(), b.tenant, b.key, "test-small", f); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	k := b.seen(t, b.key)
	if len(k.Health) != 1 || k.Health[0].Step != 1 {
		t.Errorf("got %+v", k.Health)
	}
}

func TestThreeFailuresRestAModelOnEveryKeyAndASuccessForgetsThem(t *testing.T) {
	b := newBench(t)
	second := b.add(t, "second")
	two := func() {
		b.fail(t, b.key, 500, limits.Failure{})
		b.clock.pass(time.Minute)
		b.fail(t, second, 0, limits.Failure{})
		b.clock.pass(time.Minute)
	}
	two()
	if _, err := b.ReportSuccess(t.Context(), b.tenant, second, "test-small", b.clock.now()); err != nil {
		t.Fatal(err)
	}
	two()
	if _, ok := b.seen(t, b.key).Cools("test-small", b.clock.now()); ok {
		t.Fatal("a success between them is not counted")
	}
	changed := b.fail(t, b.key, 503, limits.Failure{})
	for _, key := range []uuid.UUID{b.key, second} {
		bench, ok := b.seen(t, key).Cools("test-small", b.clock.now())
		if !ok || bench.Reason != limits.BenchFailing || bench.Until.Sub(b.clock.now()) != 5*time.Second { // it is on loopback
			t.Errorf("got %+v", bench)
		}
	}
	if len(changed) != 2 {
		t.Errorf("the reporter is told of %d", len(changed))
	}
}

func TestAKeyWithoutCreditComesBackByOurOwnCheckAndNoCall(t *testing.T) {
	b := newBench(t)
	b.fail(t, b.key, 402, limits.Failure{})
	if until, ok := b.seen(t, b.key).Resting(b.clock.now()); !ok || until.Sub(b.clock.now()) != 24*time.Hour {
		t.Fatalf("it rests until %s, %v", until, ok)
	}
	check := func(want int) {
		t.Helper()
		if n, err := b.CheckDue(t.Context()); err != nil || n != want {
			t.Fatalf("%d checks, %v; want %d", n, err, want)
		}
	}
	check(0)
	b.up.Next(upstreamtest.Fail(402, "x", "x", "Pay"))
	b.clock.pass(5 * time.Minute)
	check(1)
	if until, ok := b.seen(t, b.key).Resting(b.clock.now()); !ok || until.Sub(b.clock.now()) != 24*time.Hour {
		t.Errorf("after a check that was refused it rests until %s, %v", until, ok)
	}
	check(0)
	b.clock.pass(15 * time.Minute)
	check(1)
	if _, ok := b.seen(t, b.key).Resting(b.clock.now()); ok {
		t.Error("a check that passed leaves it resting")
	}
	if n := b.audited(t, "provider_key.recovered"); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	check(0)
}

func TestACheckThatProvesNothingChangesNothing(t *testing.T) {
	b := newBench(t)
	b.fail(t, b.key, 403, limits.Failure{})
	before, _ := b.seen(t, b.key).Cools("test-small", b.clock.now())
	b.up.Next(upstreamtest.Fail(500, "x", "x", "Oops"))
	b.clock.pass(5 * time.Minute)
	if _, err := b.CheckDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, ok := b.seen(t, b.key).Cools("test-small", b.clock.now()); !ok || after != before {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
}

func TestOneReplicaMakesACheck(t *testing.T) {
	b := newBench(t)
	for range 10 {
		b.fail(t, b.key, 402, limits.Failure{})
		b.clock.pass(7 * time.Hour)
		calls := len(b.up.Calls())
		var made [8]int
		var group sync.WaitGroup
		for i := range made {
			group.Go(func() {
				s := b.Service
				if i%2 == 1 {
					s = b.other
				}
				var err error
				if made[i], err = s.CheckDue(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		sum := 0
		for _, n := range made {
			sum += n
		}
		if sum != 1 || len(b.up.Calls()) != calls+1 {
			t.Fatalf("%d checks, %d calls", sum, len(b.up.Calls())-calls)
		}
	}
}

func TestARefusedKeyIsVerifiedAtOnceThenLessAndLess(t *testing.T) {
	b := newBench(t)
	wait := []time.Duration{0, time.Minute, 5 * time.Minute}
	for i, w := range wait {
		b.fail(t, b.key, 401, limits.Failure{})
		if k := b.seen(t, b.key); k.Status != tenants.Invalid {
			t.Fatalf("%d: %s", i, k.Status)
		}
		if w > 0 {
			b.clock.pass(w - time.Second)
			if n, err := b.CheckDue(t.Context()); n != 0 || err != nil {
				t.Fatalf("%d: %d checks too early, %v", i, n, err)
			}
			b.clock.pass(time.Second)
		}
		if n, err := b.CheckDue(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d: %d checks, %v", i, n, err)
		}
		if k := b.seen(t, b.key); k.Status != tenants.Active || len(k.Cooldowns(b.clock.now())) != 0 {
			t.Fatalf("%d: after a check that passed: %s", i, k.Status)
		}
		b.clock.pass(time.Millisecond)
	}
	if _, err := b.ReportSuccess(t.Context(), b.tenant, b.key, "test-small", b.clock.now()); err != nil {
		t.Fatal(err)
	}
	b.clock.pass(time.Second)
	b.fail(t, b.key, 401, limits.Failure{})
	if n, err := b.CheckDue(t.Context()); n != 1 || err != nil {
		t.Errorf("after a call that passed it is not checked at once: %d, %v", n, err)
	}
}

func TestAPersonClearsOneBenchAKeysOrAll(t *testing.T) {
	b := newBench(t)
	second := b.add(t, "second")
	cool := func() {
		b.fail(t, b.key, 429, limits.Failure{Daily: limits.DailySpent})
		b.fail(t, b.key, 402, limits.Failure{})
		b.fail(t, second, 401, limits.Failure{})
	}
	model, whole := "test-small", tenants.EveryModel
	for name, c := range map[string]struct {
		clear      tenants.Cleared
		n          int
		left, rest int
	}{
		"one":         {tenants.Cleared{Key: b.key, Model: &model}, 1, 1, 1},
		"of the key":  {tenants.Cleared{Key: b.key, Model: &whole}, 1, 1, 1},
		"a key's":     {tenants.Cleared{Key: b.key}, 2, 0, 1},
		"all":         {tenants.Cleared{}, 3, 0, 0},
		"one of none": {tenants.Cleared{Key: second, Model: &model}, 0, 2, 1},
	} {
		cool()
		before := b.audited(t, "provider_key.cooldowns_cleared")
		n, err := b.ClearCooldowns(t.Context(), b.tenant, c.clear)
		if err != nil || n != c.n {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		k, o := b.seen(t, b.key), b.seen(t, second)
		if len(k.Cooldowns(b.clock.now())) != c.left || len(o.Cooldowns(b.clock.now())) != c.rest {
			t.Errorf("%s: left are %+v and %+v", name, k.Health, o.Health)
		}
		if c.rest == 0 && o.Status != tenants.Unverified {
			t.Errorf("%s: the refused key is %s", name, o.Status)
		}
		if got := b.audited(t, "provider_key.cooldowns_cleared") - before; got != min(c.n, 1) {
			t.Errorf("%s: %d audit entries", name, got)
		}
		if _, err := b.ClearCooldowns(t.Context(), b.tenant, tenants.Cleared{}); err != nil {
			t.Fatal(err)
		}
		b.clock.pass(48 * time.Hour)
	}
	if _, err := b.ClearCooldowns(t.Context(), b.tenant, tenants.Cleared{Key: uuid.New()}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a key that is not there: %v", err)
	}
}

func TestWhatIsLearnedCountsForItsModelUntilItIsForgotten(t *testing.T) {
	b := newBench(t)
	said := []limits.Statement{{Dimension: limits.DimensionRequests, Window: limits.WindowMinute, Amount: 60, Left: -1, From: limits.FromHeader, Detail: "x"}}
	if err := b.Learn(t.Context(), b.tenant, b.key, limits.Learn(nil, "test-small", said, b.clock.now())); err != nil {
		t.Fatal(err)
	}
	k := b.seen(t, b.key)
	if got := k.LimitsFor("test-small"); len(got) != 1 || got[0].Amount != 60 {
		t.Fatalf("counted by %+v", got)
	}
	if got := k.LimitsFor("test-large"); len(got) != 0 {
		t.Errorf("another model is counted by %+v", got)
	}
	routes, err := b.other.Routes(t.Context(), b.tenant)
	if err != nil || routes[0].LimitsFor("test-small") == routes[0].Limits || routes[0].LimitsFor("test-large") != routes[0].Limits {
		t.Errorf("the router counts otherwise: %v", err)
	}
	b.clock.pass(time.Hour)
	said[0].Amount = 500
	if err := b.Learn(t.Context(), b.tenant, b.key, limits.Learn(k.Learned, "test-small", said, b.clock.now())); err != nil {
		t.Fatal(err)
	}
	if k = b.seen(t, b.key); k.Learned[0].Amount != 500 || !k.Learned[0].LearnedAt.Equal(b.clock.now()) {
		t.Errorf("it does not fade: %+v", k.Learned)
	}
	if n, err := b.ForgetLearned(t.Context(), b.tenant, b.key, tenants.Forgotten{Model: "test-large"}); n != 0 || err != nil {
		t.Errorf("%d of another model forgotten, %v", n, err)
	}
	if n, err := b.ForgetLearned(t.Context(), b.tenant, b.key, tenants.Forgotten{Model: "test-small", Dimension: limits.DimensionRequests}); n != 1 || err != nil {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if k = b.seen(t, b.key); len(k.Learned) != 0 || b.audited(t, "provider_key.learned_forgotten") != 1 {
		t.Errorf("left is %+v", k.Learned)
	}
}

func TestCooldownsOfAnotherTenantAreNotThere(t *testing.T) {
	b := newBench(t)
	b.fail(t, b.key, 402, limits.Failure{})
	made, err := b.Create(t.Context(), tenants.NewTenant{Name: "Other", OwnerEmail: "o@other.example", Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	_, cleared := b.ClearCooldowns(t.Context(), made.Tenant.ID, tenants.Cleared{Key: b.key})
	_, forget := b.ForgetLearned(t.Context(), made.Tenant.ID, b.key, tenants.Forgotten{})
	if !fault.Is(cleared, fault.NotFound) || !fault.Is(forget, fault.NotFound) {
		t.Errorf("%v, %v", cleared, forget)
	}
	if n, err := b.ClearCooldowns(t.Context(), made.Tenant.ID, tenants.Cleared{}); n != 0 || err != nil || len(b.seen(t, b.key).Cooldowns(b.clock.now())) != 1 {
		t.Errorf("another tenant clears %d, %v", n, err)
	}
}

func TestATrialCallTellsRefusalFromFailure(t *testing.T) {
	b := newBench(t)
	_, e, err := b.Endpoint(t.Context(), b.tenant, b.key)
	if err != nil {
		t.Fatal(err)
	}
	guard := outbound.New(outbound.Policy{AllowLoopback: true})
	t.Cleanup(guard.Close)
	client := catalogue.NewClient(guard)
	for name, c := range map[string]struct {
		scripts []upstreamtest.Script
		code    string
	}{
		"served":                     {nil, ""},
		"a model without a ceiling":  {[]upstreamtest.Script{upstreamtest.Fail(400, "invalid_request_error", "unsupported_parameter", "max_tokens")}, ""},
		"402":                        {[]upstreamtest.Script{upstreamtest.Fail(402, "x", "x", "Pay")}, "provider_key_refused"},
		"429":                        {[]upstreamtest.Script{upstreamtest.Limited(http.Header{})}, "provider_key_refused"},
		"a 402 inside a 200":         {[]upstreamtest.Script{{Body: `{"error":{"code":402,"message":"Insufficient credits"}}`}}, "provider_key_refused"},
		"an error in words in a 200": {[]upstreamtest.Script{{Body: `{"error":{"code":"oops","message":"x"}}`}}, "provider_check_failed"},
		"500":                        {[]upstreamtest.Script{upstreamtest.Fail(500, "x", "x", "x")}, "provider_check_failed"},
	} {
		b.up.Next(c.scripts...)
		err := client.Try(t.Context(), e, "test-small")
		var f *fault.Error
		if errors.As(err, &f); (err == nil) != (c.code == "") || f != nil && f.Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
