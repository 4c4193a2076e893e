package ui

import (
	"math"
	"strconv"
	"time"
)

// Scale is a vertical axis from 0 to Top, with a line at every Step.
type Scale struct{ Top, Step float64 }

// ScaleTo is an axis that holds a value, with about so many lines at round
// figures. Nothing at all gets an axis to 4.
func ScaleTo(value float64, lines int) Scale {
	if value <= 0 {
		return Scale{4, 1}
	}
	raw := value / float64(lines)
	size := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * size
	for _, nice := range []float64{1, 2, 2.5, 5} {
		if raw <= nice*size && (nice != 2.5 || size > 1) {
			step = nice * size
			break
		}
	}
	if step < 1 {
		step = 1
	}
	return Scale{Top: math.Ceil(value/step-1e-9) * step, Step: step}
}

// lines are the values that have a line, 0 left out.
func (s Scale) lines() (out []float64) {
	for v := s.Step; v <= s.Top+s.Step/1000; v += s.Step {
		out = append(out, v)
	}
	return out
}

// Brief writes a number as an axis does: 600 k, 2.5 M.
func Brief(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= u.size && v >= 1e4 {
			tenths := 10.0
			if v >= 100*u.size {
				tenths = 1
			}
			return strconv.FormatFloat(math.Floor(v/u.size*tenths)/tenths, 'f', -1, 64) + u.name
		}
	}
	return Count(int64(v))
}

// Change says how a number moved against an earlier one: "3% more". The base is
// stated beside it.
func Change(now, then int64) string {
	switch {
	case then == 0 && now == 0:
		return "none before either"
	case then == 0:
		return "new"
	case now == then:
		return "as many"
	}
	share := float64(now-then) / float64(then)
	switch {
	case share >= 1.5:
		return strconv.FormatFloat(float64(now)/float64(then), 'f', 1, 64) + " times as many"
	case math.Abs(share) < 0.005:
		return "nearly as many"
	case share > 0:
		return strconv.FormatFloat(share*100, 'f', 0, 64) + "% more"
	}
	return strconv.FormatFloat(-share*100, 'f', 0, 64) + "% fewer"
}

// Wait writes how long something takes: 0.4 ms, 1.104 s, 9 h 28 m.
func Wait(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 2, 64) + " ms"
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(math.Ceil(float64(d)/1e6)/1e3, 'f', -1, 64) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " m " + strconv.Itoa(int(d%time.Minute/time.Second)) + " s"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h " + strconv.Itoa(int(d%time.Hour/time.Minute)) + " m"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " d " + strconv.Itoa(int(d%(24*time.Hour)/time.Hour)) + " h"
}
