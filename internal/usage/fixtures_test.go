package usage

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/queue/queuetest"
)

// TestMain lets a test start this binary again as a process to be killed.
func TestMain(m *testing.M) {
	if role, ok := children[os.Getenv("WEIR_TEST_CHILD")]; ok {
		role()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, queuetest.Leaks()...)
}

// children are what a test can start as a process of its own.
var children = map[string]func(){
	"spool":  spoolChild,
	"worker": workerChild,
	"full":   fullDiskChild,
	"mover":  moverChild,
}

// clock is a clock that moves when it is told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Now().UTC().Truncate(time.Second)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// eventually polls until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// call is a small finished call of a tenant.
func call(tenant uuid.UUID, at time.Time) Event {
	at = at.UTC().Truncate(time.Microsecond)
	cost := money.FromInt(30)
	return Event{
		Version: version, ID: id.At(at), RequestID: id.At(at), Tenant: tenant, Customer: sub(tenant, 1), Key: sub(tenant, 2), Counter: sub(tenant, 3),
		ProviderKey: sub(tenant, 4), ModelAsked: "gpt-4o", ModelServed: "gpt-4o-2024-08-06", Kind: "chat",
		StartedAt: at, EndedAt: at.Add(time.Second), LocalDay: limits.DayStart(at, time.UTC),
		Outcome: OK, Requests: 1, Tokens: limits.Tokens{Input: 7, Output: 3}, Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: 7, Output: 20}},
		Charges:  []limits.Charge{{Ledger: "customer:" + sub(tenant, 1).String() + "/tokens/day", WindowStart: limits.DayStart(at, time.UTC), Amount: 10}},
		Attempts: []Attempt{{Provider: "openai", ProviderKey: sub(tenant, 4), Model: "gpt-4o", Status: 200, StartedAt: at, EndedAt: at.Add(time.Second)}},
		Charge:   money.FromInt(50), Currency: "USD", Cost: &cost, CostCurrency: "USD",
	}
}

// sub is an id that follows from another one.
func sub(of uuid.UUID, n byte) uuid.UUID { return uuid.NewSHA1(of, []byte{n}) }

func admission(e Event) *Admission {
	e.Outcome = Expired
	return &Admission{Event: e, Reservation: limits.Reservation{
		ID: e.ID, Tenant: e.Tenant, Model: e.ModelAsked, At: e.StartedAt, ExpiresAt: e.StartedAt.Add(10 * time.Minute), Estimate: e.Estimate,
	}}
}

// refusal is an event without an admission: the shortest way to a number.
func refusal(tenant uuid.UUID, at time.Time) Event {
	e := call(tenant, at)
	e.Outcome, e.Requests, e.Refused, e.Tokens, e.Charges, e.Attempts = "refused_tokens_minute", 0, 1, limits.Tokens{}, nil, nil
	e.Charge, e.Cost, e.CostCurrency = money.Pico{}, nil, ""
	return e
}

// random is a source whose seed is printed when the test fails.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// spoolAt opens a spool that syncs only when it is told to, and writes no sign
// of life.
func spoolAt(t testing.TB, dir string, o SpoolOptions) (*Spool, Recovery) {
	t.Helper()
	if o.SyncEvery == 0 {
		o.SyncEvery = time.Hour
	}
	if o.AliveEvery == 0 {
		o.AliveEvery = time.Hour
	}
	s, rec, err := OpenSpool(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { crash(s) })
	return s, rec
}

// crash lets go of a spool as the end of its process would: no clean mark.
func crash(s *Spool) {
	s.mu.Lock()
	gone := s.closed
	s.closed = true
	s.mu.Unlock()
	if gone {
		return
	}
	close(s.stop)
	s.stopped.Wait()
	s.file.Close()
	s.lock.Close()
}

// quiet logs where only a failed test shows it.
func quiet(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exactMoney compares amounts by value.
var exactMoney = cmp.Comparer(func(a, b money.Pico) bool { return a.Sub(b).IsZero() })
