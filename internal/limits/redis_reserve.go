package limits

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// What a decision is for.
const (
	farReserve = iota
	farDryRun
	farLook
)

// Reserve is Memory's, on Redis.
func (r *Redis) Reserve(ctx context.Context, req Request) (Decision, error) {
	if err := req.check(); err != nil {
		return Decision{}, err
	}
	for {
		d, err := r.reserve(ctx, &req)
		if isAway(err) {
			d, err = r.reserveAway(ctx, &req, err)
		}
		if !errors.Is(err, errBack) {
			return d, err
		}
	}
}

func (r *Redis) reserve(ctx context.Context, req *Request) (Decision, error) {
	w := &r.away
	if a := w.bounding(); a != nil && !req.DryRun {
		return a.bounded(ctx, req)
	}
	if w.returning.Load() && req.outage() == OutageOpen { // there would be no end of telling
		ctx = context.WithValue(ctx, passing{}, true)
	}
	return r.reserveThere(ctx, req)
}

func (r *Redis) reserveThere(ctx context.Context, req *Request) (Decision, error) {
	t := r.tenant(req.Tenant)
	if lost := t.lost.Load(); lost != nil {
		r.untilTold(ctx, *lost)
	}
	q := r.ask(t, req.Model)
	q.resolve(req)
	d, err := q.reserve(ctx, req)
	if err == nil && !d.Admitted && req.MaxWait > 0 {
		return q.wait(ctx, req, d)
	}
	return d, err
}

// untilTold lets a call wait, within the budget, until a Redis that has lost what
// it had of the tenant knows again what this process has open.
func (r *Redis) untilTold(ctx context.Context, told <-chan struct{}) {
	over, stop := r.after(r.away.budget)
	defer stop()
	select {
	case <-told:
	case <-over:
	case <-ctx.Done():
	}
}

// reserve is one decision.
func (q *farAsk) reserve(ctx context.Context, req *Request) (Decision, error) {
	what := farReserve
	if req.DryRun {
		what = farDryRun
	}
	q.lineUp()
	a, err := q.r.run(ctx, req.Tenant, q.t, func(wallMS int64) asked { return q.decision(what, req, wallMS) })
	if err != nil {
		return Decision{}, err
	}
	switch a.status {
	case farDone:
		return q.decided(&a, req)
	case farSwift:
		return q.usual(&a, req)
	case farRefused:
		return q.usualRefusal(&a)
	case farAgain:
		return q.r.standing(&a, req.Tenant)
	}
	return Decision{}, refusal(a.status)
}

// decision packs a request for swift_reserve.lua.
func (q *farAsk) decision(what int, req *Request, wallMS int64) asked {
	charges := q.charges(wallMS)
	p := packer{make([]byte, 0, 512)}
	p.flag(len(q.ahead) > 0)
	a := asked{tenant: q.t, script: q.r.decide, keys: q.keys, what: what, ledger: q.ledger}
	if what == farReserve {
		kept, plan := charges.plan, len(charges.plan.b)
		if len(charges.candidates) > 0 {
			kept.b = append(kept.b, charges.candidates[0].b...)
		}
		q.keep(&p, req, plan, len(kept.b))
		packTexts(&kept, packFigures(&req.Estimate), req.Model, q.user, q.r.owner, req.Once)
		packDefinitions(&kept, q.sets)
		a.keys, a.more = q.keysOf(req), []string{rueidis.BinaryString(kept.b)}
		for i := 1; i < len(charges.candidates); i++ {
			a.more = append(a.more, rueidis.BinaryString(charges.candidates[i].b))
		}
	} else {
		p.b = append(p.b, make([]byte, keepNothing)...)
	}
	charges.pack(&p, q)
	if len(q.ahead) > 0 {
		q.aheads(&p)
	}
	a.body = p
	return a
}

// keepNothing is how many bytes keep packs that says nothing.
const keepNothing = 1 + 3*8 + 2*4 + 4

