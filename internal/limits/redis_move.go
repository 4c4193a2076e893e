package limits

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"weir/internal/fault"
)

// Move is Memory's, on Redis. It looks at the reservation first, which the step
// itself then finds as it was, or answers that it has moved. While Redis is out,
// the process moves what it reserved, as Reserve does, and tells of it later.
func (r *Redis) Move(ctx context.Context, n Next) (Decision, error) {
	if wrong := n.Ended.Actual.Check(); wrong != nil {
		return Decision{}, fault.InvalidFields(wrong...)
	}
	if err := checkSets(n.Plan, n.Candidates); err != nil {
		return Decision{}, err
	}
	if a := r.away.itself(); a != nil && a.has(n.ID) {
		return a.move(ctx, &n)
	}
	d, err := r.moveThere(ctx, &n, false)
	if err != nil && fault.Of(err).Code == "reservation_not_found" && r.remade(ctx, n.Tenant, n.ID) {
		d, err = r.moveThere(ctx, &n, false)
	}
	if isAway(err) && !r.away.out.Load() { // its answer alone may be lost: the same move again answers alike
		if again, err2 := r.moveThere(ctx, &n, false); err2 == nil {
			d, err = again, nil
		}
	}
	switch {
	case isAway(err):
		return r.moveAway(ctx, &n, err)
	case err == nil:
		d.Reservation.Moves -= r.away.more(n.ID)
		r.away.moved(&d.Reservation)
	}
	return d, err
}

// moveThere moves in Redis; forced says that the only candidate is charged whether
// or not it fits.
func (r *Redis) moveThere(ctx context.Context, n *Next, forced bool) (Decision, error) {
	t := r.tenant(n.Tenant)
	c, err := r.peek(ctx, t, n.Tenant, n.ID)
	if err != nil {
		return Decision{}, err
	}
	there := *n
	there.Attempt += r.away.more(n.ID)
	n = &there
	q := r.ask(t, c.model)
	q.user = c.user
	q.candidates(n.Plan, n.Candidates, c.estimate, n.EndUser)
	a, err := r.run(ctx, n.Tenant, t, func(wallMS int64) asked { return q.move(t, n, forced, wallMS) })
	if err != nil {
		return Decision{}, err
	}
	switch a.status {
	case farDone:
		return q.moved(&a, n)
	case farAgain:
		d, err := r.standing(&a, n.Tenant)
		d.Admitted, d.ProviderFull = d.Candidate >= 0, d.Candidate < 0
		return d, err
	}
	return Decision{}, refusal(a.status)
}

// more is how many moves Redis has of a call that this process does not count.
func (w *away) more(id uuid.UUID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.mine[id]; c != nil {
		return c.more
	}
	return 0
}

func (w *away) movedMore(id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.mine[id]; c != nil {
		c.more++
	}
}

// owes tells whether Redis has to hear of a move of a call before its end.
func (w *away) owes(id uuid.UUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.mine[id]
	return c != nil && c.owed > 0
}

// told notes that Redis has heard of a move.
func (w *away) told(id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.mine[id]; c != nil {
		c.owed--
	}
}

// moved notes what an open call holds now.
func (w *away) moved(o *Reservation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.mine[o.ID]; c != nil {
		c.Reservation = *o
	}
}

