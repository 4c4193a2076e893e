package limits_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/limits/limitstest"
)

func open(_ testing.TB, o limitstest.Options) limitstest.Engine {
	return limits.NewMemory(limits.MemoryOptions{Now: o.Now, After: o.After, Books: o.Books, Started: o.Started, Unclean: o.Unclean, LastAlive: o.LastAlive})
}

func TestMemory(t *testing.T) {
	limitstest.Run(t, open, "testdata/dual_bucket_vectors.json", allZones(t))
}

// allZones are the names of tzdata.
func allZones(t *testing.T) []string {
	raw, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

var (
	tenant   = id.New()
	customer = id.New()
)

func limit(d limits.Dimension, w limits.Window, amount int64) limits.Limit {
	return limits.Default(limits.Limit{Scope: limits.Scope{Kind: limits.ScopeCustomer, ID: customer}, Dimension: d, Window: w, Amount: amount})
}

func reserve(t *testing.T, m *limits.Memory, model string, tokens int64, plan ...limits.Limit) limits.Decision {
	t.Helper()
	d, err := m.Reserve(context.Background(), limits.Request{
		Tenant: tenant, Model: model, Plan: []*limits.Set{limits.Compile(plan)},
		Estimate: limits.Cost{Requests: 1, Tokens: limits.Tokens{Input: tokens}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func live(t *testing.T, m *limits.Memory, plan ...limits.Limit) []limits.State {
	t.Helper()
	states, err := m.Live(context.Background(), tenant, plan, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return states
}

func TestASnapshotOfACleanStopGivesNothingBack(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
	plan := []limits.Limit{limit(limits.DimensionTokens, limits.WindowMinute, 600), limit(limits.DimensionRequests, limits.WindowMinute, 7)}
	r := reserve(t, m, "", 600, plan...).Reservation
	if _, err := m.Settle(context.Background(), tenant, r.ID, limits.Settlement{Actual: limits.Cost{Tokens: limits.Tokens{Output: 900}}}); err != nil {
		t.Fatal(err)
	}
	raw, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	clock.Move(10 * time.Second)
	next := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Started: clock.Now(), Snapshot: raw})
	if diff := cmp.Diff(live(t, m, plan...), live(t, next, plan...)); diff != "" {
		t.Fatal(diff)
	}
	if s := live(t, next, plan[0])[0]; s.Debt != 200 {
		t.Fatalf("the debt is %d, want 300 less what refilled in 10 s", s.Debt)
	}
}

func TestASnapshotThatCannotBeReadCountsAsAnUncleanEnd(t *testing.T) {
	for _, raw := range []string{"{", `{"version":9}`, "null", `[]`} {
		clock := limitstest.NewClock(time.Now())
		m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Snapshot: []byte(raw)})
		clock.Move(time.Second)
		if s := live(t, m, limit(limits.DimensionTokens, limits.WindowMinute, 600))[0]; s.Remaining != 10 {
			t.Errorf("%s: %d remain of a bucket that may have been used", raw, s.Remaining)
		}
	}
}

func FuzzNoSnapshotBreaksTheStart(f *testing.F) {
	f.Add([]byte(`{"version":1,"tenants":{"01890000-0000-7000-8000-000000000001":{"customer:x/tokens/minute":{"rate":1,"ceiling":1,"level_grains":-60000,"last_ms":5}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := limits.NewMemory(limits.MemoryOptions{Now: limitstest.NewClock(limitstest.Noon).Now, Snapshot: raw})
		reserve(t, m, "", 1, limit(limits.DimensionTokens, limits.WindowMinute, 600))
	})
}

func TestLedgersThatSayNothingAreDropped(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxLedgers: 3000})
	of := func(name string, w limits.Window) limits.Limit {
		l := limit(limits.DimensionTokens, w, 60)
		l.Scope.ID = uuid.NewSHA1(customer, []byte(name))
		return l
	}
	for i := range 1500 {
		reserve(t, m, "", 1, of(fmt.Sprint("m", i), limits.WindowMinute), of(fmt.Sprint("m", i), limits.WindowDay))
	}
	crowded := limits.Request{Tenant: tenant, Plan: []*limits.Set{limits.Compile([]limits.Limit{of("one more", limits.WindowMinute)})}, Estimate: limits.Cost{Tokens: limits.Tokens{Input: 1}}}
	_, err := m.Reserve(context.Background(), crowded)
	if fault.Of(err).Code != "limiter_unavailable" {
		t.Fatalf("a tenant has more ledgers than it may: %v", err)
	}
	clock.Move(3 * time.Hour)
	m.Expire(clock.Now()) // the calls are over
	clock.Move(3 * time.Hour)
	m.Expire(clock.Now()) // and forgotten
	if _, err := m.Reserve(context.Background(), crowded); err != nil {
		t.Fatalf("full buckets are in the way: %v", err)
	}
	if s := live(t, m, limit(limits.DimensionTokens, limits.WindowDay, 60))[0]; s.Used != 0 {
		t.Fatalf("%+v", s)
	}
	clock.Move(24 * time.Hour)
	for range 10 {
		m.Expire(clock.Now())
	}
	for i := range 1499 {
		reserve(t, m, "", 1, of(fmt.Sprint("n", i), limits.WindowMinute), of(fmt.Sprint("n", i), limits.WindowDay))
	}
}

func TestASpentDayIsNeverDroppedBeforeItEnds(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now})
	day := limit(limits.DimensionTokens, limits.WindowDay, 60)
	reserve(t, m, "", 60, day)
	for range 11 {
		clock.Move(time.Hour)
		m.Expire(clock.Now())
		if reserve(t, m, "", 1, day).Admitted {
			t.Fatalf("admitted at %s", clock.Now())
		}
	}
}

func TestOutcomesBeyondTheBoundAreForgottenOldestFirst(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, MaxOutcomes: 2})
	var ids []uuid.UUID
	for range 3 {
		ids = append(ids, reserve(t, m, "", 1).Reservation.ID)
		clock.Move(time.Second)
	}
	for _, u := range ids {
		if _, err := m.Cancel(context.Background(), tenant, u); err != nil {
			t.Fatal(err)
		}
	}
	for i, u := range ids {
		if _, err := m.Cancel(context.Background(), tenant, u); (err != nil) != (i == 0) {
			t.Errorf("outcome %d: %v", i, err)
		}
	}
}

func TestALoadThatIsAbandonedFailsTheCallOnly(t *testing.T) {
	clock := limitstest.NewClock(limitstest.Noon)
	hang := make(chan struct{})
	m := limits.NewMemory(limits.MemoryOptions{Now: clock.Now, Books: slowBooks(hang)})
	day := limit(limits.DimensionTokens, limits.WindowDay, 60)
	first := make(chan error)
	go func() {
		_, err := m.Live(context.Background(), tenant, []limits.Limit{day}, "", "")
		first <- err
	}()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	hang <- struct{}{} // the first call is in the books now
	if _, err := m.Live(ctx, tenant, []limits.Limit{day}, "", ""); fault.Of(err).Code != "limiter_unavailable" {
		t.Fatalf("%v", err)
	}
	if s := live(t, m, limit(limits.DimensionTokens, limits.WindowMinute, 60))[0]; s.Remaining != 60 {
		t.Fatal("a load holds the tenant's lock")
	}
	hang <- struct{}{}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if s := live(t, m, day)[0]; s.Used != 42 {
		t.Fatalf("%+v", s)
	}
}

// slowBooks answers 42 once it was let go twice.
type slowBooks chan struct{}

func (b slowBooks) CapTotals(_ context.Context, _ uuid.UUID, keys []limits.WindowKey) ([]limits.Total, error) {
	<-b
	<-b
	totals := make([]limits.Total, len(keys))
	for i := range totals {
		totals[i].Amount = 42
	}
	return totals, nil
}