// keep packs how to keep a reservation: of what is kept (record.lua) plan bytes are
// the plan's holds, and holds bytes with those of the first candidate.
func (q *farAsk) keep(p *packer, req *Request, plan, holds int) {
	ttl := DefaultTTL
	if req.TTL > 0 {
		ttl = req.TTL
	}
	p.flag(req.Forget)
	p.ints(req.Estimate.Requests, ttl.Microseconds(), int64(q.r.maxOpen))
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(plan))
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(1+holds))
	p.str(strconv.FormatInt((ttl + remembered + farKept).Milliseconds(), 10))
	if req.ID == uuid.Nil {
		p.str("")
	} else {
		p.str(string(req.ID[:]))
	}
	p.str(madeTail())
	p.str(req.Once.packed())
}

// farKept is how much longer a key lives than what it keeps is asked for
// (record.lua).
const farKept = 2*time.Hour + time.Minute

// keysOf are the keys of a reservation: those of its groups, and where it or the
// request that it answers may be already.
func (q *farAsk) keysOf(req *Request) []string {
	if req.ID == uuid.Nil && req.Once.Key == uuid.Nil {
		return q.keys
	}
	keys := slices.Clone(q.keys)
	if req.ID != uuid.Nil {
		keys = append(keys, q.t.key+"r"+string(req.ID[:]))
	}
	if req.Once.Key != uuid.Nil {
		keys = append(keys, q.t.key+"k"+string(req.Once.Key[:]))
	}
	return keys
}

// madeTail is a UUIDv7 but for its first six bytes, which are its instant.
func madeTail() string {
	var u [10]byte
	a, b := rand.Uint64(), rand.Uint64()
	u[0], u[1] = 0x70|byte(a)&0x0f, byte(a>>8)
	for i := range 8 {
		u[2+i] = byte(b >> (8 * i))
	}
	u[2] = u[2]&0x3f | 0x80
	return string(u[:])
}

// decided reads the verdict of decide.lua.
func (q *farAsk) decided(a *answer, req *Request) (Decision, error) {
	q.refusing = q.refusing[:0]
	admitted, chosen := a.flag(), a.count()
	plan := verdict{refuses: a.flag(), never: !a.flag(), wait: a.int()}
	provider := verdict{refuses: a.flag(), never: !a.flag(), wait: a.int()}
	expires, id, born := a.int(), a.str(), a.int()
	planStates := q.told(a, span{0, q.plan}, "")
	var chosenStates []farState
	if chosen > 0 && chosen <= len(q.spans) {
		chosenStates = q.told(a, q.spans[chosen-1], q.names[chosen-1])
	}
	defer q.r.away.born(q.t, born)
	if a.err != nil {
		return Decision{}, out(a.err)
	}
	if admitted {
		return q.admitted(a, req, chosen, planStates, chosenStates, id, expires, born), nil
	}
	return q.refused(a, plan, provider, planStates, chosenStates), nil
}

func (q *farAsk) refused(a *answer, plan, provider verdict, planStates, chosenStates []farState) Decision {
	d := Decision{Candidate: -1, At: wall(a.at.micros), States: statesOf(planStates)}
	d.refuse(plan, provider)
	q.refuses(planStates, chosenStates)
	if d.ProviderFull {
		d.Violations = violationsOf(chosenStates)
	} else {
		d.Violations = violationsOf(planStates)
	}
	return d
}

// usual reads the verdict of swift_reserve.lua: the call is admitted, with its
// first candidate.
func (q *farAsk) usual(a *answer, req *Request) (Decision, error) {
	born, expires, id := a.int(), a.int(), a.str()
	defer q.r.away.born(q.t, born)
	planStates, chosenStates := q.swift(a, nil)
	if a.err != nil {
		return Decision{}, out(a.err)
	}
	return q.admitted(a, req, min(len(q.spans), 1), planStates, chosenStates, id, expires, born), nil
}

