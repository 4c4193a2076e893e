package usage

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
)

// CloseOpen ends, at a start, what an earlier life of this spool left open and
// nobody can end any more: every gateway call, whose connection died with the
// process, as it was ending, or charged with its prompt and what had been streamed
// by the last checkpoint; and every reservation of the decision API that ran out
// meanwhile, unless the engine is shared: another process may have ended it. What
// a shared engine (nil: it is not) knows better is taken from there, and it is
// told. CloseOpen returns what the books need of the events, and the reservations
// that live on.
func CloseOpen(ctx context.Context, s *Spool, open []OpenAdmission, shared *limits.Redis, now time.Time) (ended []Ended, alive []Admission, err error) {
	for _, o := range open {
		if o.Decision && (shared != nil || o.Reservation.ExpiresAt.After(now)) {
			alive = append(alive, o.Admission)
			continue
		}
		known := shared != nil && o.ask(ctx, shared)
		if o.moving(o.Reservation) {
			o.Reservation = o.Reservation.EndAttempt(o.moved.ended())
		}
		e := o.closed(now)
		if err := s.Finish(&e); err != nil {
			return nil, nil, err
		}
		if known { // else, or where that fails, it runs out and is corrected then
			_, _ = shared.Settle(ctx, e.Tenant, e.ID, o.settlement(e))
		}
		ended = append(ended, Ended{ID: e.ID, Tenant: e.Tenant, Shard: e.Shard, Number: e.Number, Charges: e.Charges})
	}
	return ended, alive, nil
}

// ending is how a call was about to end.
type ending struct {
	Result    Result `json:"result"`
	Cancelled bool   `json:"cancelled,omitzero"`
}

// ending notes how a call ends before an engine is told that is not in the
// process: it may know of the end when this one dies.
func (s *Spool) ending(tenant, id uuid.UUID, how ending) error {
	b, done, err := framed(kindEnding, id, &how)
	defer done()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o == nil || o.tenant != tenant {
		return ErrNotOpen
	}
	if _, err := s.append(b, 0, 0); err != nil {
		return err
	}
	o.ending = &how
	return nil
}

// moving tells whether an attempt had ended of which the reservation does not say
// so.
func (o *OpenAdmission) moving(r limits.Reservation) bool {
	return o.moved != nil && len(o.moved.Attempts) > r.Moves
}

// ask takes over how the call stands in a shared engine. In the middle of a move,
// the attempt that had ended is ended there, or else the next one is, which was
// never made. It is false where the engine does not know the call, or cannot be
// asked.
func (o *OpenAdmission) ask(ctx context.Context, shared *limits.Redis) bool {
	f, err := shared.Find(ctx, o.Event.Tenant, o.Event.ID)
	if err != nil || f.Ended {
		return false
	}
	if o.moving(o.Reservation) {
		ended := limits.Settlement{GiveBackRequest: true}
		if o.moving(f.Reservation) {
			ended = o.moved.ended()
		}
		next := limits.Next{Tenant: o.Event.Tenant, ID: o.Event.ID, Attempt: f.Reservation.Moves, Ended: ended}
		d, err := shared.Move(ctx, next)
		for tries := 1; fault.Is(err, fault.Unavailable) && tries < 10; tries++ {
			d, err = shared.Move(ctx, next)
		}
		if err != nil {
			return false
		}
		f.Reservation = d.Reservation
	}
	o.Reservation, o.moved = f.Reservation, nil // the engine's word counts, also of a call that ran out meanwhile
	return true
}

// closed is the event of a call whose process died.
func (o *OpenAdmission) closed(now time.Time) Event {
	if o.ending == nil {
		return o.lost(now)
	}
	r := o.ending.Result
	actual := o.actual(r)
	if actual.Requests = o.Reservation.Estimate.Requests; o.ending.Cancelled {
		actual = limits.Cost{}
	}
	c := metered{admission: o.Admission}
	return c.terminal(limits.Outcome{Actual: actual, Charges: o.Reservation.ChargesAt(actual)}, r, now)
}

func (o *OpenAdmission) lost(now time.Time) Event {
	e := o.expired(now)
	if o.Decision {
		return e
	}
	e.Tokens = limits.Tokens{Input: e.Estimate.Tokens.Input, CachedInput: e.Estimate.Tokens.CachedInput, CacheWrite: e.Estimate.Tokens.CacheWrite}
	if o.Checkpoint != nil {
		e.Tokens = o.Checkpoint.Tokens
	}
	cost := limits.Cost{Requests: e.Requests, Units: e.Units, Tokens: e.Tokens}
	cost.ChargePico = chargePico(o.Rates, cost, e.Test)
	e.Charges = o.Reservation.ChargesAt(cost)
	return e.Priced(o.Rates)
}

// settlement is what the engine is told of a call whose event is e.
func (a Admission) settlement(e Event) limits.Settlement {
	actual := limits.Cost{Requests: e.Requests, Units: e.Units, Tokens: e.Tokens}
	if a.spends() {
		actual.ChargePico = pico(e.Charge)
	}
	return limits.Settlement{Actual: actual, GiveBackRequest: e.Requests == 0}
}
