package limitstest

import (
	"testing"
	"time"

	"weir/internal/limits"
)

// moved is the limit after its zone was changed, ago before Noon.
func moved(l limits.Limit, zone string, ago time.Duration) limits.Limit {
	l.PastZones = append(l.PastZones[:len(l.PastZones):len(l.PastZones)], limits.PastZone{Zone: l.Zone, UntilMS: Noon.Add(-ago).UnixMilli()})
	l.Zone = zone
	return l
}

// zoned are what holds when a tenant changes its time zone. Noon is in UTC.
var zoned = []guarantee{
	{"AChangeOfZoneCountsFromTheEndOfTheRunningDayFrom0", func(t *testing.T, open Open) {
		b := newBench(t, open)
		day := b.limit(limits.DimensionTokens, limits.WindowDay, 100)
		b.admitted([]limits.Limit{day}, 100)
		day = moved(day, "America/New_York", 0)
		wantWait(t, b.refused([]limits.Limit{day}, 1), 12*time.Hour)
		b.clock.Move(12 * time.Hour)
		b.admitted([]limits.Limit{day}, 70)
		if s := b.live(day)[0]; s.Remaining != 30 || s.Full != 4*time.Hour || !s.WindowStart.Equal(Noon.Add(12*time.Hour)) {
			t.Fatalf("remaining %d, from %s, reset in %s; want 30 until the day ends in New York in 4h", s.Remaining, s.WindowStart, s.Full)
		}
		b.clock.Move(4 * time.Hour)
		if s := b.live(day)[0]; s.Remaining != 100 || s.Full != 24*time.Hour {
			t.Fatalf("remaining %d, reset in %s; want a whole day of New York", s.Remaining, s.Full)
		}
	}},
	{"ASpentMonthStaysSpentToItsEndWhateverTheZone", func(t *testing.T, open Open) {
		b := newBench(t, open)
		month := b.limit(limits.DimensionTokens, limits.WindowMonth, 100)
		b.admitted([]limits.Limit{month}, 100)
		end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
		month = moved(moved(month, "Asia/Tokyo", 0), "America/New_York", -24*time.Hour)
		b.clock.Set(end.Add(-time.Hour)) // April in Tokyo
		wantWait(t, b.refused([]limits.Limit{month}, 1), time.Hour)
		b.clock.Set(end) // March in New York, for 4 hours
		b.admitted([]limits.Limit{month}, 100)
		b.clock.Move(4 * time.Hour)
		b.refused([]limits.Limit{month}, 1)
		b.clock.Set(time.Date(2026, 5, 1, 4, 0, 0, 0, time.UTC))
		b.remaining(100, month)
	}},
	{"ARestartBetweenTheRequestAndItsEffectGivesNothingBack", func(t *testing.T, open Open) {
		b, _, day := restarted(t, open, 950)
		day = moved(day, "Asia/Kolkata", time.Hour)
		b.remaining(50, day)
		b.clock.Move(12 * time.Hour)
		b.remaining(1000, day)
	}},
	{"ARestartWithinTheFirstShortDayOfAZoneFindsWhatItUsed", func(t *testing.T, open Open) {
		b, _, day := restarted(t, open, 950)
		day = moved(day, "Asia/Kolkata", 20*time.Hour) // its first day began with the day in UTC
		b.remaining(50, day)
		b.clock.Move(6*time.Hour + 30*time.Minute)
		b.remaining(1000, day)
	}},
}
