package limits

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// How many calls may wait.
const (
	maxWaitersOfCustomer = 100
	maxWaitersOfTenant   = 2000
)

// MaxWait is the longest that a call may ask to wait.
const MaxWait = 60 * time.Second

// waiter is a call that waits for room. It holds nothing but its place in line
// at each ledger that refused it last: whoever comes later leaves room for it
// there.
type waiter struct {
	customer uuid.UUID
	places   []place
	wake     chan struct{} // something was given back, or somebody before it left
}

type place struct {
	ledger ident
	cost   sum
}

// patience is until when a call waits, in µs: for room in its plan, and at a
// candidate.
type patience struct{ plan, route int64 }

func (r *Request) patience(now int64) patience {
	until := patience{now + r.MaxWait.Microseconds(), now + r.MaxWait.Microseconds()}
	if r.RouteWait > 0 {
		until.route = min(until.route, now+r.RouteWait.Microseconds())
	}
	return until
}

// of is the end of a wait that began with a refusal by the plan, or by the
// candidates alone.
func (p patience) of(providerFull bool) int64 {
	if providerFull {
		return p.route
	}
	return p.plan
}

// fits tells whether waits that are known are over by then.
func (p patience) fits(now, plan, route int64) bool {
	return now+plan <= p.plan && now+route <= p.route
}

// patient tells whether a refused call may wait: the wait fits, as far as it is
// known, and there are not too many who wait. Nobody knows when a slot comes
// free, so a wait for one always may.
func (w *work) patient(r *Request, d decision, until patience) bool {
	if d.admitted || d.again || d.tooLarge || r.DryRun || !until.fits(w.at.micros, leastWait(w.list, w.plan), leastWait(w.list, w.chosen)) {
		return false
	}
	mine := 0
	for _, o := range w.t.waiting {
		if o.customer == r.Customer {
			mine++
		}
	}
	return w.self != nil || mine < maxWaitersOfCustomer && len(w.t.waiting) < maxWaitersOfTenant
}

// places are what a call asks of the ledgers that refuse it.
func (w *work) places() (list []place) {
	for _, s := range []span{w.plan, w.chosen} {
		for i := s.from; i < s.to; i++ {
			if c := &w.list[i]; c.refuses && !c.rule.shadow {
				list = append(list, place{c.id, c.cost})
			}
		}
	}
	return list
}

// leastWait is how long a call waits in any case for what of a list refuses it, in
// µs.
func leastWait(list []charge, of span) (wait int64) {
	for i := of.from; i < of.to; i++ {
		if c := &list[i]; c.refuses && !c.rule.shadow && c.rule.kind != kindGauge {
			wait = max(wait, c.wait)
		}
	}
	return wait
}

// wait is a decision for a call that waits for room until it fits, its time is
// over, or its caller has gone. The tenant is locked, and is again when it
// returns without an error.
func (m *Memory) wait(ctx context.Context, r *Request, w *work, d decision) (*work, decision, error) {
	until := r.patience(w.at.micros)
	if !w.patient(r, d, until) {
		return w, d, nil
	}
	t, self := w.t, &waiter{customer: r.Customer, places: w.places(), wake: make(chan struct{}, 1)}
	t.waiting = append(t.waiting, self)
	w.self = self
	for w.patient(r, d, until) && w.at.micros < until.of(d.providerFull) {
		sleep := until.of(d.providerFull) - w.at.micros
		if least := max(leastWait(w.list, w.plan), leastWait(w.list, w.chosen)); least > 0 {
			sleep = min(sleep, least)
		}
		w.unlock()
		err := m.sleep(ctx, time.Duration(sleep)*time.Microsecond, self.wake)
		if err == nil {
			err = r.renew(ctx)
		}
		if err == nil {
			w, d, err = m.decide(ctx, r, self)
		}
		if err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.leave(self)
			return nil, d, err
		}
		if !d.admitted && !d.again {
			t.stand(self, w.places())
		}
	}
	t.leave(self)
	return w, d, nil
}

func (r *Request) renew(ctx context.Context) (err error) {
	if r.Renew != nil {
		r.Plan, err = r.Renew(ctx)
	}
	return err
}

func (m *Memory) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	over, stop := m.after(d)
	defer stop()
	select {
	case <-over:
	case <-wake:
	case <-ctx.Done():
		return out(ctx.Err())
	}
	return nil
}

// ahead is what those ask of a ledger who came before.
func (w *work) ahead(id ident) (all sum) {
	for _, o := range w.t.waiting {
		if o == w.self {
			break
		}
		for _, p := range o.places {
			if p.ledger == id {
				all = all.plus(p.cost)
			}
		}
	}
	return all
}

// stand moves a waiter to the ledgers that refuse it now; there it is before
// whoever came later.
func (t *tenant) stand(o *waiter, at []place) {
	if !slices.Equal(o.places, at) {
		o.places = at
		t.wake()
	}
}

// leave takes a waiter out of the line.
func (t *tenant) leave(o *waiter) {
	if i := slices.Index(t.waiting, o); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.wake()
	}
}

// wake looks after something was given back, or somebody has left, who may pass:
// those who are the first at some ledger. When one of them has passed, the next
// is woken.
func (t *tenant) wake() {
	if len(t.waiting) == 0 {
		return
	}
	taken := map[ident]bool{}
	for _, o := range t.waiting {
		first := false
		for _, p := range o.places {
			first = first || !taken[p.ledger]
			taken[p.ledger] = true
		}
		if first {
			select {
			case o.wake <- struct{}{}:
			default:
			}
		}
	}
}
