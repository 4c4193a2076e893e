package billing

import "time"

// Period is a span of a subscription, half-open.
type Period struct {
	Start, End time.Time
}

// MonthlyPeriod is period n (0, 1, 2 …) of a subscription that started at an
// instant, in a zone. Each begins at the local time of the start on the day of
// the month of the start, or on the month's last day where it has no such day,
// so periods tile time. Where a clock change skips that local time, Go's
// time.Date decides: the instant as if the change had not happened yet.
func MonthlyPeriod(started time.Time, zone *time.Location, n int) Period {
	return Period{Start: monthly(started, zone, n), End: monthly(started, zone, n+1)}
}

func monthly(started time.Time, zone *time.Location, n int) time.Time {
	if n == 0 {
		return started.UTC()
	}
	l := started.In(zone)
	year, month := l.Year(), l.Month()+time.Month(n)
	last := time.Date(year, month+1, 0, 12, 0, 0, 0, time.UTC).Day()
	return time.Date(year, month, min(l.Day(), last), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), zone).UTC()
}
