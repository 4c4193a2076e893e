package limits

import "time"

// gauge counts the calls that run now. Each slot is a lease that ends with its
// reservation, so a process that died blocks nobody for longer.
type gauge struct{ amount, held int64 }

// slotWait is the answer where nobody can know when a slot comes free.
const slotWait = time.Second

func (g *gauge) touch(l *Limit, _ instant) { g.amount = l.Amount }

func (g *gauge) wait(cost int64, _ instant) (time.Duration, bool) {
	switch {
	case cost > g.amount:
		return 0, false
	case cost <= g.amount-g.held:
		return 0, true
	}
	return slotWait, true
}

func (g *gauge) charge(h *hold, _ instant) { g.held += h.amount }

func (g *gauge) settle(h *hold, _ int64, _ instant) { g.lapse(h) }

func (g *gauge) lapse(h *hold) {
	if h.open {
		g.held -= h.amount
		h.open = false
	}
}

func (g *gauge) forget(*hold) {}

func (g *gauge) fill(s *State, _ instant) {
	s.Held = g.held
	s.Remaining = max(g.amount-g.held, 0)
}

func (g *gauge) idle(instant) bool { return g.held == 0 }
