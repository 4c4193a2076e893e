package gateway

import (
	"net/http"
	"time"

	"weir/internal/catalogue"
	"weir/internal/limits"
)

// statedWait reads how long a provider says to wait: retry-after-ms and
// x-ms-retry-after-ms (Azure), or Retry-After. The longest of several counts,
// clamped at 24 hours; one that is not valid does not.
func statedWait(h http.Header, now time.Time) (wait time.Duration, stated bool) {
	note := func(d time.Duration, ok bool) {
		if ok {
			wait, stated = max(wait, d), true
		}
	}
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms"} {
		for _, v := range h.Values(name) {
			note(catalogue.Wait(v, time.Millisecond, limits.LongestWait))
		}
	}
	for _, v := range h.Values("Retry-After") {
		note(catalogue.RetryAfter(v, now, limits.LongestWait))
	}
	return wait, stated
}
