package limits

import (
	"fmt"
	"sync"
	"time"
)

// Civil days and months of a zone. A day starts at the first instant whose local
// date is that day, which is not always midnight, and lasts until the next one
// starts; so days tile time whatever the zone does: clocks that skip midnight,
// that fall back over it, a day that is skipped altogether.

// DayStart is the latest start of a day of zone that is not after t.
func DayStart(t time.Time, zone *time.Location) time.Time {
	_, start := day(t, zone)
	return start
}

// DayEnd is the start of the next day after the one that t is in.
func DayEnd(t time.Time, zone *time.Location) time.Time {
	date, start := day(t, zone)
	for {
		date = date.AddDate(0, 0, 1)
		if next, ok := firstOf(date, zone); ok && next.After(start) {
			return next
		}
	}
}

// MonthStart is the start of the first day of the month that t's day is in.
func MonthStart(t time.Time, zone *time.Location) time.Time {
	date, _ := day(t, zone)
	return monthOf(date, zone)
}

// MonthEnd is the start of the next month after the one that t's day is in.
func MonthEnd(t time.Time, zone *time.Location) time.Time {
	date, _ := day(t, zone)
	return monthOf(date.AddDate(0, 0, 1-date.Day()).AddDate(0, 1, 0), zone)
}

// day is the civil day that t is in: its date, as midnight UTC, and its start.
// Where clocks fall back over midnight, the repeated hour shows yesterday's date
// but belongs to the day that has started.
func day(t time.Time, zone *time.Location) (date, start time.Time) {
	y, m, d := t.In(zone).Date()
	date = time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
	for {
		if start, ok := firstOf(date, zone); ok && !start.After(t) {
			return date, start
		}
		date = date.AddDate(0, 0, -1)
	}
}

func monthOf(date time.Time, zone *time.Location) time.Time {
	for date = date.AddDate(0, 0, 1-date.Day()); ; date = date.AddDate(0, 0, 1) {
		if start, ok := firstOf(date, zone); ok {
			return start
		}
	}
}

// firstOf is the first instant whose local date is date (given as midnight UTC);
// ok is false where the zone skipped that day. It walks the zone's periods of
// constant offset around the day, none of which is further than 26 hours off.
func firstOf(date time.Time, zone *time.Location) (first time.Time, ok bool) {
	const reach = 26 * time.Hour
	at := date.Add(-reach).In(zone)
	for {
		begin, end := at.ZoneBounds()
		_, offset := at.Zone()
		midnight := date.Add(-time.Duration(offset) * time.Second)
		first = midnight
		if !begin.IsZero() && begin.After(midnight) {
			first = begin
		}
		if first.Before(midnight.Add(24*time.Hour)) && (end.IsZero() || first.Before(end)) {
			return first.UTC(), true
		}
		if end.IsZero() || end.After(date.Add(2*reach)) {
			return time.Time{}, false
		}
		at = end
	}
}

var zones sync.Map // name → *time.Location, of names that exist only

// zone loads a zone by its IANA name; the empty name is UTC.
func zone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if name == "Local" {
		return nil, fmt.Errorf("limits: no IANA time zone: %q", name)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, z)
	return z, nil
}
