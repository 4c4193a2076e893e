package notify

import "time"

// gaps are the waits between tries: ten tries over three days at the most.
var gaps = [...]time.Duration{
	10 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 4 * time.Hour,
	8 * time.Hour, 12 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Tries is how often a message is sent before it is given up.
const Tries = len(gaps) + 1

const (
	jitterShare = 5                  // up to a fifth of a wait is taken off, so that what failed together does not come back together
	failingFor  = 5 * 24 * time.Hour // an endpoint that takes nothing for so long is switched off
)

// nextTry is how long to wait after so many failed tries; false: no more.
// random is in [0, 1).
func nextTry(failed int, random float64) (time.Duration, bool) {
	if failed >= Tries {
		return 0, false
	}
	gap := gaps[failed-1]
	return gap - time.Duration(random*float64(gap/jitterShare)), true
}
