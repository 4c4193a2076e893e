package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/fault"
)

// source is what a cache is over: a number that changes, by key.
type source struct {
	mu    sync.Mutex
	now   time.Time
	value map[string]int
	loads int
	out   bool
}

func (s *source) clock() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.now }

func (s *source) advance(d time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.now = s.now.Add(d) }

func (s *source) load(_ context.Context, k string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	if s.out {
		return 0, fault.New(fault.Unavailable, "database_unavailable", "")
	}
	return s.value[k], nil
}

func followed(most int) (*source, *Horizon, *Cache[string, int]) {
	s := &source{now: time.Unix(1e9, 0), value: map[string]int{}}
	h := NewHorizon(time.Second)
	o := Options[int]{Fresh: time.Second, Keep: time.Hour, Stale: 5 * time.Minute, Max: most, Now: s.clock, Horizon: h}
	return s, h, New(o, s.load)
}

func (s *source) expect(t *testing.T, c *Cache[string, int], k string, want, wantLoads int) {
	t.Helper()
	got, err := c.Get(t.Context(), k)
	if err != nil || got != want || s.loads != wantLoads {
		t.Fatalf("%s is %d, %v after %d loads; want %d after %d", k, got, err, s.loads, want, wantLoads)
	}
}

func TestAnEntryThatIsVouchedForIsReadOnceAndAgainOnceItWasDropped(t *testing.T) {
	s, h, c := followed(10)
	h.Restart(s.now, s.now)
	s.advance(time.Millisecond)
	s.expect(t, c, "a", 0, 1)
	s.expect(t, c, "b", 0, 2)
	for range 1000 {
		s.advance(time.Second)
		h.Confirm(s.now)
		s.expect(t, c, "a", 0, 2)
	}
	s.value["a"], s.value["b"] = 1, 1
	c.Drop("a")
	s.expect(t, c, "a", 1, 3)
	s.expect(t, c, "b", 0, 3)
	s.advance(time.Hour)
	h.Confirm(s.now)
	s.expect(t, c, "b", 1, 4) // whatever was said, not longer than Keep
}

func TestWhatNobodyVouchesForIsReadAgainAfterASecond(t *testing.T) {
	s, h, c := followed(10)
	s.expect(t, c, "a", 0, 1)
	h.Restart(s.now, s.now) // what was read before is not covered
	s.advance(time.Second)
	h.Confirm(s.now)
	s.expect(t, c, "a", 0, 2)
	s.advance(999 * time.Millisecond)
	s.expect(t, c, "a", 0, 2)
	s.advance(time.Minute) // nobody looked, or this process was stopped
	s.value["a"] = 1
	s.expect(t, c, "a", 1, 3)
	s.advance(time.Second)
	h.Restart(s.now, s.now)
	s.expect(t, c, "a", 1, 4)
}

func TestALoadThatBeganBeforeADropIsNotRemembered(t *testing.T) {
	h, now := NewHorizon(time.Second), time.Unix(1e9, 0)
	reading, read := make(chan struct{}), make(chan struct{})
	var value atomic.Int64
	var slow atomic.Bool
	c := New(Options[int64]{Fresh: time.Second, Keep: time.Hour, Max: 10, Now: func() time.Time { return now }, Horizon: h}, func(context.Context, string) (int64, error) {
		v := value.Load()
		if slow.Load() {
			reading <- struct{}{}
			<-read
		}
		return v, nil
	})
	for _, drop := range []func(){func() { c.Drop("a") }, func() { c.DropIf(func(string, int64) bool { return false }) }} {
		slow.Store(true)
		var group sync.WaitGroup
		group.Go(func() { _, _ = c.Get(t.Context(), "a") })
		<-reading // it saw the old value
		value.Add(1)
		drop()
		read <- struct{}{}
		group.Wait()
		slow.Store(false)
		if v, err := c.Get(t.Context(), "a"); err != nil || v != value.Load() {
			t.Errorf("%d, %v", v, err)
		}
		c.Drop("a")
	}
}

func TestManyWhoAskAtOnceLoadOnce(t *testing.T) {
	s, _, c := followed(10)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if _, err := c.Get(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if s.loads != 1 {
		t.Errorf("%d loads", s.loads)
	}
}

func TestTheLeastRecentlyUsedEntryGoesFirst(t *testing.T) {
	s, _, c := followed(3)
	for _, k := range []string{"a", "b", "c", "a", "d", "a"} { // b goes
		if _, err := c.Get(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []string{"a", "c", "d"} {
		s.expect(t, c, k, 0, 4)
	}
	s.expect(t, c, "b", 0, 5) // and takes the place of a
	s.expect(t, c, "c", 0, 5)
	s.expect(t, c, "a", 0, 6)
}

func TestAValueEndsAtItsInstant(t *testing.T) {
	s, h, _ := followed(10)
	end := s.now.Add(10 * time.Minute)
	c := New(Options[int]{Fresh: time.Second, Keep: time.Hour, Max: 10, Now: s.clock, Horizon: h, Until: func(v int) time.Time {
		if v == 0 {
			return end
		}
		return time.Time{}
	}}, s.load)
	h.Restart(s.now, s.now)
	s.advance(time.Millisecond)
	s.expect(t, c, "a", 0, 1)
	s.now = end.Add(-time.Millisecond)
	h.Confirm(s.now)
	s.expect(t, c, "a", 0, 1)
	s.now, s.value["a"] = end, 1
	s.expect(t, c, "a", 1, 2)
	s.advance(500 * time.Millisecond)
	s.expect(t, c, "a", 1, 2)
}

func TestDuringAnOutageWhatHeldLastServesAndAKnownChangeDoesNot(t *testing.T) {
	s, h, c := followed(10)
	h.Restart(s.now, s.now)
	s.advance(time.Millisecond)
	for _, k := range []string{"a", "b"} {
		if _, err := c.Get(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(10 * time.Minute)
	h.Confirm(s.now) // both held until now
	c.Drop("b")
	s.out = true
	s.advance(5*time.Minute - time.Second)
	if _, err := c.Get(t.Context(), "a"); err != nil {
		t.Errorf("what held 5 minutes ago: %v", err)
	}
	if v, err := c.Get(t.Context(), "b"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("what is known to have changed: %d, %v", v, err)
	}
	s.advance(2 * time.Second)
	if v, err := c.Get(t.Context(), "a"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("what held longer ago: %d, %v", v, err)
	}
}
