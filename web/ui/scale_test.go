package ui

import (
	"testing"
	"time"
)

func TestAnAxisHoldsItsValueAtRoundFigures(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]Scale{
		0: {4, 1}, 1: {1, 1}, 9: {10, 5}, 17: {20, 5}, 259: {300, 100}, 199_000: {200_000, 50_000}, 640_000: {800_000, 200_000}, 7_800_000: {8_000_000, 2_000_000},
	} {
		if got := ScaleTo(value, 4); got != want {
			t.Errorf("%v: %v, want %v", value, got, want)
		}
		if s := ScaleTo(value*1.37, 4); s.Top < value*1.37 || s.Top/s.Step > 6 {
			t.Errorf("%v: %v", value*1.37, s)
		}
	}
}

func TestAxesAndChangesReadShort(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 999: "999", 2500: "2,500", 12_000: "12 k", 12_340: "12.3 k", 367_700: "367 k", 2_500_000: "2.5 M", 1e9: "1 G"} {
		if got := Brief(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for _, c := range []struct {
		now, then int64
		want      string
	}{{103, 100, "3% more"}, {90, 100, "10% fewer"}, {260, 100, "2.6 times as many"}, {100, 100, "as many"}, {1001, 1000, "nearly as many"}, {5, 0, "new"}, {0, 0, "none before either"}} {
		if got := Change(c.now, c.then); got != c.want {
			t.Errorf("%d to %d: %q, want %q", c.then, c.now, got, c.want)
		}
	}
	for d, want := range map[time.Duration]string{310 * time.Microsecond: "0.31 ms", 1104 * time.Millisecond: "1.104 s", 32*time.Minute + 2*time.Second: "32 m 2 s", 9*time.Hour + 28*time.Minute: "9 h 28 m"} {
		if got := Wait(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
