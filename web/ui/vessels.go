package ui

import "strconv"

// Vessel is one book beside others: communicating vessels stand at one level
// where the books agree.
type Vessel struct {
	Low   bool   // it stands below the others
	Words string // of what is missing in it, or is too much
}

// vesselBox is a vessel among n, in shares of the width and in pixels.
type vesselBox struct {
	X, W, Mid, Right       string
	Level, Height, HoleTop string
	Low                    bool
	Words                  string
}

const (
	vesselFull, vesselLow = 44, 84
	vesselFloor           = 140
)

func vesselBoxes(list []Vessel) (out []vesselBox) {
	each := 100 / float64(len(list))
	share := func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) + "%" }
	for i, v := range list {
		x, w, level := each*(float64(i)+0.16), each*0.68, vesselFull
		if v.Low {
			level = vesselLow
		}
		out = append(out, vesselBox{
			X: share(x), W: share(w), Mid: share(x + w/2), Right: share(x + w), Low: v.Low, Words: v.Words,
			Level: strconv.Itoa(level), Height: strconv.Itoa(vesselFloor - level), HoleTop: strconv.Itoa(vesselFull),
		})
	}
	return out
}

// vesselPipes are the pipes between neighbours.
func vesselPipes(boxes []vesselBox) (out [][2]string) {
	for i := 1; i < len(boxes); i++ {
		out = append(out, [2]string{boxes[i-1].Right, boxes[i].X})
	}
	return out
}
