package limits

import "time"

// calendar counts what is charged in one day or month of a zone. A change of
// zone takes effect when the window that is running ends (zones.go).
type calendar struct {
	head
	window
	amount int64
	used   sum // everything charged in the window, open calls included
	held   sum // of that, what open calls were charged
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

func (c *calendar) touch(r *rule, wallMS int64) {
	c.amount = r.amount
	if wallMS >= c.end {
		c.turn(r, wallMS)
	}
}

// turn begins the window that runs.
func (c *calendar) turn(r *rule, wallMS int64) {
	next := windowAt(&r.limit, wallMS, r.zone)
	if next.start != c.start {
		c.used, c.held = sum{}, sum{}
	}
	c.window = next
}

// fits tells whether cost and what others ask for before it are left.
func (c *calendar) fits(cost, ahead sum) bool {
	if c.used.pico|cost.pico|ahead.pico == 0 {
		return c.used.n+cost.n+ahead.n <= c.amount
	}
	return !c.used.plus(cost).plus(ahead).above(c.amount)
}

func (c *calendar) charge(h *hold) {
	h.mark, h.end = c.start, c.end
	c.used = c.used.plus(h.amount)
	c.held = c.held.plus(h.amount)
}

// settle corrects the window that the call was charged in; once that has ended,
// the books alone remember it.
func (c *calendar) settle(h *hold, actual sum) {
	if h.mark == c.start {
		c.used = c.used.plus(actual).minus(h.amount)
	}
	c.lapse(h)
}

func (c *calendar) lapse(h *hold) {
	if h.open && h.mark == c.start {
		c.held = c.held.minus(h.amount)
	}
	h.open = false
}
