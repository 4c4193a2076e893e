package limits

import "time"

// Zones is in which IANA zone somebody's days and months begin: the one asked
// for last, and those before it. A change takes effect when the window that runs
// as it is asked for ends, a day or a month; until then the old zone counts.
// Where windows lie is arithmetic over these instants alone, so that every
// process gets the same ones, and gets them again after a restart.
type Zones struct {
	Zone string
	Past []PastZone // oldest first
}

// PastZone is a zone that counted until another was asked for. It stays listed
// for as long as a window that began in it may still run.
type PastZone struct {
	Zone    string `json:"zone"`
	UntilMS int64  `json:"until_ms"` // the instant of the request, of the wall clock
}

// MaxPastZones is how many past zones are kept, and ZoneMemory for how long: a
// month, the one before it, and some.
const (
	MaxPastZones = 8
	ZoneMemory   = 100 * 24 * time.Hour
)

// Day is the day that t is in, half-open, and the zone that it is counted in. An
// unknown zone is UTC.
func (z Zones) Day(t time.Time) (start, end time.Time, in *time.Location) {
	w, in := z.window(WindowDay, t.UnixMilli())
	return w.from(), w.to(), in
}

// Month is the month that t is in, as Day is the day.
func (z Zones) Month(t time.Time) (start, end time.Time, in *time.Location) {
	w, in := z.window(WindowMonth, t.UnixMilli())
	return w.from(), w.to(), in
}

// Pending tells whether the zone asked for last does not count yet for days at
// t, and from when it will.
func (z Zones) Pending(t time.Time) (from time.Time, pending bool) {
	return z.pending(WindowDay, t)
}

// PendingMonths is Pending for months, which change later.
func (z Zones) PendingMonths(t time.Time) (from time.Time, pending bool) {
	return z.pending(WindowMonth, t)
}

func (z Zones) pending(kind Window, t time.Time) (time.Time, bool) {
	if len(z.Past) == 0 {
		return time.Time{}, false
	}
	w, _ := z.window(kind, z.Past[len(z.Past)-1].UntilMS)
	return w.to(), t.Before(w.to())
}

// Zones are those that a calendar limit is counted in.
func (l *Limit) Zones() Zones { return Zones{l.Zone, l.PastZones} }

// ZoneAt is the zone in which the calendar window of l that t is in is counted.
func (l *Limit) ZoneAt(t time.Time) *time.Location {
	_, in := l.Zones().window(l.Window, t.UnixMilli())
	return in
}

// window walks from zone to zone. Each begins with a window that may be short:
// from the end of the old zone's last window to the end of its own.
func (z Zones) window(kind Window, ms int64) (window, *time.Location) {
	var first window // of the zone at hand; none of the oldest
	for i := 0; i < len(z.Past); i++ {
		in := located(z.Past[i].Zone)
		last := first.or(kind, z.Past[i].UntilMS, in)
		if ms < last.end {
			return first.or(kind, ms, in), in
		}
		for i+1 < len(z.Past) && z.Past[i+1].UntilMS < last.end {
			i++ // replaced before it took effect
		}
		first = begun(kind, last.end, located(z.after(i)))
	}
	in := located(z.Zone)
	return first.or(kind, ms, in), in
}

// after is the zone that followed the past one at i.
func (z Zones) after(i int) string {
	if i+1 < len(z.Past) {
		return z.Past[i+1].Zone
	}
	return z.Zone
}

// or is w while it runs, and the plain window of the zone otherwise.
func (w window) or(kind Window, ms int64, zone *time.Location) window {
	if ms < w.end {
		return w
	}
	return plain(kind, ms, zone)
}

// begun is the first window of a zone, which begins at an instant. What a zone
// further west has left of a month that has ended counts to the month after:
// a few hours with a month's cap of their own would give the cap back.
func begun(kind Window, ms int64, zone *time.Location) window {
	const widest = 48 * time.Hour // more than any two zones are apart
	end := plain(kind, ms, zone).end
	if kind == WindowMonth && end-ms < widest.Milliseconds() {
		end = plain(kind, end, zone).end
	}
	return window{ms, end}
}

func located(name string) *time.Location {
	if z, err := zone(name); err == nil {
		return z
	}
	return time.UTC
}
