package limits

import (
	"context"
	"math"
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
	t.handing.Lock()
	defer t.handing.Unlock()
	heard := t.heard[:min(len(t.heard), math.MaxUint16)]
	var p packer
	p.str(r.owner)
	p.count(len(heard))
	for _, u := range heard {
		p.str(string(u[:]))
	}
	a, err := r.exec(context.Background(), r.about(t, farExpire, uuid.Nil, p), nil, micros)
	if err != nil {
		return nil, 0, err
	}
	var told []uuid.UUID
	for range a.count() {
		u := idOf(a.str())
		c := r.record(&a.unpacker, tenant, u)
		if a.err != nil {
			return nil, 0, out(a.err)
		}
		list = append(list, c.reservation())
		told = append(told, u)
		r.away.forget(u)
	}
	if due = a.int(); a.err != nil {
		return nil, 0, out(a.err)
	}
	t.heard = append(t.heard[len(heard):], told...)
	return list, due, nil
}

// Restore is Memory's, on Redis. While that is out, it is done once it is back.
func (r *Redis) Restore(ctx context.Context, open []Reservation) error {
	byTenant := map[uuid.UUID][]Reservation{}
	for _, o := range open {
		byTenant[o.Tenant] = append(byTenant[o.Tenant], o)
	}
	for tenant, list := range byTenant {
		err := r.restore(ctx, tenant, list, 0)
		if isAway(err) {
			r.away.restoreLater(r.tenant(tenant), list)
		} else if err != nil {
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
	p.count(len(list))
	names := map[[2]string]string{}
	for i := range list {
		if err := r.writeEntry(&p, toldEntry{id: list[i].ID}, &list[i], as, false, names); err != nil {
			return out(err)
		}
	}
	a, err := r.run(ctx, tenant, t, func(int64) asked {
		a := r.about(t, farRestore, uuid.Nil, p)
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

// toldEntry is what is told of a reservation beside itself: how it ended, if it
// did, whether limits other than calendar windows count it, and a byte for each
// hold, 1 where its window counts it already.
type toldEntry struct {
	id           uuid.UUID
	phase        phase
	back, recent bool
	figures      string
	counted      []byte
}

// writeEntry packs a reservation as an earlier life made it, for outcome.lua.
func (r *Redis) writeEntry(p *packer, e toldEntry, o *Reservation, as int64, forget bool, names map[[2]string]string) error {
	limits := make([]Limit, len(o.Holds))
	for i, h := range o.Holds {
		limits[i] = h.Limit
	}
	set := Compile(limits)
	if set.broken != nil {
		return set.broken
	}
	kept := packer{packNumbers(as, forget, o)}
	for i, h := range o.Holds {
		var w window
		if set.rules[i].kind == kindCalendar {
			w = window{h.WindowStart.UnixMilli(), h.WindowEnd.UnixMilli()}
		}
		kept.ints(w.start, w.end, 0)
	}
	for i := range o.Holds {
		r.writeHold(&kept, &o.Holds[i], &set.rules[i], names)
	}
	packTexts(&kept, packFigures(&o.Estimate), o.Model, "", r.owner, o.Once)
	kept.count(1)
	kept.long(set.told().raw)
	p.str(string(e.id[:]))
	p.byte(int(e.phase))
	p.flag(e.back)
	p.flag(e.recent)
	p.str(e.figures)
	p.str(string(e.counted))
	p.long(string(kept.b))
	return nil
}

// place is where the ledger of a hold is: the suffix of its group, and its field.
func (f *farRule) place(h *Hold) (suffix, field string) {
	switch within := nameWithin(&h.Limit, h.Ledger); within {
	case "":
		return f.base, f.field
	case othersSuffix:
		return f.base, f.othersField()
	default:
		return f.of(within), f.field
	}
}

func (r *Redis) writeHold(p *packer, h *Hold, rule *rule, names map[[2]string]string) {
	at := &rule.set.told().rules[rule.place]
	k := keptHold{rule: rule, cost: sum{h.Amount, h.Pico}, definition: 1, name: h.Ledger}
	if k.suffix, k.field = at.place(h); k.field != at.field {
		k.flags = holdOthers
	}
	names[[2]string{k.suffix, k.field}] = h.Ledger
	if h.Candidate {
		k.flags |= holdCandidate
	}
	if h.Ended {
		k.flags |= holdEnded
	}
	if r.killed != nil && older(h.Limit.Scope.ID, r.killed.Before) {
		k.flags |= holdOld
	}
	k.pack(p, "")
}
