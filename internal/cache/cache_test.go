package cache

import (
	"context"
	"testing"
	"time"

	"weir/internal/fault"
)

func TestEntriesServeWhileFreshAndBridgeAnOutage(t *testing.T) {
	now := time.Unix(0, 0)
	loads, answer, fail := 0, "a", error(nil)
	c := New(Options[string]{Fresh: time.Second, Stale: 5 * time.Minute, Max: 10, Now: func() time.Time { return now }},
		func(context.Context, string) (string, error) { loads++; return answer, fail })
	expect := func(want string, wantLoads int) {
		t.Helper()
		got, err := c.Get(t.Context(), "k")
		if err != nil || got != want || loads != wantLoads {
			t.Fatalf("got %q, %v after %d loads; want %q after %d", got, err, loads, want, wantLoads)
		}
	}
	expect("a", 1)
	answer = "b"
	expect("a", 1)
	now = now.Add(time.Second)
	expect("b", 2)
	now, fail = now.Add(4*time.Minute), fault.New(fault.Unavailable, "database_unavailable", "")
	expect("b", 3)
	now = now.Add(2 * time.Minute)
	if _, err := c.Get(t.Context(), "k"); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("a stale entry served: %v", err)
	}
	fail = nil
	expect("b", 5)
	now, fail = now.Add(time.Second), fault.New(fault.NotFound, "not_found", "")
	if _, err := c.Get(t.Context(), "k"); !fault.Is(err, fault.NotFound) {
		t.Fatalf("a definite answer was overruled: %v", err)
	}
	fail = fault.New(fault.Unavailable, "database_unavailable", "")
	if _, err := c.Get(t.Context(), "k"); err == nil {
		t.Fatal("a revoked entry came back during an outage")
	}
}

func TestTheNumberOfEntriesIsBounded(t *testing.T) {
	c := New(Options[int]{Fresh: time.Minute, Max: 3, Now: time.Now}, func(_ context.Context, k int) (int, error) { return k, nil })
	for k := range 100 {
		if v, err := c.Get(t.Context(), k); err != nil || v != k {
			t.Fatalf("got %d, %v", v, err)
		}
	}
	if n := len(c.shards[0].by); len(c.shards) != 1 || n != 3 {
		t.Fatalf("%d entries", n)
	}
}

func TestWhatIsRenewedIsReadAgainAndStillBridgesAnOutage(t *testing.T) {
	value, broken := 1, error(nil)
	c := New(Options[int]{Fresh: time.Hour, Stale: 2 * time.Hour, Max: 10, Now: time.Now}, func(context.Context, string) (int, error) { return value, broken })
	get := func(want int) {
		t.Helper()
		if got, err := c.Get(t.Context(), "a"); got != want || err != nil {
			t.Errorf("got %d, %v; want %d", got, err, want)
		}
	}
	get(1)
	value = 2
	get(1)
	c.Renew("a")
	c.Renew("b")
	get(2)
	value, broken = 3, fault.New(fault.Unavailable, "database_unavailable", "out")
	c.Renew("a")
	get(2)
}
