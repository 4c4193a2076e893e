package auth

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"weir/internal/fault"
)

// Guessing a password is slowed down by account and by network (/24, /64): so
// many failures in a quarter of an hour, then a wait. Nobody is locked out for
// good, and sessions that exist go on.
const (
	throttleFailures = 10
	throttleWindow   = 15 * time.Minute
	throttleKeeps    = 100_000
)

// throttle counts failures in this process. It is safe for concurrent use.
type throttle struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[string][]time.Time
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, by: map[string][]time.Time{}}
}

// check is Limited, with the wait, while one of the subjects has failed too
// often.
func (t *throttle) check(subjects ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range subjects {
		failures := t.recent(s)
		if len(failures) >= throttleFailures {
			wait := failures[len(failures)-throttleFailures].Add(throttleWindow).Sub(t.now())
			return fault.New(fault.Limited, "too_many_attempts", "Too many attempts. Wait a while, or set a new password by mail.").After(max(wait, time.Second))
		}
	}
	return nil
}

// failed counts a failure of each subject.
func (t *throttle) failed(subjects ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.by {
		if len(t.by) < throttleKeeps {
			break
		}
		delete(t.by, s)
	}
	for _, s := range subjects {
		t.by[s] = append(t.recent(s), t.now())
	}
}

func (t *throttle) recent(subject string) []time.Time {
	list := t.by[subject]
	for len(list) > 0 && !list[0].Add(throttleWindow).After(t.now()) {
		list = list[1:]
	}
	return list
}

// subjects are an account and the network that an address belongs to, for one
// purpose: who may not sign in for a while can still ask for a new password.
func subjects(purpose, email, ip string) []string {
	out := []string{purpose + " account " + strings.ToLower(strings.TrimSpace(email))}
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return out
	}
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return out
	}
	return append(out, purpose+" network "+p.String())
}
