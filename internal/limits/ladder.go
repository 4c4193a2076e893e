package limits

import "time"

// ladder is how long a key rests from a model after the first, second, third and
// every further incident in which nothing was stated.
var ladder = [...]time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour}

const (
	ladderUnknown = 2              // the highest step where no daily limit is known
	ladderMemory  = 24 * time.Hour // after its last bench a step counts for so long
	againWithin   = time.Hour      // of another 429
)

// Ladder are the steps, for who draws them.
func Ladder() []time.Duration { return append([]time.Duration(nil), ladder[:]...) }

// step is the rung of a 429 that states nothing: 0 is below the ladder.
func (h Health) step(f Failure, same bool) int {
	on := h.Step
	if f.At.Sub(h.Limited) >= ladderMemory && !f.At.Before(h.Bench.Until.Add(ladderMemory)) {
		on = 0
	}
	switch {
	case f.Daily == DailySpent && same:
		return max(on, 1)
	case f.Daily == DailySpent:
		return min(on+1, len(ladder))
	case same:
		return on
	case f.Daily == DailyLeft, h.Limited.IsZero(), f.At.Sub(h.Limited) >= againWithin:
		return 0
	}
	return min(on+1, ladderUnknown)
}

// What failures of a model rest it on every key.
const (
	streakLength = 3
	streakWithin = 15 * time.Minute
)

// Streak is the failures of one model over any keys that no success followed,
// one for each burst.
type Streak []time.Time

// Failed is s after a failure that is Failing; full says that the model rests on
// every key, and that counting begins anew.
func (s Streak) Failed(f Failure) (next Streak, full bool) {
	for _, at := range s {
		if f.At.Sub(at) < streakWithin {
			next = append(next, at)
		}
	}
	if n := len(next); n > 0 && !f.Sent.After(next[n-1]) {
		return next, false
	}
	if next = append(next, f.At); len(next) < streakLength {
		return next, false
	}
	return nil, true
}

// Served is s after a call that went out at sent was served.
func (s Streak) Served(sent time.Time) Streak {
	if n := len(s); n > 0 && !sent.After(s[n-1]) {
		return s
	}
	return nil
}

// When our own checks look at what no customer's call may probe, after so many
// that failed. The last one repeats.
var (
	authChecks   = [...]time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}
	creditChecks = [...]time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour}
)

// CheckAfter is how long after a bench began, or after its last check, the next
// one of our own is due; ok is false where there is none.
func CheckAfter(s BenchSource, failed int) (wait time.Duration, ok bool) {
	switch s {
	case BenchAuth:
		return authChecks[min(failed, len(authChecks)-1)], true
	case BenchCredit, BenchTier:
		return creditChecks[min(failed, len(creditChecks)-1)], true
	}
	return 0, false
}
