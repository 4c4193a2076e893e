package limits

import (
	"context"
	"slices"
	"time"
)

// glance is how long a call that waits for a slot goes without looking: another
// process may have freed one.
const glance = 200 * time.Millisecond

// lineUp notes what calls of this process that wait ask of the same ledgers.
func (q *farAsk) lineUp() {
	q.t.line.Lock()
	defer q.t.line.Unlock()
	if q.ahead = q.ahead[:0]; len(q.t.waiting) == 0 {
		return
	}
	for i := range q.list {
		var all sum
		for _, o := range q.t.waiting {
			if o == q.self {
				break
			}
			all = all.plus(o.asks(q.list[i].id))
		}
		q.ahead = append(q.ahead, all)
	}
}

func (o *waiter) asks(id ident) (all sum) {
	for _, p := range o.places {
		if p.ledger == id {
			all = all.plus(p.cost)
		}
	}
	return all
}

// aheads packs what is asked before each charge: whose it is (0: the plan's),
// its place, and how much.
func (q *farAsk) aheads(p *packer) {
	var list packer
	n := 0
	add := func(of int, s span) {
		for i := s.from; i < s.to; i++ {
			if a := q.ahead[i]; !a.zero() {
				list.count(of)
				list.count(1 + i - s.from)
				list.ints(a.n, a.pico)
				n++
			}
		}
	}
	add(0, span{0, q.plan})
	for i, s := range q.spans {
		add(1+i, s)
	}
	p.count(n)
	p.b = append(p.b, list.b...)
}

// refuses notes the charges that refuse.
func (q *farAsk) refuses(lists ...[]farState) {
	for _, list := range lists {
		for _, s := range list {
			if s.Refuses && s.Limit.Mode == ModeEnforce {
				q.refusing = append(q.refusing, s.charge)
			}
		}
	}
}

// wait is Memory's: the line is this process's own. What other processes give
// back is seen when the wait that was known is over, and of slots within glance.
func (q *farAsk) wait(ctx context.Context, req *Request, d Decision) (Decision, error) {
	until := req.patience(d.At.UnixMicro())
	if !q.join(req, d, until) {
		return d, nil
	}
	defer q.leave()
	for {
		over, stop := q.r.after(q.sleep(time.Duration(until.of(d.ProviderFull)-d.At.UnixMicro()) * time.Microsecond))
		select {
		case <-over:
		case <-q.self.wake:
		case <-ctx.Done():
			stop()
			return d, out(ctx.Err())
		}
		stop()
		err := q.renew(ctx, req)
		if err != nil {
			return d, err
		}
		if d, err = q.reserve(ctx, req); err != nil || d.Admitted {
			return d, err
		}
		if d.At.UnixMicro() >= until.of(d.ProviderFull) || !q.patient(d, until) {
			return d, nil
		}
		q.stand()
	}
}

// renew lists anew what the request asks of each ledger, if its plan may have
// changed.
func (q *farAsk) renew(ctx context.Context, req *Request) error {
	if req.Renew == nil {
		return nil
	}
	if err := req.renew(ctx); err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	self := q.self
	*q = *q.r.ask(q.t, q.model)
	q.self = self
	q.resolve(req)
	return nil
}

// stand is Memory's.
func (q *farAsk) stand() {
	at := q.places()
	q.t.line.Lock()
	moved := !slices.Equal(q.self.places, at)
	q.self.places = at
	q.t.line.Unlock()
	if moved {
		q.t.wake()
	}
}

func (q *farAsk) places() (list []place) {
	for _, c := range q.refusing {
		list = append(list, place{c.id, c.cost})
	}
	return list
}

// sleep is how long to wait before looking again.
func (q *farAsk) sleep(most time.Duration) time.Duration {
	if least := max(q.known(false), q.known(true)); least > 0 {
		return min(most, time.Duration(least)*time.Microsecond)
	}
	return min(most, glance)
}

// known is how long a call waits in any case for its plan, or for a candidate,
// in µs: nobody knows when a slot comes free.
func (q *farAsk) known(route bool) (wait int64) {
	for _, c := range q.refusing {
		if c.candidate == route && c.rule.kind != kindGauge {
			wait = max(wait, c.wait)
		}
	}
	return wait
}

func (q *farAsk) patient(d Decision, until patience) bool {
	return !d.Again && !d.TooLarge && until.fits(d.At.UnixMicro(), q.known(false), q.known(true))
}

// join takes a place in line, if the wait fits and there are not too many.
func (q *farAsk) join(req *Request, d Decision, until patience) bool {
	if req.DryRun || !q.patient(d, until) {
		return false
	}
	q.t.line.Lock()
	defer q.t.line.Unlock()
	mine := 0
	for _, o := range q.t.waiting {
		if o.customer == req.Customer {
			mine++
		}
	}
	if mine >= maxWaitersOfCustomer || len(q.t.waiting) >= maxWaitersOfTenant {
		return false
	}
	q.self = &waiter{customer: req.Customer, places: q.places(), wake: make(chan struct{}, 1)}
	q.t.waiting = append(q.t.waiting, q.self)
	return true
}

func (q *farAsk) leave() {
	q.t.line.Lock()
	if i := slices.Index(q.t.waiting, q.self); i >= 0 {
		q.t.waiting = slices.Delete(q.t.waiting, i, i+1)
	}
	q.t.line.Unlock()
	q.t.wake()
}

// wake lets those look who are first at some ledger.
func (t *farTenant) wake() {
	t.line.Lock()
	defer t.line.Unlock()
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
