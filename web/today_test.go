package web

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/limits"
	"weir/internal/usage"
)

// hoursOf are the hours of a day as a report has them, the clock's jumps
// included.
func hoursOf(t *testing.T, zone string, y int, m time.Month, d int) []usage.Row {
	t.Helper()
	z, err := time.LoadLocation(zone)
	must(t, err)
	start := limits.DayStart(time.Date(y, m, d, 12, 0, 0, 0, z), z)
	var rows []usage.Row
	for at := start; at.Before(limits.DayEnd(start, z)); at = at.Add(time.Hour) {
		rows = append(rows, usage.Row{Start: at.In(z), End: at.Add(time.Hour).In(z)})
	}
	return rows
}

func TestTheAxisFollowsTheWallClockOnLongAndShortDays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		day   int
		month time.Month
		hours int
		words []string
	}{
		"24 hours": {30, 11, 24, []string{"00", "03", "06", "09", "12", "15", "18", "21"}},
		"25 hours": {25, 10, 25, []string{"00", "03", "06", "09", "12", "15", "18", "21"}},
		"23 hours": {29, 3, 23, []string{"00", "03", "06", "09", "12", "15", "18", "21"}},
	} {
		rows := hoursOf(t, "Europe/Berlin", 2026, c.month, c.day)
		if len(rows) != c.hours {
			t.Fatalf("%s: %d rows", name, len(rows))
		}
		var words []string
		for _, tick := range ticks(rows) {
			words = append(words, tick.Word)
		}
		if diff := cmp.Diff(c.words, words); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestBarsTileTheDayAndTheHighestFillsIt(t *testing.T) {
	t.Parallel()
	rows := hoursOf(t, "Europe/Berlin", 2026, 10, 25)
	rows[3].Requests, rows[10].Requests = 5, 20
	d := today{Hours: rows}
	bars := d.bars(func(s usage.Sums) float64 { return float64(s.Requests) }, func(usage.Sums) string { return "" })
	at := 0.0
	for i, b := range bars {
		if math.Abs(b.From-at) > 1e-9 || b.To <= b.From {
			t.Errorf("bar %d: %v to %v after %v", i, b.From, b.To, at)
		}
		at = b.To
	}
	if math.Abs(at-1) > 1e-9 || bars[10].Height != 1 || bars[3].Height != 0.25 || bars[0].Height != 0 {
		t.Errorf("end %v, heights %v %v %v", at, bars[10].Height, bars[3].Height, bars[0].Height)
	}
	for _, b := range (today{Hours: hoursOf(t, "UTC", 2026, 1, 1)}).bars(charge, func(usage.Sums) string { return "" }) {
		if b.Height != 0 {
			t.Errorf("a day without anything has a bar of %v", b.Height)
		}
	}
}
