package ui

// Gauge is one limit, now. Its amounts are of one unit, and the label says them.
type Gauge struct {
	Label      string
	Limit      int64
	Used, Held int64
	Debt       int64   // beyond the limit
	Refill     int64   // what comes back in ten seconds; 0: it does not refill by itself
	Pace       float64 // share of the window that has passed; 0: not drawn
	Shadow     bool    // decides and reports, never refuses
	Alert      int64   // tells here; 0: nowhere
	Configured int64   // where a lower limit was learned: the one that was configured; 0: none
}

// scale is the amount that the whole width stands for.
func (g Gauge) scale() float64 { return float64(max(g.Limit, g.Configured, 1)) }

func (g Gauge) share(amount int64) float64 {
	return min(1, max(0, float64(amount)/g.scale()))
}

func (g Gauge) usedTo() float64   { return g.share(g.Used) }
func (g Gauge) heldTo() float64   { return g.share(g.Used + g.Held) }
func (g Gauge) post() float64     { return g.share(g.Limit) }
func (g Gauge) refillTo() float64 { return max(0, g.usedTo()-float64(g.Refill)/g.scale()) }

// Full is the share that is taken, above 1 where there is debt; 1 of a limit
// that admits nothing.
func (g Gauge) Full() float64 {
	if g.Limit == 0 {
		return 1
	}
	return float64(g.Used+g.Held+g.Debt) / float64(g.Limit)
}

// debtWidth is 10 to 18 pixels, not to scale.
func (g Gauge) debtWidth() string {
	return pixels(10 + 8*min(1, float64(g.Debt)/float64(max(g.Limit, 1))))
}

// Level is a gauge with its name and its numbers.
type Level struct {
	Name, Of      string // "Tokens a minute", and whose where it is not obvious
	Tag           string
	Left          string
	Gauge         Gauge
	Detail, Reset string
}
