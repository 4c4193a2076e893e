package ui

import (
	"fmt"
	"time"
)

// Span is a length of time as it is waited for: "4.3 s", "12 min", "9 h 28 min",
// "3 days". It rounds up.
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < 10*time.Second:
		tenths := (d + 100*time.Millisecond - 1) / (100 * time.Millisecond)
		return fmt.Sprintf("%d.%d s", tenths/10, tenths%10)
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
	case d < 48*time.Hour:
		minutes := (d + time.Minute - 1) / time.Minute
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d days", (d+24*time.Hour-1)/(24*time.Hour))
}
