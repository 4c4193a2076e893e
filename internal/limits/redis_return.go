package limits

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// toldAtOnce is how many calls are told at once.
const toldAtOnce = 100

// minuteLag is for how long an ended call is told again to limits of minutes that
// were lost: one that ended earlier has refilled in part.
const minuteLag = 5 * time.Second

// comeBack tells Redis what happened while it was out, or what it lost, and then
// lets calls go to it again. Calls go on being decided by the process meanwhile;
// what they add is told in turn.
func (r *Redis) comeBack(ctx context.Context) {
	w := &r.away
	since, ok := r.clockThere(ctx)
	if !ok || !r.look(ctx) || !r.mend(ctx) {
		return
	}
	w.returning.Store(true)
	defer w.returning.Store(false)
	for ctx.Err() == nil {
		batch, done := w.untold(since, r.now())
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

// look finds the tenants of which Redis lost something while it was out.
func (r *Redis) look(ctx context.Context) bool {
	w := &r.away
	tenants := map[uuid.UUID]bool{}
	w.mu.Lock()
	if w.out.Load() {
		for _, c := range w.mine {
			tenants[c.Tenant] = true
		}
		for _, c := range w.recent {
			tenants[c.Tenant] = true
		}
	}
	w.mu.Unlock()
	for u := range tenants {
		if _, err := r.readings(ctx, u, nil, nil); err != nil {
			return false
		}
	}
	return true
}

// mend tells a Redis that was emptied what it had of this process: what is open,
// and what ended so lately that the books may not have it.
func (r *Redis) mend(ctx context.Context) bool {
	w := &r.away
	w.mu.Lock()
	w.emptied = false
	w.mu.Unlock()
	for u, t := range r.emptied() {
		losses := t.losses.Load()
		if _, err := r.readings(ctx, u, nil, nil); err != nil || !r.takeBack(ctx, u, t) || !r.tellAgain(ctx, u, t) {
			w.mu.Lock()
			w.emptied = true
			w.mu.Unlock()
			return false
		}
		t.mended.Store(losses)
		if told := t.lost.Swap(nil); told != nil {
			close(*told)
		}
	}
	return true
}

func (r *Redis) emptied() map[uuid.UUID]*farTenant {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := map[uuid.UUID]*farTenant{}
	for u, t := range r.tenants {
		if t.losses.Load() != t.mended.Load() {
			list[u] = t
		}
	}
	return list
}

// takeBack makes Redis know again what this process has open.
func (r *Redis) takeBack(ctx context.Context, tenant uuid.UUID, t *farTenant) bool {
	t.mending.Lock()
	defer t.mending.Unlock()
	w := &r.away
	var list []*myCall
	now, born := r.now(), t.born.Load()
	w.mu.Lock()
	for _, c := range w.mine {
		if c.Tenant == tenant && c.born != born && c.ended == nil && c.ExpiresAt.After(now) {
			list = append(list, c)
		}
	}
	w.mu.Unlock()
	for len(list) > 0 {
		n := min(len(list), toldAtOnce)
		some := make([]Reservation, n)
		for i, c := range list[:n] {
			some[i] = c.Reservation
		}
		if r.patiently(ctx, func(ctx context.Context) error { return r.restore(ctx, tenant, some, 0) }) != nil {
			return false
		}
		r.keepAgain(ctx, list[:n])
		w.known(list[:n], born)
		list = list[n:]
	}
	return true
}

// known notes which Redis knows calls now.
func (w *away) known(list []*myCall, born int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range list {
		c.born = born
	}
}

// tellAgain makes Redis know what calls came to that ended in one that is gone, or
// while there was none.
func (r *Redis) tellAgain(ctx context.Context, tenant uuid.UUID, t *farTenant) bool {
	w := &r.away
	born := t.born.Load()
	var list []*aloneCall
	w.mu.Lock()
	for _, c := range w.recent {
		if c.Tenant == tenant && c.born != born {
			list = append(list, c)
		}
	}
	for _, c := range w.mine {
		if c.Tenant == tenant && c.born != born && c.ended != nil {
			list = append(list, &aloneCall{myCall: *c})
		}
	}
	w.mu.Unlock()
	for len(list) > 0 {
		n := min(len(list), toldAtOnce)
		if r.adopt(ctx, list[:n]) != nil {
			return false
		}
		list = list[n:]
	}
	return true
}

// patiently lets a call through while no others are, for longer than they may take.
func (r *Redis) patiently(ctx context.Context, do func(context.Context) error) error {
	return do(context.WithValue(ctx, leading{}, true))
}

type leading struct{}

// passing lets a call through while no others are.
type passing struct{}

// untold are calls that Redis has to hear of; done ends the outage, where there
// are none.
func (w *away) untold(since int64, now time.Time) (batch []*aloneCall, done bool) {
	w.mu.Lock()
	a := w.alone
	w.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		for a.toldTo < len(a.order) && a.order[a.toldTo].told {
			a.toldTo++
		}
		for i := a.toldTo; i < len(a.order) && len(batch) < 10*toldAtOnce; i++ {
			if c := a.order[i]; !c.told {
				batch = append(batch, c)
			}
		}
		a.mu.Unlock()
	}
	if len(batch) > 0 {
		return batch, false
	}
	return nil, w.over(a, since, now)
}

// over ends the outage if nothing is left to tell. What the process may grant
// stays bounded by its share until all others have told what they granted.
func (w *away) over(a *alone, since int64, now time.Time) bool {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, c := range a.order[a.toldTo:] {
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
	if a != nil && a.parts > 1 && w.out.Load() {
		w.bound, a.backAt, a.backSince = a, now, since
	}
	w.alone, w.since, w.backAt = nil, time.Time{}, now
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
			if e.move != nil {
				return r.moveLate(ctx, &e)
			}
			_, born, err := r.endThere(ctx, e.tenant, e.id, e.as, e.settlement)
			if err == nil {
				w.finished(e, born)
			}
			return err
		})
		if isAway(err) {
			w.mu.Lock()
			w.pending = append(list[i:], w.pending...)
			w.mu.Unlock()
			return false
		}
		if e.move == nil {
			w.forget(e.id)
		} else {
			w.told(e.id)
		}
	}
	return true
}
