package gateway

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/limits"
)

// statedWait reads how long a provider says to wait: retry-after-ms and
// x-ms-retry-after-ms (Azure), or Retry-After as whole or decimal seconds or an
// HTTP date in its three formats (RFC 9110 10.2.3). The longest of several
// counts, clamped at 24 hours; a negative, past or unreadable one does not.
func statedWait(h http.Header, now time.Time) (wait time.Duration, stated bool) {
	note := func(d time.Duration, ok bool) {
		if ok && d > 0 {
			wait, stated = max(wait, min(d, limits.LongestWait)), true
		}
	}
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms"} {
		for _, v := range h.Values(name) {
			note(number(v, time.Millisecond))
		}
	}
	for _, v := range h.Values("Retry-After") {
		if d, ok := number(v, time.Second); ok {
			note(d, true)
		} else if at, err := http.ParseTime(v); err == nil {
			note(at.Sub(now), true)
		}
	}
	return wait, stated
}

func number(s string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || f < 0 {
		return 0, false
	}
	return time.Duration(min(f*float64(unit), float64(limits.LongestWait))), true
}