// usualRefusal reads its verdict of a call that is refused.
func (q *farAsk) usualRefusal(a *answer) (Decision, error) {
	q.refusing = q.refusing[:0]
	born := a.int()
	defer q.r.away.born(q.t, born)
	waits := make([]int64, q.usually())
	var plan, provider verdict
	for i := range waits {
		if waits[i] = a.int(); i < q.plan {
			plan.waits(waits[i])
		} else {
			provider.waits(waits[i])
		}
	}
	planStates, chosenStates := q.swift(a, waits)
	if a.err != nil {
		return Decision{}, out(a.err)
	}
	return q.refused(a, plan, provider, planStates, chosenStates), nil
}

// waits adds what an enforced charge waits for (µs; 0: it does not; below 0: no
// time is enough).
func (v *verdict) waits(micros int64) {
	v.refuses = v.refuses || micros != 0
	v.never = v.never || micros < 0
	v.wait = max(v.wait, micros)
}

func (q *farAsk) admitted(a *answer, req *Request, chosen int, plan, provider []farState, id string, expires, born int64) Decision {
	d := Decision{Admitted: true, Candidate: chosen - 1, At: wall(a.at.micros), States: append(statesOf(plan), statesOf(provider)...)}
	if id == "" {
		return d
	}
	d.ExpiresAt = wall(expires)
	d.Reservation = Reservation{
		ID: idOf(id), Tenant: req.Tenant, Model: req.Model, At: d.At, ExpiresAt: d.ExpiresAt, Estimate: req.Estimate, Once: req.Once,
		Holds: append(holdsOf(make([]Hold, 0, len(d.States)), plan), holdsOf(nil, provider)...),
	}
	q.r.owes(q.t, expires)
	q.r.away.reserved(&d.Reservation, req.Forget, born)
	return d
}

// Live is Memory's, on Redis. While that is out, it tells what this process knows.
func (r *Redis) Live(ctx context.Context, tenant uuid.UUID, limits []Limit, model, endUser string) ([]State, error) {
	set := Compile(limits)
	if set.broken != nil {
		return nil, out(set.broken)
	}
	t := r.tenant(tenant)
	q := r.ask(t, model)
	for i := range set.rules {
		rule := &set.rules[i]
		if rule.shown(model, endUser) {
			q.asks(rule, &Cost{}, model, endUser, -1)
		}
	}
	q.plan = len(q.list)
	for i := range q.list {
		q.list[i].cost = sum{n: 1} // the smallest call
	}
	a, err := r.run(ctx, tenant, t, func(wallMS int64) asked { return q.decision(farLook, nil, wallMS) })
	if isAway(err) {
		return r.away.onItsOwn(r).live(ctx, tenant, set, model, endUser)
	}
	if err != nil {
		return nil, err
	}
	if a.status != farDone {
		return nil, refusal(a.status)
	}
	a.take(verdictBytes)
	list := q.told(&a, span{0, q.plan}, "")
	if a.err != nil {
		return nil, out(a.err)
	}
	states := make([]State, len(list))
	for i, s := range list {
		s.Requested, s.Refuses = 0, false
		s.Never = s.charge.wait < 0
		if !s.Never {
			s.NextCallAfter = time.Duration(s.charge.wait) * time.Microsecond
		}
		states[i] = s.State
	}
	return states, nil
}

// verdictBytes is how much decide.lua says before the states, of a look.
const verdictBytes = 1 + 2 + 2*(1+1+8) + 8 + 1 + 8

// refuse makes the decision a refusal.
func (d *Decision) refuse(plan, provider verdict) {
	d.ProviderFull = !plan.refuses || provider.never && !plan.never
	if d.TooLarge = plan.never || provider.never; !d.TooLarge {
		d.RetryAfter = time.Duration(max(plan.wait, provider.wait)) * time.Microsecond
	}
}
