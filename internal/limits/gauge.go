package limits

// gauge counts the calls that run now. Each slot is a lease that ends with its
// reservation, so a process that died blocks nobody for longer.
type gauge struct {
	head
	amount, held int64
}

// slotWait is the answer, in ms, where nobody can know when a slot comes free.
const slotWait = 1000

func (g *gauge) wait(cost, ahead int64) int64 {
	switch {
	case cost > g.amount:
		return never
	case cost+ahead <= g.amount-g.held:
		return 0
	}
	return slotWait
}

func (g *gauge) charge(h *hold) { g.held += h.amount.n }

func (g *gauge) lapse(h *hold) {
	if h.open {
		g.held -= h.amount.n
		h.open = false
	}
}
