package limits

import "time"

// calendar counts what is charged in one day or month of a zone. A change of
// zone takes effect when the window that is running ends (zones.go).
type calendar struct {
	window
	amount int64
	used   int64 // everything charged in the window, open calls included
	held   int64 // of that, what open calls were charged
}

// window is half-open, in ms of the wall clock.
type window struct{ start, end int64 }

func (w window) from() time.Time { return time.UnixMilli(w.start).UTC() }
func (w window) to() time.Time   { return time.UnixMilli(w.end).UTC() }

// windowAt is the calendar window of l that contains the instant; zone is l's
// own, and counts alone where there is no past one.
func windowAt(l *Limit, ms int64, zone *time.Location) window {
	if len(l.PastZones) > 0 {
		w, _ := l.Zones().window(l.Window, ms)
		return w
	}
	return plain(l.Window, ms, zone)
}

// plain is the window of a zone that was never changed.
func plain(kind Window, ms int64, zone *time.Location) window {
	t := time.UnixMilli(ms)
	if kind == WindowMonth {
		return window{MonthStart(t, zone).UnixMilli(), MonthEnd(t, zone).UnixMilli()}
	}
	return window{DayStart(t, zone).UnixMilli(), DayEnd(t, zone).UnixMilli()}
}

func (c *calendar) touch(l *Limit, at instant) {
	c.amount = l.Amount
	if at.wallMS < c.end {
		return
	}
	z, err := zone(l.Zone)
	if err != nil {
		return // no call comes with such a limit; the window stays, the refusing side
	}
	next := windowAt(l, at.wallMS, z)
	if next.start != c.start {
		c.used, c.held = 0, 0
	}
	c.window = next
}

func (c *calendar) wait(cost int64, at instant) (time.Duration, bool) {
	switch {
	case cost > c.amount:
		return 0, false
	case cost <= c.amount-c.used:
		return 0, true
	}
	return c.to().Sub(at.wall), true
}

func (c *calendar) charge(h *hold, _ instant) {
	h.window = c.window
	c.used += h.amount
	c.held += h.amount
}

// settle corrects the window that the call was charged in; once that has ended,
// the books alone remember it.
func (c *calendar) settle(h *hold, actual int64, _ instant) {
	if h.window.start == c.start {
		c.used += actual - h.amount
	}
	c.lapse(h)
}

func (c *calendar) lapse(h *hold) {
	if h.open && h.window.start == c.start {
		c.held -= h.amount
	}
	h.open = false
}

func (c *calendar) forget(*hold) {}

func (c *calendar) fill(s *State, at instant) {
	s.Held = c.held
	s.Used = c.used - c.held
	s.Remaining = max(c.amount-c.used, 0)
	s.Debt = max(c.used-c.amount, 0)
	s.WindowStart, s.ResetAt = c.from(), c.to()
	s.Full = max(s.ResetAt.Sub(at.wall), 0)
}

func (c *calendar) idle(at instant) bool { return at.wallMS >= c.end }
