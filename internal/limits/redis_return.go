package limits

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// What is told at once, and how long the books may lag behind an event.
const (
	toldAtOnce = 50
	booksLag   = 5 * time.Second
)

// comeBack tells Redis what happened while it was out, and then lets calls go to
// it again. Calls go on being decided by the process meanwhile; what they add is
// told in turn.
func (r *Redis) comeBack(ctx context.Context) {
	w := &r.away
	if !r.takeBack(ctx) || !r.tellAgain(ctx) {
		return
	}
	for ctx.Err() == nil {
		batch, done := w.untold()
		if done {
			return
		}
		for len(batch) > 0 {
			n := sameTenant(batch)
			if r.adopt(ctx, batch[:n]) != nil {
				return
			}
			batch = batch[n:]
		}
		if !r.settlePending(ctx) {
			return
		}
	}
}

// takeBack makes sure that Redis knows the open reservations of this process: it
// may have been emptied.
func (r *Redis) takeBack(ctx context.Context) bool {
	w := &r.away
	byTenant := map[uuid.UUID][]Reservation{}
	now := r.now()
	w.mu.Lock()
	for _, c := range w.mine {
		if c.ExpiresAt.After(now) {
			byTenant[c.Tenant] = append(byTenant[c.Tenant], c.Reservation)
		}
	}
	w.mu.Unlock()
	for tenant, list := range byTenant {
		for len(list) > 0 {
			n := min(len(list), toldAtOnce)
			if r.patiently(ctx, func(ctx context.Context) error { return r.restore(ctx, tenant, list[:n], 0) }) != nil {
				return false
			}
			list = list[n:]
		}
	}
	return true
}

// tellAgain tells a Redis that was emptied what ended so lately that the books
// may not have it: rather twice than not at all.
func (r *Redis) tellAgain(ctx context.Context) bool {
	w := &r.away
	w.mu.Lock()
	byTenant := map[*farTenant][]*aloneCall{}
	if w.emptied {
		for _, c := range w.recent {
			if t := r.tenant(c.Tenant); t.emptied.Load() && r.now().Sub(c.ended.at) < booksLag {
				byTenant[t] = append(byTenant[t], c)
			}
		}
	}
	w.emptied = false
	w.mu.Unlock()
	for t, list := range byTenant {
		for len(list) > 0 {
			n := min(len(list), toldAtOnce)
			if r.adopt(ctx, list[:n]) != nil {
				return false
			}
			list = list[n:]
		}
		t.emptied.Store(false)
	}
	return true
}

// patiently lets a call through while no others are, for longer than they may take.
func (r *Redis) patiently(ctx context.Context, do func(context.Context) error) error {
	return do(context.WithValue(ctx, leading{}, true))
}

type leading struct{}

// untold are calls that Redis has to hear of; done ends the outage, where there
// are none.
func (w *away) untold() (batch []*aloneCall, done bool) {
	w.mu.Lock()
	a := w.alone
	w.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		for _, c := range a.order {
			if !c.told && len(batch) < 10*toldAtOnce {
				batch = append(batch, c)
			}
		}
		a.mu.Unlock()
	}
	if len(batch) > 0 {
		return batch, false
	}
	return nil, w.over(a)
}

// over ends the outage if nothing is left to tell.
func (w *away) over(a *alone) bool {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, c := range a.order {
			if !c.told {
				return false
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		return false
	}
	if a != nil {
		a.ended = true
		for _, c := range a.order {
			if c.ended == nil {
				w.mine[c.ID] = &c.myCall
			}
		}
	}
	w.alone, w.since = nil, time.Time{}
	w.failures.Store(0)
	if w.out.CompareAndSwap(true, false) {
		w.log.Info("redis is back")
	}
	return true
}

func sameTenant(batch []*aloneCall) int {
	n := 1
	for n < len(batch) && n < toldAtOnce && batch[n].Tenant == batch[0].Tenant {
		n++
	}
	return n
}

// adopt tells Redis of calls of one tenant that this process admitted by itself.
func (r *Redis) adopt(ctx context.Context, batch []*aloneCall) error {
	t := r.tenant(batch[0].Tenant)
	var p packer
	p.count(len(batch))
	names := map[[2]string]string{}
	w := &r.away
	w.mu.Lock()
	guard := &w.telling
	if w.alone != nil {
		guard = &w.alone.mu
	}
	w.mu.Unlock()
	ended := make([]*pendingEnd, len(batch))
	for i, c := range batch {
		guard.Lock()
		ended[i] = c.ended
		guard.Unlock()
		e := toldEntry{id: c.ID, recent: true}
		if c := ended[i]; c != nil {
			e.phase, e.back, e.figures = c.as, c.settlement.GiveBackRequest, packFigures(&c.settlement.Actual)
			e.recent = r.now().Sub(c.at) < booksLag
		}
		if err := r.writeEntry(&p, e, &c.Reservation, 0, c.forget, names); err != nil {
			return err
		}
	}
	err := r.patiently(ctx, func(ctx context.Context) error {
		got, err := r.run(ctx, batch[0].Tenant, t, func(int64) asked {
			q := r.about(t, farAdopt, uuid.Nil, p)
			q.ledger = func(suffix, field string) string { return names[[2]string{suffix, field}] }
			return q
		})
		if err == nil {
			if due := got.int(); due != 0 {
				r.owes(t, due)
			}
			t.born.Store(got.int())
		}
		return err
	})
	if err != nil {
		return err
	}
	guard.Lock()
	defer guard.Unlock()
	for i, c := range batch {
		if c.told = true; ended[i] == nil && c.ended != nil {
			w.owe(*c.ended)
		}
	}
	return nil
}

// settlePending tells the outcomes of calls that Redis knows. One that it does not
// know, or knows otherwise, is left as it is.
func (r *Redis) settlePending(ctx context.Context) bool {
	w := &r.away
	w.mu.Lock()
	list := w.pending
	w.pending = nil
	w.mu.Unlock()
	for i, e := range list {
		err := r.patiently(ctx, func(ctx context.Context) error {
			_, err := r.endThere(ctx, e.tenant, e.id, e.as, e.settlement)
			return err
		})
		if isAway(err) {
			w.mu.Lock()
			w.pending = append(list[i:], w.pending...)
			w.mu.Unlock()
			return false
		}
		w.forget(e.id)
	}
	return true
}
