package faults

import (
	"context"
	"fmt"
	"time"

	"weir/internal/limits"
	"weir/test/stack"
)

// decide makes a reservation and does with it what the call's kind says.
func (l *load) decide(o *op, up <-chan struct{}) (cut bool) {
	a, err := l.s.Do(context.Background(), "POST", "/v1/reservations", l.world.ManagementKey, fmt.Sprintf(
		`{"customer": %q, "model": "test-small", "provider_key": %q, "end_user": %q, "estimate": {"input_tokens": %d, "output_tokens": %d}, "ttl_seconds": %d}`,
		l.world.Customer, l.world.ProviderKey, o.user, promptTokens, maxOutput, o.ttl))
	if err != nil {
		return true
	}
	if o.reservation = a.Text("id"); a.Status != 201 || o.reservation == "" {
		l.failed(o, a)
		return false
	}
	switch o.kind {
	case "settle", "cancel":
		return l.end(o, up)
	case "hold":
		l.later(o, time.Time{})
	case "late":
		l.later(o, time.Now().Add(time.Duration(o.ttl)*time.Second+300*time.Millisecond))
	}
	return false // or abandoned: it runs out
}

// end settles or cancels, and says it again until there is an answer: the first
// one may have been lost after it took effect.
func (l *load) end(o *op, up <-chan struct{}) (cut bool) {
	verb, body := "settle", fmt.Sprintf(`{"outcome": "ok", "usage": {"input_tokens": %d, "output_tokens": %d}}`, promptTokens, o.actual)
	if o.kind == "cancel" {
		verb, body = "cancel", ""
	}
	for {
		a, err := l.s.Do(context.Background(), "POST", "/v1/reservations/"+o.reservation+"/"+verb, l.world.ManagementKey, body)
		switch {
		case err == nil && a.Status == 503 && a.Text("code") == "reservation_pending" && a.Header.Get("Retry-After") == "1":
			<-time.After(100 * time.Millisecond) // its outcome is on its way to the books
			continue
		case err == nil:
			l.ended(o, a)
			return false
		case l.stop.Load():
			l.t.Errorf("%s: %v", o, err)
			return true
		}
		<-up
		up = l.next()
	}
}

// waiting is a reservation that its client will end at an instant, or, where
// that is zero, once everything was killed and runs again.
type waiting struct {
	op       op
	due      time.Time
	restarts int
}

func (l *load) later(o *op, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, waiting{*o, due, l.restarts})
	o.handed = true
}

// due is a reservation that it is time to end.
func (l *load) due() (op, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w.due.IsZero() && (w.restarts < l.restarts || l.stop.Load()) || !w.due.IsZero() && time.Now().After(w.due) {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return w.op, true
		}
	}
	return op{}, false
}

func (l *load) ended(o *op, a stack.Answer) {
	if a.Status != 200 {
		l.failed(o, a)
		return
	}
	o.late, _ = a.JSON("late").(bool)
	o.seen = &limits.Tokens{}
	if o.kind != "cancel" {
		o.seen = &limits.Tokens{Input: promptTokens, Output: o.actual}
	}
}

func (l *load) failed(o *op, a stack.Answer) {
	l.t.Errorf("%s: %s", o, a)
	o.failed = true
}
