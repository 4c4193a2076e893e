package limits

import "time"

// BenchSource is what a bench rests on.
type BenchSource string

// The sources. Only what is heuristic is probed before its end.
const (
	BenchHeuristic     BenchSource = "heuristic"     // nothing was stated: a guess
	BenchAuthoritative BenchSource = "authoritative" // the provider said until when
	BenchCredit        BenchSource = "credit"        // nothing is left to pay with
	BenchTier          BenchSource = "tier"          // the account may not use the model
	BenchAuth          BenchSource = "auth"          // the credential is refused
)

// BenchReason is why there is a bench, as a stable code.
type BenchReason string

// The reasons.
const (
	BenchRateLimited BenchReason = "rate_limited"       // a 429 that states nothing
	BenchDayCapSpent BenchReason = "daily_cap_spent"    // such a 429 while a known daily cap is spent
	BenchAgain       BenchReason = "rate_limited_again" // the next such 429 within the hour
	BenchStated      BenchReason = "stated_wait"
	BenchDaySpent    BenchReason = "provider_day_spent" // the provider says that the day's quota is
	BenchNoCredit    BenchReason = "no_credit"
	BenchNotAllowed  BenchReason = "model_not_allowed"
	BenchRefused     BenchReason = "credential_refused"
	BenchFailing     BenchReason = "model_failing"
)

// How long a bench lasts where the provider does not say.
const (
	benchPlain   = 90 * time.Second
	benchCredit  = 24 * time.Hour
	benchTier    = 24 * time.Hour
	benchFailing = 10 * time.Minute
	benchLocal   = 5 * time.Second
)

// LongestWait bounds what a provider may state.
const LongestWait = 24 * time.Hour

// Bench is a time in which no call is sent: to a model through a provider key,
// or to all of its models. The zero Bench is none.
type Bench struct {
	Source BenchSource
	Reason BenchReason
	Status int    // that the provider answered; 0: it did not
	Detail string // what it named, such as a quota; never the customer's words
	Since  time.Time
	Until  time.Time // zero: until a check passes
}

// Runs tells whether the bench keeps calls away at an instant.
func (b Bench) Runs(at time.Time) bool {
	return b.Source != "" && (b.Until.IsZero() || at.Before(b.Until))
}

// ProbeAt is when one call may find out whether it is over: at half of a
// heuristic bench. ok is false for the others, which no customer's call probes.
func (b Bench) ProbeAt() (at time.Time, ok bool) {
	if b.Source != BenchHeuristic || b.Until.IsZero() {
		return time.Time{}, false
	}
	return b.Since.Add(b.Until.Sub(b.Since) / 2), true
}

// Again is the bench after a check of our own that was refused: as long as at
// first, from then.
func (b Bench) Again(at time.Time) Bench {
	switch b.Source {
	case BenchCredit:
		b.Until = at.Add(benchCredit)
	case BenchTier:
		b.Until = at.Add(benchTier)
	}
	return b
}

// longer is whichever of two benches ends later; of two alike, b.
func (b Bench) longer(other Bench, at time.Time) Bench {
	switch {
	case !b.Runs(at):
		return other
	case b.Until.IsZero(), !other.Until.IsZero() && !other.Until.After(b.Until):
		return b
	}
	return other
}

// Daily is what is known of a daily quota at the time of a failure.
type Daily int

// What may be known of it.
const (
	DailyUnknown Daily = iota // no such limit is known
	DailyLeft                 // one is known, and not spent
	DailySpent
)

// Message is what a provider's words said, where it is known to say it there.
type Message int

// What they may say.
const (
	MessageNone     Message = iota
	MessageDaySpent         // the quota of the provider's day
	MessageCredit           // credit, or a spend limit
)

// Failure is one call that a provider did not serve.
type Failure struct {
	Sent, At time.Time     // when the call went out, and when it had failed
	Status   int           // 0: no answer, or none that could be read
	Wait     time.Duration // until when, as stated; 0: nothing valid was
	Message  Message
	Detail   string // see Bench
	Daily    Daily
	Zone     string // IANA, in which the provider's day ends; "" is UTC
	Local    bool   // a loopback or private base URL
	Probe    bool   // it went out to probe a bench
}

// WholeKey tells whether the failure is about every model of the key.
func (f Failure) WholeKey() bool {
	return f.Status == 401 || f.Status == 402 || f.Message == MessageCredit
}

// Failing tells whether it says that the model fails, and nothing of the key:
// no answer, or a 5xx. It is no evidence of a quota.
func (f Failure) Failing() bool { return f.Status == 0 || f.Status >= 500 }

