package limitstest

import (
	"sync"
	"testing"
	"time"
)

// Clock is a clock that stands until it is told to move.
type Clock struct {
	mu     sync.Mutex
	at     time.Time
	timers map[*timer]bool
}

type timer struct {
	due  time.Time
	over chan time.Time
}

// Noon is when tests begin unless they say otherwise.
var Noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// NewClock is a clock that stands at an instant.
func NewClock(at time.Time) *Clock { return &Clock{at: at, timers: map[*timer]bool{}} }

// Now is the instant that it stands at.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Move moves it, backwards too.
func (c *Clock) Move(d time.Duration) { c.Set(c.Now().Add(d)) }

// Set puts it to an instant.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
	for t := range c.timers {
		c.ring(t)
	}
}

// After is a limits.After of this clock.
func (c *Clock) After(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.at.Add(d), make(chan time.Time, 1)}
	c.timers[t] = true
	c.ring(t)
	return t.over, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
	}
}

func (c *Clock) ring(t *timer) {
	if !c.at.Before(t.due) {
		delete(c.timers, t)
		t.over <- c.at
	}
}

// Sleepers returns once so many wait for the clock.
func (c *Clock) Sleepers(t testing.TB, n int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Microsecond) {
		c.mu.Lock()
		got := len(c.timers)
		c.mu.Unlock()
		if got == n {
			return
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("%d wait for the clock, want %d", got, n)
		}
	}
}
