package auth

import "time"

// Attempts slows down who asks for something too often: by the address that is
// named and by the network that asks, ten times in a quarter of an hour each. It
// counts in this process, and is safe for concurrent use.
type Attempts struct {
	purpose  string
	throttle *throttle
}

// NewAttempts makes one for a purpose of its own.
func NewAttempts(purpose string, now func() time.Time) *Attempts {
	return &Attempts{purpose, newThrottle(now)}
}

// Take counts an attempt. It is Limited too_many_attempts, with the wait, when
// there were too many.
func (a *Attempts) Take(email, ip string) error {
	who := subjects(a.purpose, email, ip)
	if err := a.throttle.check(who...); err != nil {
		return err
	}
	a.throttle.failed(who...)
	return nil
}
