package ui

// Stack is bars over time whose parts add up: one series on the other. Series
// keep their order and so their colours.
type Stack struct {
	Label   string
	Series  []string
	Columns []StackColumn
	Marks   []Tick
	Note    string // beside the last column that is not whole: "so far, to 14:32"
	NoteAt  int    // its index
	Height  int    // 0: 236
}

// StackColumn is a span of time with one value for each series.
type StackColumn struct {
	Values []float64
	Title  string
	Href   string
}

// MostSeries is how many series a stack tells apart; the last of them should
// add up the rest.
const MostSeries = 6

func (s Stack) height() float64 {
	if s.Height > 0 {
		return float64(s.Height)
	}
	return 236
}

func (s Stack) base() float64 { return s.height() - bandBottom }

func (s Stack) scale() Scale {
	var most float64
	for _, c := range s.Columns {
		most = max(most, c.sum())
	}
	return ScaleTo(most, 4)
}

func (c StackColumn) sum() (sum float64) {
	for _, v := range c.Values {
		sum += v
	}
	return sum
}

func (s Stack) y(sc Scale, v float64) float64 { return s.base() - v/sc.Top*(s.base()-8) }

// stackBox is one part of a column.
type stackBox struct{ Class, X, W, Y, H string }

// boxes leave a gap between columns, unless they are very narrow.
func (s Stack) boxes(sc Scale, i int) (out []stackBox) {
	n := float64(len(s.Columns))
	gap := 0.22
	if n > 60 {
		gap = 0.06
	}
	low := 0.0
	for k, v := range s.Columns[i].Values {
		if v > 0 {
			top, bottom := s.y(sc, low+v), s.y(sc, low)
			out = append(out, stackBox{
				Class: SeriesClass(k), X: percent((float64(i) + gap/2) / n), W: percent((1 - gap) / n),
				Y: num(top), H: num(max(0.5, bottom-top-0.75)),
			})
		}
		low += v
	}
	return out
}

// SeriesClass colours series number k.
func SeriesClass(k int) string {
	return [MostSeries]string{"s1", "s2", "s3", "s4", "s5", "s6"}[min(k, MostSeries-1)]
}

func (s Stack) center(i int) string { return percent((float64(i) + 1) / float64(len(s.Columns))) }

func (s Stack) noteY(sc Scale) float64 {
	if s.NoteAt >= len(s.Columns) {
		return 0
	}
	return min(s.y(sc, s.Columns[s.NoteAt].sum())+10, s.base()-4)
}