// Health is what calls through a provider key have shown of one of its models,
// or of the key as a whole: its bench, and where it stands on the ladder. The
// zero Health is well. It is a value; nothing here keeps one.
type Health struct {
	Bench   Bench
	Step    int       // of the ladder: 1 to 4; 0 is below it
	Limited time.Time // of the last 429
	Last    time.Time // of the last failure
}

// Failed is h after a failure that concerns it. One burst of parallel failures
// is one incident, and an incident is at most one step: a call belongs to the
// incident that runs when it went out before its last failure was known, or
// failed before its bench was over. No bench shortens one that lasts longer.
func (h Health) Failed(f Failure) Health {
	same := !h.Last.IsZero() && !f.Probe && (!f.Sent.After(h.Last) || h.Bench.Runs(f.At))
	next := h
	b, found := h.judge(&next, f, same)
	if f.At.After(next.Last) {
		next.Last = f.At
	}
	if f.Status == 429 && f.At.After(next.Limited) {
		next.Limited = f.At
	}
	if found {
		if h.Bench.Runs(f.At) && b.Source != BenchHeuristic {
			b.Since = h.Bench.Since
		}
		next.Bench = h.Bench.longer(b, f.At)
	}
	return next
}

// judge is the table of limits.md, row by row. next gets the ladder's step.
func (h Health) judge(next *Health, f Failure, same bool) (Bench, bool) {
	b := Bench{Source: BenchAuthoritative, Status: f.Status, Detail: f.Detail, Since: f.At}
	wait := min(f.Wait, LongestWait)
	switch {
	case f.Status == 401:
		b.Source, b.Reason = BenchAuth, BenchRefused
	case f.Message == MessageDaySpent:
		b.Reason, b.Until = BenchDaySpent, dayEnd(f.At, f.Zone)
	case f.Message == MessageCredit, f.Status == 402 && wait <= 0:
		b.Source, b.Reason, b.Until = BenchCredit, BenchNoCredit, f.At.Add(benchCredit)
	case f.Status == 403:
		b.Source, b.Reason, b.Until = BenchTier, BenchNotAllowed, f.At.Add(benchTier)
	case wait > 0:
		b.Reason, b.Until = BenchStated, f.At.Add(wait)
	case f.Status == 429:
		return h.guess(next, f, same), true
	default:
		return Bench{}, false
	}
	return b, true
}

// guess is the bench of a 429 that states nothing. Of one incident it is always
// measured from the incident's beginning.
func (h Health) guess(next *Health, f Failure, same bool) Bench {
	b := Bench{Source: BenchHeuristic, Reason: BenchRateLimited, Status: f.Status, Detail: f.Detail, Since: f.At}
	length := benchPlain
	switch {
	case f.Local:
		length = benchLocal
	case f.Probe && h.Bench.Source == BenchHeuristic:
		b.Reason, length = h.Bench.Reason, h.Bench.Until.Sub(h.Bench.Since)
	default:
		next.Step = h.step(f, same)
		if next.Step > 0 {
			length = ladder[next.Step-1]
			b.Reason = BenchAgain
			if f.Daily == DailySpent {
				b.Reason = BenchDayCapSpent
			}
		}
	}
	if same && h.Bench.Source == BenchHeuristic && h.Bench.Runs(f.At) {
		b.Since = h.Bench.Since
	}
	b.Until = b.Since.Add(length)
	return b
}

// Rest is h with a bench for the failures of its model elsewhere.
func (h Health) Rest(at time.Time, local bool, status int) Health {
	length := benchFailing
	if local {
		length = benchLocal
	}
	b := Bench{Source: BenchHeuristic, Reason: BenchFailing, Status: status, Since: at, Until: at.Add(length)}
	h.Bench = h.Bench.longer(b, at)
	if at.After(h.Last) {
		h.Last = at
	}
	return h
}

// Served is h after a call that went out at sent was served: well. What was
// sent before the last failure was known proves nothing, and of a stated bench
// only its end does.
func (h Health) Served(sent, at time.Time) Health {
	switch {
	case !sent.After(h.Last):
		return h
	case h.Bench.Runs(at) && h.Bench.Source != BenchHeuristic:
		return Health{Bench: h.Bench, Last: h.Last}
	}
	return Health{}
}

// dayEnd is when the provider's day that an instant is in ends.
func dayEnd(at time.Time, name string) time.Time {
	z, err := zone(name)
	if err != nil {
		z = time.UTC
	}
	return DayEnd(at, z)
}
