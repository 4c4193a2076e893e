package catalogue

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads how long a Retry-After says to wait: whole or decimal
// seconds, or an HTTP date in its three formats (RFC 9110 10.2.3), at the most
// as long as most. ok is false for one that is negative, past or unreadable.
func RetryAfter(value string, now time.Time, most time.Duration) (wait time.Duration, ok bool) {
	if d, ok := Wait(value, time.Second, most); ok {
		return d, true
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0, false
	}
	return min(at.Sub(now), most), true
}

// Wait reads a positive number of a unit of time.
func Wait(value string, unit, most time.Duration) (wait time.Duration, ok bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(f) || f <= 0 {
		return 0, false
	}
	d := time.Duration(min(f*float64(unit), float64(most)))
	return d, d > 0
}
