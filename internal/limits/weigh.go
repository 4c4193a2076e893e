package limits

import (
	"slices"
	"time"
)

// weigh brings the ledger of a charge up to the instant and to the limit as it
// is now, and finds how long the charge would wait. ahead is what others ask for
// before it. It is false where a window has to be loaded first. The ledger is
// where its rule found it last, or else in the index.
func (w *work) weigh(c *charge, ahead sum) bool {
	t, r, now := w.t, c.rule, w.at.ms
	c.ref = ref(r.hint.Load())
	if c.ref.kind() != r.kind && !w.find(c) {
		return false
	}
	var ms int64
	switch r.kind {
	case kindBucket:
		b := t.buckets.peek(c.ref.place())
		if b == nil || b.id != c.id {
			if !w.find(c) {
				return false
			}
			b = t.buckets.at(c.ref.place())
		}
		b.touch(r.amount, r.ceiling, now, &t.rooms)
		ms = b.wait(c.cost.n, ahead.n)
	case kindMinute, kindRolling:
		if !t.is(c.ref, c.id) && !w.find(c) {
			return false
		}
		s := t.slider(c.ref)
		s.touch(r.amount, now)
		ms = s.wait(c.cost.n, ahead.n, now)
	case kindCalendar:
		l := t.calendars.peek(c.ref.place())
		if l == nil || l.id != c.id {
			if !w.find(c) {
				return false
			}
			l = t.calendars.at(c.ref.place())
		}
		if l.touch(r, w.at.wallMS); l.fits(c.cost, ahead) {
			return true
		}
		if ms = never; !c.cost.above(l.amount) {
			ms = c.until(l.end*1000 - w.at.micros)
		}
	case kindGauge:
		g := t.gauges.peek(c.ref.place())
		if g == nil || g.id != c.id {
			if !w.find(c) {
				return false
			}
			g = t.gauges.at(c.ref.place())
		}
		g.amount = r.amount
		if ms = g.wait(c.cost.n, ahead.n); ms == slotWait {
			ms = c.until(slotWait * 1000)
		}
	}
	if ms != 0 {
		c.refuses, c.never = true, ms == never
		if !c.never {
			c.wait = (ms + w.at.behind) * 1000
		}
	}
	return true
}

// until refuses a charge for a time in µs of the caller's own clock.
func (c *charge) until(micros int64) int64 {
	c.refuses, c.wait = true, micros
	return 0
}

// verdict is what some charges come to.
type verdict struct {
	refuses bool
	never   bool
	wait    int64 // µs
}

func (v *verdict) add(c *charge) {
	if !c.rule.shadow {
		v.refuses = true
		v.never = v.never || c.never
		v.wait = max(v.wait, c.wait)
	}
}

// sooner tells whether v would pass before w.
func (v verdict) sooner(w verdict) bool {
	if v.never != w.never {
		return w.never
	}
	return v.wait < w.wait
}

// judge weighs the charges of a span that nobody has weighed yet, and says what
// all of them come to. It is false where windows have to be loaded first.
func (w *work) judge(s span) (v verdict, ready bool) {
	for i := s.from; i < s.to && w.pending > 0; i++ {
		if c := &w.list[i]; c.pending {
			c.pending = false
			w.pending--
			w.put(c)
		}
	}
	v, ready = w.verdict, len(w.windows) == 0
	w.verdict = verdict{}
	return v, ready
}

// put puts a charge on the scales.
func (w *work) put(c *charge) {
	var ahead sum
	if len(w.t.waiting) > 0 && !w.moves {
		ahead = w.ahead(c.id)
	}
	if w.weigh(c, ahead) && c.refuses {
		w.verdict.add(c)
	}
}

// state tells of one charge what its ledger holds.
func (w *work) state(c *charge) State {
	s := State{Limit: c.rule.limit, Ledger: w.name(c), Requested: c.cost.up(), Refuses: c.refuses}
	w.t.fill(&s, c.ref, &w.at)
	return s
}

// violation is the state of a charge that refuses.
func (w *work) violation(c *charge) State {
	s := w.state(c)
	s.RetryAfter, s.Never = time.Duration(c.wait)*time.Microsecond, c.never
	return s
}

func (w *work) violations(s span) (list []State) {
	for i := s.from; i < s.to; i++ {
		if c := &w.list[i]; c.refuses && !c.rule.shadow {
			list = append(list, w.violation(c))
		}
	}
	return list
}

func (w *work) states(list []State, s span) []State {
	list = slices.Grow(list, s.to-s.from)
	for i := s.from; i < s.to; i++ {
		c := &w.list[i]
		if c.refuses && c.rule.shadow {
			list = append(list, w.violation(c))
			continue
		}
		list = append(list, w.state(c))
	}
	return list
}
