package billing

import "time"

// Period is a span of a subscription, half-open. Both ends are fixed when it
// opens: no later change of zone or plan moves them.
type Period struct {
	Start, End time.Time
	Number     int  // counted from the anchor, 0, 1, 2 …; a trial is -1
	Trial      bool // nothing in it is ever billed
}

// anchorOf is the local time of an instant in a zone, as a time of day and date
// on no zone's clock.
func anchorOf(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// monthly is where period n of an anchor begins, and the one before ends, in a
// zone: at the anchor's time of day, on its day of the month or on the month's
// last day where there is no such day.
func monthly(anchor time.Time, zone *time.Location, n int) time.Time {
	year, month := anchor.Year(), anchor.Month()+time.Month(n)
	last := time.Date(year, month+1, 0, 12, 0, 0, 0, time.UTC).Day()
	return instant(time.Date(year, month, min(anchor.Day(), last), anchor.Hour(), anchor.Minute(), anchor.Second(), anchor.Nanosecond(), time.UTC), zone)
}

// instant is when a zone's clocks show a local time: the first instant after the
// gap where they never do.
func instant(local time.Time, zone *time.Location) time.Time {
	t := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), zone)
	shown := anchorOf(t, zone)
	start, end := t.ZoneBounds()
	switch {
	case shown.After(local):
		return start.UTC()
	case shown.Before(local):
		return end.UTC()
	}
	return t.UTC()
}

// after is the period that follows p, in the tenant's zone as of its opening.
func (p Period) after(anchor time.Time, zone *time.Location) Period {
	return Period{Start: p.End, End: monthly(anchor, zone, p.Number+2), Number: p.Number + 1}
}

// first is what a subscription opens with, and the anchor of what follows: a
// trial of so many days, or the first month.
func first(started time.Time, zone *time.Location, trialDays int) (Period, time.Time) {
	anchor := anchorOf(started, zone)
	if trialDays == 0 {
		return Period{Start: started.UTC(), End: monthly(anchor, zone, 1)}, anchor
	}
	anchor = anchor.AddDate(0, 0, trialDays)
	return Period{Start: started.UTC(), End: instant(anchor, zone), Number: -1, Trial: true}, anchor
}
