package limits

import (
	"time"

	"github.com/google/uuid"
)

// Entry is something that happened after a snapshot was taken: a call was
// admitted, it went on to another attempt, or it ended.
type Entry struct {
	At          time.Time
	Reservation Reservation  // as it was before
	Earlier     bool         // admitted before the snapshot, which holds its charge
	Moved       *Reservation // what it was after a move
	Actual      *Cost        // how it ended; with neither, it was admitted
}

// replay charges again, to buckets and sliding windows, what an earlier life
// admitted after its snapshot, at the instants of then, and settles what ended.
// A call that the snapshot knows as open is in it already; where that cannot be
// told, it is charged again: the refusing side.
func (m *Memory) replay(journal []Entry, open map[uuid.UUID]bool) error {
	calls := map[uuid.UUID]*replayed{}
	for _, e := range journal {
		if e.Earlier && !open[e.Reservation.ID] {
			continue // it had ended before the snapshot, which holds what it was
		}
		c := calls[e.Reservation.ID]
		if c == nil {
			again, err := restored(e.Reservation)
			if err != nil {
				return err
			}
			c = &replayed{again, e.Reservation.Tenant}
			calls[e.Reservation.ID] = c
		}
		t := m.tenant(e.Reservation.Tenant)
		at := t.past(e.At)
		known := e.Earlier || open[e.Reservation.ID]
		if e.Moved != nil {
			if err := t.moveAgain(c.call, e.Moved, known, &at); err != nil {
				return err
			}
			continue
		}
		for i := range c.holds {
			h := &c.holds[i]
			switch {
			case !h.refills() || h.ended:
			case e.Actual != nil:
				t.settleAgain(c.call, h, h.rule.cost(e.Actual), &at)
			case !known:
				t.chargeThen(h, &at)
			}
		}
		if e.Actual != nil {
			delete(calls, e.Reservation.ID)
		}
	}
	for _, c := range calls {
		for i := range c.holds {
			if h := &c.holds[i]; !h.ended {
				m.tenant(c.tenant).abandon(h)
			}
		}
	}
	return nil
}

// refills tells a hold of a ledger that a snapshot has and that comes free with
// time.
func (h *hold) refills() bool {
	return h.rule.kind == kindBucket || h.rule.kind == kindMinute || h.rule.kind == kindRolling
}

// moveAgain settles the attempt that had ended when a call moved, and charges the
// next one. Of what a snapshot holds of the call nothing is given back, and the next
// attempt is charged once more: the snapshot may have been taken before the move or
// after it.
func (t *tenant) moveAgain(c *call, to *Reservation, known bool, at *instant) error {
	moved, err := restored(*to)
	if err != nil {
		return err
	}
	for i := range c.holds {
		h := &c.holds[i]
		if i >= len(moved.holds) || !moved.holds[i].ended || h.ended {
			continue
		}
		took := moved.holds[i].amount
		if h.refills() && (!known || h.gen != 0 || took.n > h.amount.n) {
			t.settleAgain(c, h, took, at)
		}
		h.amount, h.ended = took, true
	}
	for i := len(c.holds); i < len(moved.holds); i++ {
		c.holds = append(c.holds, moved.holds[i])
		if h := &c.holds[i]; h.refills() && !h.ended {
			t.chargeThen(h, at)
		}
	}
	return nil
}

type replayed struct {
	*call
	tenant uuid.UUID
}

// past is an instant of an earlier life; ledgers never see an earlier one.
func (t *tenant) past(at time.Time) instant {
	ms := min(t.memory.line(at), t.memory.line(t.memory.started))
	t.latest = max(t.latest, ms)
	return instant{micros: at.UnixMicro(), wallMS: at.UnixMilli(), ms: t.latest}
}

func (t *tenant) chargeThen(h *hold, at *instant) {
	c := charge{rule: h.rule, id: h.id}
	if c.ref = t.index[h.id]; c.ref == 0 {
		c.ref = t.fresh(h.rule, h.id, at)
		t.enterAs(c.ref, h.rule.limit.manyOf())
	} else if c.ref.kind() != h.rule.kind {
		t.convert(&c, at)
	}
	h.ref = c.ref
	switch h.rule.kind {
	case kindBucket:
		t.buckets.at(h.ref.place()).touch(h.rule.amount, h.rule.ceiling, at.ms, &t.rooms)
	default:
		t.slider(h.ref).touch(h.rule.amount, at.ms)
	}
	t.charge(h)
}

// settleAgain settles a hold as it was settled then. Of one that the snapshot
// holds the bucket cannot tell what may be given back; a sliding window can.
func (t *tenant) settleAgain(c *call, h *hold, to sum, at *instant) {
	r := t.index[h.id]
	later := h.candidate && c.moves > 0 // charged after the admission
	if h.gen != 0 || h.rule.kind == kindBucket || r.kind() != h.rule.kind || later {
		t.settle(h, to, at)
		return
	}
	s := t.slider(r)
	s.touch(s.amount, at.ms)
	if h.mark = floorDiv(t.memory.line(wall(c.at)), s.width); s.within(h.mark) && *s.part(h.mark) >= h.amount.n-to.n {
		s.add(h.mark, to.n-h.amount.n)
	}
}

// abandon lets go of a hold that nobody will settle: it stays charged.
func (t *tenant) abandon(h *hold) {
	if !t.held(h) {
		return
	}
	t.lapse(h)
	if h.ref.kind() == kindBucket {
		t.buckets.at(h.ref.place()).forget(h, &t.rooms)
	}
}
