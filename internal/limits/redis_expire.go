package limits

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Expire is Memory's, on Redis: of what this process reserved or took back. What
// cannot be asked about now is told by a later call.
func (r *Redis) Expire(now time.Time) []Reservation {
	var list []Reservation
	asked := r.owing(now.UnixMicro())
	for u := range asked {
		t := r.tenant(u)
		told, due, err := r.handOut(u, t, now)
		if err != nil {
			continue // it is still owed
		}
		list = append(list, told...)
		r.mu.Lock()
		if t.due == asked[u] {
			t.due = due
		}
		r.mu.Unlock()
	}
	return list
}

// owing are the tenants that may have something to hand out by an instant (µs),
// and since when.
func (r *Redis) owing(by int64) map[uuid.UUID]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := map[uuid.UUID]int64{}
	for u, t := range r.tenants {
		if t.due != 0 && t.due <= max(by, t.seen.Load()) {
			list[u] = t.due
		}
	}
	return list
}

func (r *Redis) handOut(tenant uuid.UUID, t *farTenant, now time.Time) (list []Reservation, due int64, err error) {
	var micros int64
	if r.clock != nil {
		micros = now.UnixMicro()
	}
	var p packer
	p.str(r.owner)
	a, err := r.exec(context.Background(), r.about(t, farExpire, uuid.Nil, p, 1), nil, micros)
	if err != nil {
		return nil, 0, err
	}
	for range a.array() {
		a.array()
		u := idOf(a.str())
		c := r.record(&a.unpacker, tenant, u)
		if a.err != nil {
			return list, 0, out(a.err)
		}
		list = append(list, c.reservation())
		r.away.forget(u)
	}
	return list, a.int(), a.err
}

// Restore is Memory's, on Redis.
func (r *Redis) Restore(ctx context.Context, open []Reservation) error {
	byTenant := map[uuid.UUID][]Reservation{}
	for _, o := range open {
		byTenant[o.Tenant] = append(byTenant[o.Tenant], o)
	}
	for tenant, list := range byTenant {
		if err := r.restore(ctx, tenant, list, 0); err != nil {
			return err
		}
	}
	return nil
}

// Recall is Memory's, on Redis.
func (r *Redis) Recall(ctx context.Context, o Reservation) error {
	return r.restore(ctx, o.Tenant, []Reservation{o}, int64(expired))
}

func (r *Redis) restore(ctx context.Context, tenant uuid.UUID, list []Reservation, as int64) error {
	t := r.tenant(tenant)
	var p packer
	p.array(len(list))
	names := map[[2]string]string{}
	for i := range list {
		o := &list[i]
		p.array(2)
		p.str(string(o.ID[:]))
		if err := r.writeRestored(&p, o, as, false, names); err != nil {
			return out(err)
		}
	}
	a, err := r.run(ctx, tenant, t, func(int64) asked {
		a := r.about(t, farRestore, uuid.Nil, p, 1)
		a.ledger = func(suffix, field string) string { return names[[2]string{suffix, field}] }
		return a
	})
	if err != nil {
		return err
	}
	if a.status != farDone {
		return refusal(a.status)
	}
	if due := a.int(); due != 0 {
		r.owes(t, due)
	}
	r.away.born(t, a.int())
	return a.err
}

// writeRestored packs a reservation as an earlier life made it.
func (r *Redis) writeRestored(p *packer, o *Reservation, as int64, forget bool, names map[[2]string]string) error {
	limits := make([]Limit, len(o.Holds))
	for i, h := range o.Holds {
		limits[i] = h.Limit
	}
	set := Compile(limits)
	if set.broken != nil {
		return set.broken
	}
	f := set.told()
	p.array(20)
	p.ints(as, o.At.UnixMicro(), o.ExpiresAt.UnixMicro())
	p.str(packFigures(&o.Estimate))
	p.int(o.Estimate.Requests)
	p.str(o.Model)
	p.str("")
	p.str("")
	p.flag(forget)
	p.int(0)
	p.str("")
	p.ints(0, int64(o.Moves))
	p.str("")
	p.int(-1)
	p.array(1)
	p.str(f.definitions)
	p.array(len(o.Holds))
	for i, h := range o.Holds {
		rule, at := &set.rules[i], &f.rules[i]
		suffix, field := at.base, at.field
		if within := nameWithin(&h.Limit, h.Ledger); within == othersSuffix {
			field = at.othersField()
		} else if within != "" {
			suffix = at.of(within)
		}
		names[[2]string{suffix, field}] = h.Ledger
		r.writeHold(p, &h, rule, at, suffix, field, i+1)
	}
	p.int(o.ExpiresAt.Add(remembered).UnixMicro())
	p.str(r.owner)
	p.str(o.Once.packed())
	return nil
}

func (r *Redis) writeHold(p *packer, h *Hold, rule *rule, at *farRule, suffix, field string, place int) {
	var flags int64
	if h.Candidate {
		flags++
	}
	if h.Ended {
		flags += 2
	}
	if field != at.field {
		flags += 4
	}
	if r.killed != nil && older(h.Limit.Scope.ID, r.killed.Before) {
		flags += 8
	}
	var start, end int64
	if rule.kind == kindCalendar {
		start, end = h.WindowStart.UnixMilli(), h.WindowEnd.UnixMilli()
	}
	p.array(15)
	p.str(suffix)
	p.str(field)
	p.ints(int64(rule.kind), h.Amount, h.Pico, start, end, 0, flags)
	p.b = append(p.b, at.counts...)
	p.ints(1, int64(place), h.Limit.Amount, rule.ceiling)
	p.str(h.Ledger)
}
