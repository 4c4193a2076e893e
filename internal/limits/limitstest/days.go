package limitstest

import (
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/limits"
)

// inEveryZone tries days of 2010–2037 in zones of tzdata.
func inEveryZone(t *testing.T, open Open, zones []string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for _, name := range zones {
		z, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		daysOf(t, open, z, r)
	}
}

// daysOf calls around changes of a zone's offset and around midnights, with a
// clock that jumps and steps back, and holds a cap of three calls a day against
// a count by the local date.
func daysOf(t *testing.T, open Open, z *time.Location, r *rand.Rand) {
	b := newBench(t, open)
	day := b.limit(limits.DimensionRequests, limits.WindowDay, 3)
	day.Zone = z.String()
	plan := []limits.Limit{day}
	used := map[string]int64{}
	at := time.Date(2010+r.IntN(27), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
	if _, end := at.In(z).ZoneBounds(); !end.IsZero() && end.Year() < 2038 && r.IntN(2) == 0 {
		at = end.Add(-time.Duration(r.IntN(30)) * time.Hour)
	}
	var latest time.Time
	for range 40 {
		at = at.Add(step(r))
		b.clock.Set(at)
		if at.After(latest) {
			latest = at
		}
		date := begun(latest, z)
		d := b.call(plan, 1)
		if want := used[date] < 3; d.Admitted != want {
			t.Fatalf("%s at %s (latest %s): admitted %v, though %d of 3 are used on %s", z, at.UTC(), latest.UTC(), d.Admitted, used[date], date)
		}
		if d.Admitted {
			used[date]++
			continue
		}
		reset := at.Add(d.RetryAfter)
		if before, after := begun(reset.Add(-time.Millisecond), z), begun(reset, z); before != date || after == date {
			t.Fatalf("%s at %s: the day %s is said to end at %s, which is between %s and %s", z, at.UTC(), date, reset.UTC(), before, after)
		}
		if r.IntN(2) == 0 {
			at = reset.Add(-step(r).Abs() / 100)
		}
	}
}

func step(r *rand.Rand) time.Duration {
	switch r.IntN(5) {
	case 0:
		return 0
	case 1:
		return -time.Duration(r.IntN(7200)) * time.Second
	case 2:
		return time.Duration(r.IntN(120)) * time.Second
	case 3:
		return time.Duration(r.IntN(30)) * time.Hour
	}
	return time.Duration(r.IntN(6*3600)) * time.Second
}

// begun is the local date of the day that has begun last: where clocks fall back
// over midnight, the repeated hour is of the day that had begun before.
func begun(at time.Time, z *time.Location) string {
	best := ""
	for back := range 181 {
		if date := at.Add(-time.Duration(back) * time.Minute).In(z).Format(time.DateOnly); date > best {
			best = date
		}
	}
	return best
}
