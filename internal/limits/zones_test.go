package limits

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawZones is a random history of up to five changes within about ten weeks,
// several of them sometimes within one day.
func drawZones(t *rapid.T, names []string) (z Zones, from time.Time) {
	from = firstYear.Add(time.Duration(rapid.Int64Range(0, int64(lastYear.Sub(firstYear)/time.Second)).Draw(t, "from")) * time.Second)
	at := from
	for range rapid.IntRange(0, 5).Draw(t, "changes") {
		gap := rapid.OneOf(rapid.Int64Range(1, 6*3600), rapid.Int64Range(1, 20*86400)).Draw(t, "gap")
		at = at.Add(time.Duration(gap) * time.Second)
		z.Past = append(z.Past, PastZone{rapid.SampledFrom(names).Draw(t, "past"), at.UnixMilli()})
	}
	z.Zone = rapid.SampledFrom(names).Draw(t, "zone")
	return z, from
}

func TestWindowsTileTimeThroughEveryChangeOfZone(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		z, from := drawZones(t, names)
		kind := rapid.SampledFrom([]Window{WindowDay, WindowMonth}).Draw(t, "kind")
		w, _ := z.window(kind, from.UnixMilli())
		for until := from.AddDate(0, 5, 0).UnixMilli(); w.start < until; {
			if w.end <= w.start {
				t.Fatalf("a window from %s to %s", w.from(), w.to())
			}
			inside := rapid.Int64Range(w.start, w.end-1).Draw(t, "inside")
			for _, ms := range []int64{w.start, inside, w.end - 1} {
				if got, _ := z.window(kind, ms); got != w {
					t.Fatalf("%s is in the window %s to %s, want %s to %s", time.UnixMilli(ms).UTC(), got.from(), got.to(), w.from(), w.to())
				}
			}
			next, _ := z.window(kind, w.end)
			if next.start != w.end {
				t.Fatalf("after the window until %s comes one from %s", w.to(), next.from())
			}
			w = next
		}
		if kind == WindowDay {
			return
		}
		if start, _, in := z.Month(w.from()); in.String() != z.Zone || !MonthStart(start, in).Equal(start) {
			t.Fatalf("months from the last change on are not those of %s: %s", z.Zone, start)
		}
	})
}

// A window that runs as a change is asked for is the one that would have run
// without it; no later change moves it either.
func TestTheWindowThatRunsAtARequestEndsWhereItWould(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		z, from := drawZones(t, names)
		kind := rapid.SampledFrom([]Window{WindowDay, WindowMonth}).Draw(t, "kind")
		asked := from.AddDate(0, 0, 101).UnixMilli()
		before, in := z.window(kind, asked)
		changed := Zones{rapid.SampledFrom(names).Draw(t, "new"), append(z.Past, PastZone{z.Zone, asked})}
		for _, ms := range []int64{before.start, asked - 1, asked, asked + 1, before.end - 1} {
			if before.start <= ms && ms < before.end {
				if got, now := changed.window(kind, ms); got != before || now.String() != in.String() {
					t.Fatalf("%s was counted until %s in %s, now until %s in %s", time.UnixMilli(ms).UTC(), before.to(), in, got.to(), now)
				}
			}
		}
		if _, now := changed.window(kind, before.end); now.String() != changed.Zone {
			t.Fatalf("at the end of the window %s counts, want %s", now, changed.Zone)
		}
		if at, pending := changed.pending(kind, time.UnixMilli(asked)); !pending || at.UnixMilli() != before.end {
			t.Fatalf("announced from %s (%v), want %s", at, pending, before.to())
		}
	})
}

func TestNoZoneGivesACapOfAMonthBackWithinIt(t *testing.T) {
	names := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		z, from := drawZones(t, names)
		w, _ := z.window(WindowMonth, from.UnixMilli())
		for w.start < from.AddDate(0, 5, 0).UnixMilli() {
			next, _ := z.window(WindowMonth, w.end)
			if d := next.to().Sub(next.from()); d < 26*24*time.Hour || d > 33*24*time.Hour {
				t.Fatalf("a month from %s to %s", next.from(), next.to())
			}
			w = next
		}
	})
}

func TestADayOfAChangeIsCountedInTheOldZoneAndTheNextInTheNew(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	z := Zones{Zone: "America/New_York", Past: []PastZone{{"Europe/Berlin", at("2026-11-30T12:00:00Z").UnixMilli()}}}
	for _, c := range []struct{ in, start, end, zone string }{
		{"2026-11-30T22:59:59Z", "2026-11-29T23:00:00Z", "2026-11-30T23:00:00Z", "Europe/Berlin"},
		{"2026-11-30T23:00:00Z", "2026-11-30T23:00:00Z", "2026-12-01T05:00:00Z", "America/New_York"},
		{"2026-12-01T05:00:00Z", "2026-12-01T05:00:00Z", "2026-12-02T05:00:00Z", "America/New_York"},
	} {
		start, end, in := z.Day(at(c.in))
		if start != at(c.start) || end != at(c.end) || in.String() != c.zone {
			t.Errorf("%s is in %s to %s in %s, want %s to %s in %s", c.in, start, end, in, c.start, c.end, c.zone)
		}
	}
	if start, end, _ := z.Month(at("2026-11-30T23:30:00Z")); start != at("2026-11-30T23:00:00Z") || end != at("2027-01-01T05:00:00Z") {
		t.Errorf("the month after the change is %s to %s", start, end)
	}
}
