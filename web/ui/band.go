package ui

import "strconv"

// Band is traffic over time as a cross-section: what passed, what is held on
// top of it and what was refused above; with the crest, what was agreed. The
// staff at its right is the axis, and its pointer the level now.
type Band struct {
	Label      string // says the totals to who does not see it
	Columns    []BandColumn
	Crest      float64 // 0: nothing was agreed for this span
	CrestWords string
	CrestShort string // for phones
	CrestAt    float64
	Marks      []Tick // along the time axis
	End        string // under the staff
	Height     int    // 0: 236
}

// BandColumn is a span of time, in the band's unit.
type BandColumn struct {
	Passed, Held, Refused int64
	Title                 string
	Href                  string // "" leads nowhere
	Open                  bool   // the span goes on
}

// What stands around the columns, in pixels.
const (
	bandTop    = 26
	bandBottom = 22
)

func (b Band) height() float64 {
	if b.Height > 0 {
		return float64(b.Height)
	}
	return 236
}

// endsAt is where on the axis a word would run into the one at its end.
const endsAt = 0.95

func (b Band) base() float64 { return b.height() - bandBottom }

func (b Band) scale() Scale {
	most := b.Crest * 1.02
	for _, c := range b.Columns {
		most = max(most, float64(c.Passed+c.Held+c.Refused))
	}
	lines := 4
	if b.height() < 160 {
		lines = 2
	}
	return ScaleTo(most, lines)
}

// y is the height of a value on the scale, from the top.
func (b Band) y(s Scale, v float64) float64 {
	return b.base() - v/s.Top*(b.base()-bandTop)
}

// level is what the pointer stands at: the last column.
func (b Band) level() int64 {
	if len(b.Columns) == 0 {
		return 0
	}
	c := b.Columns[len(b.Columns)-1]
	return c.Passed + c.Held
}

// pointerClear tells whether a word on the staff is not under the pointer's.
func (b Band) pointerClear(s Scale, v float64) bool {
	d := b.y(s, v) - b.y(s, float64(b.level()))
	return d > 11 || d < -11
}

// minor are the short lines between the words of the staff.
func (s Scale) minor() (out []float64) {
	for v := s.Step / 4; v < s.Top; v += s.Step / 4 {
		out = append(out, v)
	}
	return out
}

type bandBox struct{ X, W, UsedY, UsedH, TopH, HeldY, HeldH, RefY, RefH string }

func (b Band) box(s Scale, i int) bandBox {
	c, n := b.Columns[i], float64(len(b.Columns))
	used, held, refused := float64(c.Passed), float64(c.Held), float64(c.Refused)
	usedY, heldY := b.y(s, used), b.y(s, used+held)
	gap := 0.0
	if refused > 0 {
		gap = 1
	}
	return bandBox{
		X: percent(float64(i) / n), W: percent(1 / n),
		UsedY: pixels(usedY), UsedH: pixels(b.base() - usedY), TopH: pixels(min(2, b.base()-usedY)),
		HeldY: pixels(heldY), HeldH: pixels(usedY - heldY),
		RefY: pixels(b.y(s, used+held+refused) - gap), RefH: pixels(max(1.5, heldY-b.y(s, used+held+refused))),
	}
}

func num(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
