package limits

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// adopt tells Redis of calls of one tenant that this process admitted by itself,
// or that ended in a Redis that is gone. A calendar window that began with a
// reading of the books which held a call's event is not charged with it again.
func (r *Redis) adopt(ctx context.Context, batch []*aloneCall) error {
	tenant := batch[0].Tenant
	t, guard := r.tenant(tenant), r.away.guard()
	ended := make([]*pendingEnd, len(batch))
	guard.Lock()
	for i, c := range batch {
		ended[i] = c.ended
	}
	guard.Unlock()
	held, err := r.held(ctx, tenant, batch, ended)
	if err != nil {
		return err
	}
	var p packer
	p.count(len(batch))
	names := map[[2]string]string{}
	for i, c := range batch {
		e := r.entry(c.ID, ended[i])
		e.counted = make([]byte, len(c.Holds))
		for j := range c.Holds {
			if held[callHold{i, j}] {
				e.counted[j] = 1
			}
		}
		if err := r.writeEntry(&p, e, &c.Reservation, 0, c.forget, names); err != nil {
			return err
		}
	}
	var born int64
	err = r.patiently(ctx, func(ctx context.Context) error {
		got, err := r.run(ctx, tenant, t, func(int64) asked {
			q := r.about(t, farAdopt, uuid.Nil, p)
			q.ledger = func(suffix, field string) string { return names[[2]string{suffix, field}] }
			return q
		})
		if err != nil {
			return err
		}
		if due := got.int(); due != 0 {
			r.owes(t, due)
		}
		born = got.int()
		r.away.born(t, born)
		return got.err
	})
	if err != nil {
		return err
	}
	for i, c := range batch {
		if ended[i] == nil {
			r.keepAgain(ctx, []*myCall{&c.myCall})
		}
	}
	guard.Lock()
	defer guard.Unlock()
	for i, c := range batch {
		r.away.adopted(c, ended[i], born)
	}
	return nil
}

// guard is the lock under which calls end that Redis is told of.
func (w *away) guard() *sync.Mutex {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone != nil {
		return &w.alone.mu
	}
	return &w.telling
}

// adopted notes that Redis knows a call as it was; the guard is held.
func (w *away) adopted(c *aloneCall, as *pendingEnd, born int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := c.born != 0
	c.told, c.born = true, born
	switch {
	case as == nil && c.ended != nil:
		w.pending = append(w.pending, *c.ended)
	case as != nil && !again:
		w.remember(c, as.at)
	}
}

// entry is how a call ended (nil: it is open), as Redis is told.
func (r *Redis) entry(id uuid.UUID, as *pendingEnd) toldEntry {
	if as == nil {
		return toldEntry{id: id, recent: true}
	}
	return toldEntry{
		id: id, phase: as.as, back: as.settlement.GiveBackRequest, figures: packFigures(&as.settlement.Actual), recent: r.now().Sub(as.at) < minuteLag,
	}
}

// callHold is a hold of a call by their places.
type callHold struct{ call, hold int }

// farWindow is a calendar window in Redis.
type farWindow struct {
	suffix, field string
	amount        int64
	window        window
}

// held are the holds of ended calls whose windows hold them already, as the books
// told. Windows that are not there are loaded first.
func (r *Redis) held(ctx context.Context, tenant uuid.UUID, batch []*aloneCall, ended []*pendingEnd) (map[callHold]bool, error) {
	var windows []farWindow
	names := map[[2]string]string{}
	of := map[farWindow][]callHold{}
	for i, c := range batch {
		limits := make([]Limit, len(c.Holds))
		for j, h := range c.Holds {
			limits[j] = h.Limit
		}
		set := Compile(limits)
		if set.broken != nil {
			return nil, out(set.broken)
		}
		for j := range c.Holds {
			h := &c.Holds[j]
			if set.rules[j].kind != kindCalendar {
				continue
			}
			suffix, field := set.told().rules[j].place(h)
			names[[2]string{suffix, field}] = h.Ledger
			w := farWindow{suffix, field, h.Limit.Amount, window{h.WindowStart.UnixMilli(), h.WindowEnd.UnixMilli()}}
			if of[w] == nil {
				windows = append(windows, w)
			}
			of[w] = append(of[w], callHold{i, j})
		}
	}
	readings, err := r.readings(ctx, tenant, windows, names)
	if err != nil {
		return nil, err
	}
	calls := map[string][]uuid.UUID{}
	for i, w := range windows {
		for _, at := range of[w] {
			if readings[i] != "" && ended[at.call] != nil {
				calls[readings[i]] = append(calls[readings[i]], batch[at.call].ID)
			}
		}
	}
	holds := map[callHold]bool{}
	for reading, ids := range calls {
		known, err := r.books.Held(ctx, tenant, reading, ids)
		if err != nil {
			return nil, out(err)
		}
		for i, w := range windows {
			for _, at := range of[w] {
				if readings[i] == reading && slices.Contains(known, batch[at.call].ID) {
					holds[at] = true
				}
			}
		}
	}
	return holds, nil
}

// readings say which reading of the books each window began with; empty: none.
func (r *Redis) readings(ctx context.Context, tenant uuid.UUID, windows []farWindow, names map[[2]string]string) ([]string, error) {
	t := r.tenant(tenant)
	var p packer
	p.count(len(windows))
	for _, w := range windows {
		p.str(w.suffix)
		p.str(w.field)
		p.ints(w.amount, w.window.start, w.window.end)
	}
	list := make([]string, len(windows))
	err := r.patiently(ctx, func(ctx context.Context) error {
		a, err := r.run(ctx, tenant, t, func(int64) asked {
			q := r.about(t, farRead, uuid.Nil, p)
			q.ledger = func(suffix, field string) string { return names[[2]string{suffix, field}] }
			return q
		})
		if err != nil {
			return err
		}
		r.away.born(t, a.int())
		for i := range list {
			list[i] = a.text()
		}
		return a.err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
