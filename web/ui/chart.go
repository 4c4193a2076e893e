package ui

import "strconv"

// Bar is one column of a chart: from where to where on the axis and how high,
// each as a share of the whole, and what it says to a pointer.
type Bar struct {
	From, To, Height float64
	Title            string
}

// Tick is a word on an axis, at a share of it.
type Tick struct {
	At    float64
	Word  string
	Minor bool // left out on phones
}

// Column is a part of a flow, in shares of its height: what passed, what is
// held on top of it, and what was refused above that.
type Column struct{ Passed, Held, Refused float64 }

const (
	barsHeight = 40
	flowHeight = 400
)

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 3, 64) + "%" }

func pixels(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// flowBox is a column in pixels of a flow that stands on its lower edge.
type flowBox struct{ X, W, UsedY, UsedH, HeldY, HeldH, RefY, RefH string }

func (c Column) box(i, n int) flowBox {
	used, held, refused := c.Passed*flowHeight, c.Held*flowHeight, c.Refused*flowHeight
	return flowBox{
		X: percent(float64(i) / float64(n)), W: percent(1 / float64(n)),
		UsedY: pixels(flowHeight - used), UsedH: pixels(used),
		HeldY: pixels(flowHeight - used - held), HeldH: pixels(held),
		RefY: pixels(flowHeight - used - held - refused - 2), RefH: pixels(refused),
	}
}