// moveAway moves a call that this process reserved before Redis was out, as the
// strictest Outage of the candidates' limits says.
func (r *Redis) moveAway(ctx context.Context, n *Next, cause error) (Decision, error) {
	w := &r.away
	w.mu.Lock()
	c := w.mine[n.ID]
	var o Reservation
	if c != nil && c.Tenant == n.Tenant && c.ended == nil {
		o = c.Reservation
	}
	w.mu.Unlock()
	if o.ID != n.ID {
		return Decision{}, out(cause)
	}
	a := w.onItsOwn(r)
	if err := a.moves(ctx, n, &o, cause); err != nil {
		return Decision{}, err
	}
	d, err := a.step(ctx, n, o.Model)
	if err != nil {
		return d, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Reservation = d.Reservation
	c.owed++
	w.pending = append(w.pending, n.done(&d))
	return d, nil
}

// moves makes a call known to the process's own engine, where the mode lets it.
func (a *alone) moves(ctx context.Context, n *Next, o *Reservation, cause error) error {
	mode := (&Request{Candidates: n.Candidates, Model: o.Model}).outage()
	if mode == OutageClosed {
		return out(errors.Join(errClosed, cause))
	}
	if mode == OutageShare && a.r.now().Sub(a.since) >= shareFor {
		return out(errors.Join(errShared, cause))
	}
	return a.local.know(ctx, *o)
}

// know makes an open reservation known whose charges are another engine's.
func (m *Memory) know(ctx context.Context, o Reservation) error {
	return m.withWindows(ctx, o.Tenant, []Reservation{o}, func(t *tenantAt, c *call) {
		t.tenant.know(c)
		t.put(&t.open, c, c.expires)
	})
}

// move moves a call that was admitted while Redis was out.
func (a *alone) move(ctx context.Context, n *Next) (Decision, error) {
	a.mu.Lock()
	c := a.calls[n.ID]
	model := c.Model
	a.mu.Unlock()
	if err := a.moves(ctx, n, &c.Reservation, errOpen); err != nil {
		return Decision{}, err
	}
	d, err := a.step(ctx, n, model)
	if err != nil {
		return d, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c.Reservation = d.Reservation
	if c.told || a.ended {
		a.r.away.owe(n.done(&d))
	}
	return d, nil
}

// step is the move in the process's own engine, told as one on whole limits.
func (a *alone) step(ctx context.Context, n *Next, model string) (Decision, error) {
	mine := *n
	mine.Plan, mine.Candidates = a.plan(n.Plan), a.candidates(n.Candidates)
	d, err := a.local.Move(ctx, mine)
	if err != nil {
		return d, err
	}
	return a.answer(&Request{Plan: n.Plan, Candidates: n.Candidates, Model: model, Estimate: d.Reservation.Estimate}, d), nil
}

// done is a move as Redis is told of it later: with the candidate that was chosen.
func (n *Next) done(d *Decision) pendingEnd {
	told := *n
	if told.Candidates = nil; d.Candidate >= 0 {
		told.Candidates = slices.Clone(n.Candidates[d.Candidate : d.Candidate+1])
	}
	return pendingEnd{tenant: n.Tenant, id: n.ID, move: &told, to: d.Reservation}
}

// moveLate tells Redis of a move that was made while it was out. A window that
// began with a reading of the books which held the call's event is left alone, now
// and when the call ends.
func (r *Redis) moveLate(ctx context.Context, e *pendingEnd) error {
	r.away.mu.Lock()
	c := r.away.mine[e.id]
	ended := c != nil && c.ended != nil
	r.away.mu.Unlock()
	n := *e.move
	if ended {
		calls := []*aloneCall{{myCall: myCall{Reservation: e.to}}}
		held, err := r.held(ctx, e.tenant, calls, []*pendingEnd{e})
		if err != nil {
			return err
		}
		counted := map[string]bool{}
		for at := range held {
			if h := &e.to.Holds[at.hold]; h.Candidate && !h.Ended {
				counted[h.Limit.family()] = true
			}
		}
		n.without(counted)
	}
	d, err := r.moveThere(ctx, &n, true)
	if err != nil || !e.astray(&d, &n) {
		return err
	}
	n.Attempt, n.Ended = d.Reservation.Moves, Settlement{GiveBackRequest: true}
	if _, err = r.moveThere(ctx, &n, true); err == nil {
		r.away.movedMore(e.id)
	}
	return err
}

// astray tells whether Redis moved the call elsewhere than this process did, which
// had not got its answer.
func (e *pendingEnd) astray(d *Decision, n *Next) bool {
	here := map[string]bool{}
	for i := range e.to.Holds {
		if h := &e.to.Holds[i]; h.Candidate && !h.Ended {
			here[h.Ledger] = true
		}
	}
	for i := range d.Reservation.Holds {
		if h := &d.Reservation.Holds[i]; h.Candidate && !h.Ended && !here[h.Ledger] {
			return true
		}
	}
	return d.Candidate < 0 && len(n.Candidates) > 0
}

// without leaves limits out of what a move charges.
func (n *Next) without(families map[string]bool) {
	if len(families) == 0 {
		return
	}
	rest := func(s *Set) *Set {
		if s == nil {
			return nil
		}
		var list []Limit
		for i := range s.rules {
			if l := s.rules[i].limit; !families[l.family()] {
				list = append(list, l)
			}
		}
		return Compile(list)
	}
	plan, candidates := n.Plan, n.Candidates
	n.Plan, n.Candidates = make([]*Set, len(plan)), slices.Clone(candidates)
	for i, s := range plan {
		n.Plan[i] = rest(s)
	}
	for i := range candidates {
		n.Candidates[i].Limits = rest(candidates[i].Limits)
	}
}

func (q *farAsk) move(t *farTenant, n *Next, forced bool, wallMS int64) asked {
	charges := q.charges(wallMS)
	var p, defined packer
	p.ints(int64(n.Attempt))
	p.flag(n.Ended.GiveBackRequest)
	p.flag(forced)
	p.str(packFigures(&n.Ended.Actual))
	charges.pack(&p, q)
	packDefinitions(&defined, q.sets)
	a := q.r.about(t, farMove, n.ID, p)
	a.keys, a.ledger, a.more = q.keys, q.ledger, []string{rueidis.BinaryString(defined.b)}
	for _, holds := range charges.candidates {
		a.more = append(a.more, rueidis.BinaryString(holds.b))
	}
	return a
}

func (q *farAsk) moved(a *answer, n *Next) (Decision, error) {
	q.t.wake()
	admitted, chosen := a.flag(), a.count()
	provider := verdict{never: !a.flag(), wait: a.int(), refuses: !admitted}
	c := q.r.record(&a.unpacker, n.Tenant, n.ID)
	if a.err != nil {
		return Decision{}, out(a.err)
	}
	d := Decision{Admitted: admitted, Candidate: -1, At: wall(a.at.micros), ExpiresAt: wall(c.expires), Reservation: c.reservation()}
	var list []farState
	if chosen > 0 {
		list = q.told(a, q.spans[chosen-1], q.names[chosen-1])
	}
	if a.err != nil {
		return Decision{}, out(a.err)
	}
	if admitted {
		d.Candidate, d.States = chosen-1, statesOf(list)
		return d, nil
	}
	d.refuse(verdict{}, provider)
	d.Violations = violationsOf(list)
	return d, nil
}
