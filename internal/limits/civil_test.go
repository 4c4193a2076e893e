package limits

import (
	"bufio"
	"os"
	"testing"
	"time"
	_ "time/tzdata" // every zone, whatever the machine has

	"pgregory.net/rapid"
)

// zoneNames are the names of tzdata, links included.
func zoneNames(t testing.TB) []string {
	t.Helper()
	f, err := os.Open("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var names []string
	for s := bufio.NewScanner(f); s.Scan(); {
		names = append(names, s.Text())
	}
	if len(names) < 400 {
		t.Fatalf("only %d zones", len(names))
	}
	return names
}

var (
	firstYear = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	lastYear  = time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)
)

// changes are the instants of 2010–2037 at which the zone's offset changes.
func changes(z *time.Location) []time.Time {
	var list []time.Time
	for t := firstYear.In(z); ; {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.After(lastYear) {
			return list
		}
		list = append(list, end)
		t = end
	}
}

// dateOf is the local date as a number that grows with it.
func dateOf(t time.Time, z *time.Location) int {
	y, m, d := t.In(z).Date()
	return (y*100+int(m))*100 + d
}

// Around every change of every zone, day starts are compared with a search for
// the first minute that shows the date.
func TestADayStartsAtTheFirstInstantOfItsDateInEveryZone(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range zoneNames(t) {
		z, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changes(z) {
			before, after := change.Add(-time.Second).In(z), change.In(z)
			shown := change.String() + before.Format("-0700") + after.Format("-0700")
			if !seen[shown] {
				seen[shown] = true
				searchDays(t, name, z, change)
			}
		}
	}
}

// searchDays walks 80 hours around a change by the minute.
func searchDays(t *testing.T, name string, z *time.Location, change time.Time) {
	t.Helper()
	from := change.Add(-40 * time.Hour).Truncate(time.Minute)
	start := DayStart(from, z)
	latest := dateOf(from, z) // dates shown before are over
	for at := from; at.Before(change.Add(40 * time.Hour)); at = at.Add(time.Minute) {
		if date := dateOf(at, z); date > latest {
			latest = date
			if end := DayEnd(start, z); !end.Equal(at) {
				t.Fatalf("%s: the day from %s ends at %s, want %s", name, start, end, at)
			}
			start = at
			if got := DayStart(at.Add(-time.Nanosecond), z); !got.Before(at) {
				t.Fatalf("%s: the instant before %s is not in the day before", name, at)
			}
		}
		if at.Minute()%30 == 0 {
			if got := DayStart(at, z); !got.Equal(start) {
				t.Fatalf("%s: the day of %s starts at %s, want %s", name, at, got, start)
			}
		}
	}
}

func TestDaysTileMonthsAndMonthsTileTime(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "zone")
		z, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		at := firstYear.Add(time.Duration(rapid.Int64Range(0, int64(lastYear.Sub(firstYear)/time.Second)).Draw(t, "second")) * time.Second)
		month, end := MonthStart(at, z), MonthEnd(at, z)
		if month.After(at) || !end.After(at) || !MonthStart(end, z).Equal(end) || !MonthEnd(end.Add(-1), z).Equal(end) {
			t.Fatalf("%s is not in its month, from %s to %s", at, month, end)
		}
		days := 0
		for day := month; day.Before(end); days++ {
			next := DayEnd(day, z)
			switch {
			case !next.After(day):
				t.Fatalf("the day from %s ends at %s", day, next)
			case dateOf(day, z) == dateOf(next, z):
				t.Fatalf("%s and %s show the same date", day, next)
			case !DayStart(day, z).Equal(day), !DayStart(next.Add(-1), z).Equal(day), !DayEnd(next.Add(-1), z).Equal(next):
				t.Fatalf("the day from %s to %s is not half-open", day, next)
			case next.After(end):
				t.Fatalf("the day from %s crosses the end of the month, %s", day, end)
			}
			day = next
		}
		if days < 27 || days > 31 {
			t.Fatalf("the month from %s has %d days", month, days)
		}
	})
}

func TestOddDaysStartWhereTheyDo(t *testing.T) {
	for _, c := range []struct{ zone, in, start, end string }{
		{"America/Santiago", "2024-09-08T12:00:00Z", "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"}, // 00:00 does not exist
		{"America/Havana", "2024-03-10T12:00:00Z", "2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z"},   // nor here
		{"America/St_Johns", "2010-11-07T03:00:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"}, // back over midnight at 00:01
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},     // then the 31st
		{"Australia/Lord_Howe", "2024-04-07T00:00:00Z", "2024-04-06T13:00:00Z", "2024-04-07T13:30:00Z"},
		{"UTC", "2024-02-29T23:59:59Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
	} {
		z, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, c.in)
		if start, end := DayStart(at, z).Format(time.RFC3339), DayEnd(at, z).Format(time.RFC3339); start != c.start || end != c.end {
			t.Errorf("%s at %s: from %s to %s, want %s to %s", c.zone, c.in, start, end, c.start, c.end)
		}
	}
}
