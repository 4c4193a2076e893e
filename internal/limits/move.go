package limits

import (
	"context"
	"slices"
	"time"

	"weir/internal/fault"
)

// Move goes on to the next attempt of an open reservation, in one step: what the
// attempt that has ended took of its provider is settled and its slots are free,
// then the first of the new candidates that fits is charged. The plan's part is
// left alone. If none fits, the Decision is not Admitted and the old attempt
// stays settled; the reservation stays open, and a later Move may find room. The
// same Move again answers alike and changes nothing. Errors, which change
// nothing, are Reserve's, and NotFound (reservation_not_found) or Conflict:
// reservation_settled, reservation_expired, or reservation_moved for an attempt
// that ended with other figures or is not the one that runs.
func (m *Memory) Move(ctx context.Context, n Next) (Decision, error) {
	if wrong := n.Ended.Actual.Check(); wrong != nil {
		return Decision{}, fault.InvalidFields(wrong...)
	}
	if err := checkSets(n.Plan, n.Candidates); err != nil {
		return Decision{}, err
	}
	for {
		t, c, at, err := m.find(n.Tenant, n.ID)
		if err != nil {
			return Decision{}, err
		}
		w := t.work(at)
		w.moves = true
		d, missing, err := w.move(c, n)
		w.unlock()
		if err != nil || len(missing) == 0 {
			return d, err
		}
		if err := m.load(ctx, t, missing); err != nil {
			return Decision{}, err
		}
	}
}

func (w *work) move(c *call, n Next) (Decision, []unloaded, error) {
	if err := c.running(); err != nil {
		return Decision{}, nil, err
	}
	n.Ended = n.Ended.of(c)
	if c.moves > 0 && n.Attempt == c.moves-1 && n.Ended == c.moved {
		d := w.t.standing(c, &w.at)
		d.Admitted, d.ProviderFull = c.candidate >= 0, c.candidate < 0
		return d, nil, nil
	}
	if n.Attempt != c.moves {
		return Decision{}, nil, fault.New(fault.Conflict, "reservation_moved", "This attempt is not the one that runs, or it ended with other figures.")
	}
	w.model, w.user, w.userKnown = c.model, c.user, c.user != ""
	w.figures = c.estimate.figures()
	chosen, _, ready := w.choose(n.Plan, n.Candidates, &c.estimate, n.EndUser)
	if !ready {
		return Decision{}, slices.Clone(w.windows), nil
	}
	if chosen >= 0 && !w.room(w.chosen) {
		return Decision{}, nil, out(errCrowded)
	}
	w.done()
	w.endAttempt(c, n.Ended)
	chosen, provider, _ := w.choose(n.Plan, n.Candidates, &c.estimate, n.EndUser)
	v := decision{candidate: chosen}
	v.conclude(verdict{}, provider)
	d := Decision{
		Admitted: chosen >= 0, Candidate: chosen, At: wall(w.at.micros), ExpiresAt: wall(c.expires),
		ProviderFull: chosen < 0, TooLarge: v.tooLarge, RetryAfter: time.Duration(v.wait) * time.Microsecond,
	}
	if chosen >= 0 {
		c.served, c.candidate = n.Candidates[chosen].Model, chosen
		w.take(c, w.chosen)
		d.States = w.states(nil, w.chosen)
	} else {
		d.Violations = w.violations(w.chosen)
	}
	d.Reservation = c.reservation(w.t.id)
	return d, nil, nil
}

// endAttempt settles the candidate's part.
func (w *work) endAttempt(c *call, s Settlement) {
	c.moved, c.candidate = s, -1
	c.moves++
	for i := range c.holds {
		h := &c.holds[i]
		if !h.candidate || h.ended {
			continue
		}
		actual := h.rule.cost(&s.Actual)
		w.t.settle(h, actual, &w.at)
		h.rule, h.others = h.rule.called(h.name(c)), false
		h.amount, h.ended = actual, true
	}
	w.t.wake()
}

// called is a rule whose only ledger has a name: of an attempt whose model is
// no longer the call's.
func (r *rule) called(name string) *rule {
	if !r.named() {
		return r
	}
	fixed := &rule{}
	_ = fixed.compile(r.limit) // it was compiled before
	fixed.name, fixed.id, fixed.each, fixed.user = name, identify([]byte(name)), false, false
	return fixed
}
