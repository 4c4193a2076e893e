package billing

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// zones are all of the toolchain's time zone database.
func zones(t *testing.T) (out []string) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if os.IsNotExist(err) {
		t.Fatal("the toolchain has no zoneinfo.zip")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") {
			out = append(out, f.Name)
		}
	}
	return out
}

func TestAPeriodKeepsItsAnchorDayAndTimeOfDay(t *testing.T) {
	for started, want := range map[string]string{
		"2026-01-31T10:00:00Z": "2026-02-28T10:00:00Z 2026-03-31T10:00:00Z 2026-04-30T10:00:00Z",
		"2027-12-31T23:59:59Z": "2028-01-31T23:59:59Z 2028-02-29T23:59:59Z 2028-03-31T23:59:59Z",
	} {
		at, err := time.Parse(time.RFC3339, started)
		if err != nil {
			t.Fatal(err)
		}
		p, anchor := first(at, time.UTC, 0)
		var ends []string
		for range 3 {
			ends = append(ends, p.End.Format(time.RFC3339))
			p = p.after(anchor, time.UTC)
		}
		if got := strings.Join(ends, " "); got != want {
			t.Errorf("%s: got %s", started, got)
		}
	}
}

// Of every zone, every start (days 29 to 31 and the hours of clock changes among
// them), with and without a trial.
func TestPeriodsTileTimeInEveryZoneWhateverTheirAnchor(t *testing.T) {
	for _, name := range zones(t) {
		if _, err := time.LoadLocation(name); err != nil {
			t.Fatal(err)
		}
	}
	all := zones(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(all).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		started := time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, "started")).UTC()
		if rapid.Bool().Draw(t, "at a clock change") {
			if _, change := started.In(zone).ZoneBounds(); !change.IsZero() {
				started = change.Add(time.Duration(rapid.Int64Range(-7200, 7200).Draw(t, "off")) * time.Second).UTC()
			}
		}
		p, anchor := first(started, zone, rapid.SampledFrom([]int{0, 0, 1, 14, 30, 365}).Draw(t, "trial"))
		if !p.Start.Equal(started) {
			t.Fatalf("the first begins at %v", p.Start)
		}
		for range 40 {
			if !p.Start.Before(p.End) {
				t.Fatalf("%+v has no length", p)
			}
			checkBoundary(t, p, anchor, zone)
			next := p.after(anchor, zone)
			if !next.Start.Equal(p.End) || next.Number != p.Number+1 || next.Trial {
				t.Fatalf("%+v is followed by %+v", p, next)
			}
			p = next
		}
	})
}

// checkBoundary holds the end of a period against the anchor: its time of day on
// its day, or, where no clock shows that, the first instant after.
func checkBoundary(t *rapid.T, p Period, anchor time.Time, zone *time.Location) {
	shown := anchorOf(p.End, zone)
	last := time.Date(anchor.Year(), anchor.Month()+time.Month(p.Number+2), 0, 0, 0, 0, 0, time.UTC).Day()
	want := time.Date(anchor.Year(), anchor.Month()+time.Month(p.Number+1), min(anchor.Day(), last), anchor.Hour(), anchor.Minute(), anchor.Second(), anchor.Nanosecond(), time.UTC)
	if shown.Equal(want) {
		return
	}
	before := anchorOf(p.End.Add(-time.Nanosecond), zone)
	if shown.Before(want) || !before.Before(want) {
		t.Fatalf("%+v ends at %v, wanted %v; the instant before shows %v", p, shown, want, before)
	}
}

// A later change of the tenant's zone moves no period that is open; the next
// ones are still whole.
func TestPeriodsTileThroughChangesOfZone(t *testing.T) {
	all := zones(t)
	rapid.Check(t, func(t *rapid.T) {
		load := func() *time.Location {
			zone, err := time.LoadLocation(rapid.SampledFrom(all).Draw(t, "zone"))
			if err != nil {
				t.Fatal(err)
			}
			return zone
		}
		p, anchor := first(time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, "started")), load(), 0)
		for range 12 {
			next := p.after(anchor, load())
			if !next.Start.Equal(p.End) || !next.Start.Before(next.End) {
				t.Fatalf("%+v is followed by %+v", p, next)
			}
			p = next
		}
	})
}
