package limits

import (
	"container/heap"
	"time"

	"github.com/google/uuid"
)

// swept is how many ledgers of a tenant one Expire looks at.
const swept = 1024

// Expire returns the reservations that ran out by now without an outcome, each
// of them once. Their slots are free; what they charged stays, until a late
// outcome corrects it. It also forgets outcomes that are an hour past their
// expiry, and drops ledgers that say nothing: full buckets, ended windows. Call
// it about every second; it holds one tenant's lock at a time.
func (m *Memory) Expire(now time.Time) []Reservation {
	var list []Reservation
	m.tenants.Range(func(tenantID, v any) bool {
		t := v.(*tenant)
		t.mu.Lock()
		defer t.mu.Unlock()
		at := t.begin(m, now)
		for _, c := range t.lapsed {
			if c.phase != lapsed {
				continue
			}
			c.phase = expired
			t.ended.put(c, c.expires.Add(remembered))
			list = append(list, c.reservation(tenantID.(uuid.UUID)))
		}
		t.lapsed = nil
		for len(t.ended) > 0 && !t.ended[0].due.After(now) {
			t.forget()
		}
		t.trim(m.maxOutcomes)
		t.sweep(at, swept)
		return true
	})
	return list
}

// trim forgets the outcomes soonest to be forgotten anyway, beyond so many.
func (t *tenant) trim(most int) {
	for len(t.ended) > most {
		t.forget()
	}
}

func (t *tenant) forget() {
	c := heap.Pop(&t.ended).(*call)
	if c.phase == expired {
		t.eachHold(c, func(l ledger, h *hold) { l.forget(h) })
	}
	delete(t.calls, c.id)
}

// sweep looks at up to n ledgers, wherever the map's order begins, and drops the
// idle ones.
func (t *tenant) sweep(at instant, n int) {
	for key, k := range t.ledgers {
		if n--; n < 0 {
			return
		}
		if k.ledger.idle(at) {
			delete(t.ledgers, key)
		}
	}
}
