package limits

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
)

// What outcome.lua is asked for.
const (
	farEnd     = 1
	farExtend  = 2
	farMove    = 3
	farExpire  = 4
	farRestore = 5
	farPeek    = 6
	farAdopt   = 7
	farRead    = 8
)

// about is a question about one reservation; body follows its id.
func (r *Redis) about(t *farTenant, what int, id uuid.UUID, body packer) asked {
	var p packer
	p.str(string(id[:]))
	p.b = append(p.b, body.b...)
	return asked{tenant: t, script: r.outcome, keys: []string{t.key}, what: what, body: p}
}

// Settle is Memory's, on Redis.
func (r *Redis) Settle(ctx context.Context, tenant, id uuid.UUID, s Settlement) (Outcome, error) {
	if wrong := s.Actual.Check(); wrong != nil {
		return Outcome{}, fault.InvalidFields(wrong...)
	}
	return r.end(ctx, tenant, id, settled, s)
}

// Cancel is Memory's, on Redis.
func (r *Redis) Cancel(ctx context.Context, tenant, id uuid.UUID) (Outcome, error) {
	return r.end(ctx, tenant, id, cancelled, Settlement{GiveBackRequest: true})
}

func (r *Redis) end(ctx context.Context, tenant, id uuid.UUID, as phase, s Settlement) (Outcome, error) {
	if a := r.away.itself(); a != nil && a.has(id) {
		return a.end(ctx, tenant, id, as, s)
	}
	if r.away.owes(id) {
		return r.endAway(ctx, tenant, id, as, s, errOpen)
	}
	o, born, err := r.endThere(ctx, tenant, id, as, s)
	switch {
	case isAway(err):
		return r.endAway(ctx, tenant, id, as, s, err)
	case err != nil && fault.Of(err).Code == "reservation_not_found" && r.remade(ctx, tenant, id):
		o, born, err = r.endThere(ctx, tenant, id, as, s)
	}
	if err == nil {
		r.away.finished(pendingEnd{tenant: tenant, id: id, as: as, settlement: s, at: r.now()}, born)
		r.away.born(r.tenant(tenant), born)
	}
	return o, err
}

// endThere tells Redis of an outcome; born is since when it has lost nothing.
func (r *Redis) endThere(ctx context.Context, tenant, id uuid.UUID, as phase, s Settlement) (o Outcome, born int64, err error) {
	t := r.tenant(tenant)
	var p packer
	p.byte(int(as))
	p.flag(s.GiveBackRequest)
	p.str(packFigures(&s.Actual))
	p.str(r.owner)
	q := r.about(t, farEnd, id, p)
	q.keys = append(q.keys, t.key+"r"+string(id[:]))
	a, err := r.exec(ctx, q, nil, r.at())
	if err != nil {
		return Outcome{}, 0, err
	}
	switch a.status {
	case farDone:
		t.wake()
		return r.ended(&a, tenant, id)
	case farSwift:
		t.wake()
		return r.usualEnd(&a, tenant, id, as, s)
	}
	return Outcome{}, 0, refusal(a.status)
}

// usualEnd reads the answer of swift_settle.lua: the call ends now, as is asked.
func (r *Redis) usualEnd(a *answer, tenant, id uuid.UUID, as phase, s Settlement) (o Outcome, born int64, err error) {
	born = a.int()
	c := r.record(&a.unpacker, tenant, id)
	groups := a.groups()
	if a.err != nil {
		return Outcome{}, 0, out(a.err)
	}
	c.phase, c.actual, c.withRequest, c.owner = as, packFigures(&s.Actual), s.GiveBackRequest, r.owner
	o = c.outcome(c.swift(a, groups))
	o.First = true
	return o, born, nil
}

// ended reads the answer of outcome.lua.
func (r *Redis) ended(a *answer, tenant, id uuid.UUID) (o Outcome, born int64, err error) {
	first, same := a.flag(), a.flag()
	c := r.record(&a.unpacker, tenant, id)
	if a.err != nil {
		return Outcome{}, 0, out(a.err)
	}
	o = c.outcome(c.tell(a))
	o.First, born = first, a.int()
	if a.err != nil {
		return Outcome{}, 0, out(a.err)
	}
	if !same {
		return o, born, fault.Newf(fault.Conflict, "reservation_settled", "This reservation is %s already, with other figures.", o.State)
	}
	return o, born, nil
}

func (c *farCall) outcome(states []State) Outcome {
	o := c.ends()
	o.States = states
	return o
}

// ends is the outcome, without the state of ledgers.
func (c *farCall) ends() Outcome {
	requests := c.requests
	if c.withRequest {
		requests = 0
	}
	o := Outcome{State: StateSettled, Late: c.late, Actual: costOf(c.actual, requests)}
	if c.phase == cancelled {
		o.State = StateCancelled
	}
	for i := range c.holds {
		if h := &c.holds[i]; h.rule.kind == kindCalendar && (!h.ended || !c.late) {
			o.Charges = append(o.Charges, h.charged(&o))
		}
	}
	return o
}

// charged is what the event of an ended call adds to the window of a hold.
func (h *farHold) charged(o *Outcome) Charge {
	amount := h.amount
	if !h.ended {
		amount = h.rule.cost(&o.Actual)
		if o.Late {
			amount = amount.minus(h.amount).toward()
		}
	}
	return Charge{h.ledger, h.window.from(), amount.n, amount.pico}
}

// standing is the decision that an open call stands on.
func (r *Redis) standing(a *answer, tenant uuid.UUID) (Decision, error) {
	id := idOf(a.str())
	c := r.record(&a.unpacker, tenant, id)
	d := Decision{Admitted: true, Again: true, Candidate: c.candidate, At: wall(c.at), ExpiresAt: wall(c.expires)}
	d.States = c.tell(a)
	if a.err != nil {
		return Decision{}, out(a.err)
	}
	d.Reservation = c.reservation()
	return d, nil
}

// Extend is Memory's, on Redis.
func (r *Redis) Extend(ctx context.Context, tenant, id uuid.UUID, until time.Time) error {
	err := r.extendThere(ctx, tenant, id, until)
	if err != nil && fault.Of(err).Code == "reservation_not_found" && r.remade(ctx, tenant, id) {
		err = r.extendThere(ctx, tenant, id, until)
	}
	if isAway(err) && r.away.extend(ctx, tenant, id, until) {
		return nil
	}
	return err
}

func (r *Redis) extendThere(ctx context.Context, tenant, id uuid.UUID, until time.Time) error {
	t := r.tenant(tenant)
	var p packer
	p.ints(until.UTC().Truncate(time.Microsecond).UnixMicro(), MaxTTL.Microseconds())
	a, err := r.exec(ctx, r.about(t, farExtend, id, p), nil, r.at())
	if err != nil {
		return err
	}
	if a.status != farDone {
		return refusal(a.status)
	}
	r.away.extended(id, until)
	r.owes(t, a.int())
	return a.err
}

// peek is a reservation as it stands.
func (r *Redis) peek(ctx context.Context, t *farTenant, tenant, id uuid.UUID) (farCall, error) {
	a, err := r.exec(ctx, r.about(t, farPeek, id, packer{}), nil, r.at())
	if err != nil {
		return farCall{}, err
	}
	if a.status != farDone {
		return farCall{}, refusal(a.status)
	}
	c := r.record(&a.unpacker, tenant, id)
	if a.err != nil {
		return c, out(a.err)
	}
	return c, nil
}
