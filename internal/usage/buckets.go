package usage

import (
	"time"

	"weir/internal/fault"
	"weir/internal/limits"
)

// Bucket is the length of a report's bucket.
type Bucket string

// The buckets. Hours and days are those of the query's zone.
const (
	Minute  Bucket = "1m"
	Quarter Bucket = "15m"
	Hour    Bucket = "1h"
	Day     Bucket = "1d"
)

// How long a range may be: a report has at most about 1,600 buckets, and
// minutes are kept for two days.
var longest = map[Bucket]struct {
	span  time.Duration
	words string
}{
	Minute:  {26 * time.Hour, "26 hours"},
	Quarter: {16 * day, "16 days"},
	Hour:    {64 * day, "64 days"},
	Day:     {800 * day, "800 days"},
}

// buckets are the starts of the half-open buckets that cover [from, to), and
// last the end of the last one. They tile: each ends where the next begins.
func buckets(from, to time.Time, b Bucket, zone *time.Location) (starts []time.Time, last time.Time) {
	at := bucketStart(from, b, zone)
	for at.Before(to) {
		starts = append(starts, at.UTC())
		at = bucketEnd(at, b, zone)
	}
	return starts, at.UTC()
}

func bucketStart(t time.Time, b Bucket, zone *time.Location) time.Time {
	switch b {
	case Minute:
		return t.Truncate(time.Minute)
	case Quarter:
		return t.Truncate(15 * time.Minute)
	case Hour:
		return hourStart(t, zone)
	}
	return limits.DayStart(t, zone)
}

func bucketEnd(start time.Time, b Bucket, zone *time.Location) time.Time {
	switch b {
	case Minute:
		return start.Add(time.Minute)
	case Quarter:
		return start.Add(15 * time.Minute)
	case Hour:
		return hourEnd(start, zone)
	}
	return limits.DayEnd(start, zone)
}

// hourStart is when the wall clock of zone last showed a full hour, or jumped.
func hourStart(t time.Time, zone *time.Location) time.Time {
	local := t.In(zone)
	start := t.Truncate(time.Second).Add(-time.Duration(local.Minute())*time.Minute - time.Duration(local.Second())*time.Second)
	if jump, _ := local.ZoneBounds(); jump.After(start) {
		return jump
	}
	return start
}

// hourEnd is the next full hour of the wall clock, or its jump if that comes
// first: where clocks move by half an hour, two buckets are half as long.
func hourEnd(start time.Time, zone *time.Location) time.Time {
	local := start.In(zone)
	end := start.Add(time.Duration(60-local.Minute())*time.Minute - time.Duration(local.Second())*time.Second)
	if _, jump := local.ZoneBounds(); !jump.IsZero() && jump.Before(end) {
		return jump
	}
	return end
}

// checkRange returns what is wrong with a query's range and bucket.
func checkRange(from, to time.Time, b Bucket) []fault.Field {
	most, known := longest[b]
	switch {
	case !known:
		return []fault.Field{{Pointer: "?bucket", Code: "not_one_of", Message: "bucket must be one of 1m, 15m, 1h, 1d."}}
	case from.Year() < 2020 || from.Year() > 2199:
		return []fault.Field{{Pointer: "?from", Code: "out_of_range", Message: "from must be a time from 2020 to 2199."}}
	case !to.After(from):
		return []fault.Field{{Pointer: "?to", Code: "out_of_range", Message: "to must be after from."}}
	case to.Sub(from) > most.span:
		return []fault.Field{{Pointer: "?to", Code: "range_too_long", Message: "With buckets of " + string(b) + " a report covers at most " + most.words + ". Use a longer bucket or a shorter range."}}
	}
	return nil
}
