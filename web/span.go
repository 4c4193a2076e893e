package web

import (
	"net/url"
	"time"

	"weir/internal/limits"
	"weir/internal/usage"
	"weir/web/ui"
)

// span is the time that a page is about, and how it is cut.
type span struct {
	Key      string // today, 7d, 30d, month, dates
	From, To time.Time
	Bucket   usage.Bucket
	Wrong    string // what is wrong with the dates that were asked for
}

// spans are the ranges that pages offer, in order.
var spans = []struct{ Key, Words string }{{"today", "Today"}, {"7d", "7 d"}, {"30d", "30 d"}, {"month", "Month"}, {"dates", "Dates"}}

// eachWords are what a figure of one bucket is per.
var eachWords = map[usage.Bucket]string{usage.Minute: "a minute", usage.Quarter: "in 15 minutes", usage.Hour: "an hour", usage.Day: "a day"}

// unitWords say what a chart counts, per what, and the zone of its times.
func unitWords(unit string, each usage.Bucket, now time.Time) string {
	return unit + " " + eachWords[each] + ", times in " + now.Format("MST")
}

// bucketWords name the buckets that can be chosen.
var bucketWords = []struct {
	Bucket usage.Bucket
	Words  string
	most   time.Duration // the longest span that is cut so
}{
	{usage.Minute, "by minute", 26 * time.Hour},
	{usage.Quarter, "by 15 minutes", 4 * 24 * time.Hour},
	{usage.Hour, "by hour", 32 * 24 * time.Hour},
	{usage.Day, "by day", 800 * 24 * time.Hour},
}

// spanOf reads ?range=, ?from=, ?to= and ?bucket=. What cannot be is said, and
// today taken instead. now is in the tenant's zone.
func spanOf(q url.Values, now time.Time) span {
	zone := now.Location()
	s := span{Key: "today", From: limits.DayStart(now, zone), To: limits.DayEnd(now, zone)}
	back := func(days int) time.Time { return limits.DayStart(noonOf(now).AddDate(0, 0, -days), zone) }
	switch key := q.Get("range"); key {
	case "7d":
		s.Key, s.From = key, back(6)
	case "30d":
		s.Key, s.From = key, back(29)
	case "month":
		s.Key, s.From = key, limits.MonthStart(now, zone)
	case "dates":
		s.dates(q, now)
	}
	s.Bucket = s.bucket(usage.Bucket(q.Get("bucket")), now)
	return s
}

// dates takes the days from ?from= to ?to=, both in it.
func (s *span) dates(q url.Values, now time.Time) {
	zone := now.Location()
	from, err1 := time.ParseInLocation(time.DateOnly, q.Get("from"), time.UTC)
	to, err2 := time.ParseInLocation(time.DateOnly, q.Get("to"), time.UTC)
	s.Key = "dates"
	switch {
	case q.Get("from") == "" && q.Get("to") == "":
	case err1 != nil || err2 != nil:
		s.Wrong = "A date reads 2026-11-30. Below is today."
	case to.Before(from):
		s.Wrong = "The last day is before the first. Below is today."
	case to.Sub(from) > 366*24*time.Hour:
		s.Wrong = "A report covers at most 366 days. Below is today."
	case from.Year() < 2020 || to.After(now.AddDate(1, 0, 0)):
		s.Wrong = "Reports reach from 2020 to a year from now. Below is today."
	default:
		s.From = limits.DayStart(time.Date(from.Year(), from.Month(), from.Day(), 12, 0, 0, 0, zone), zone)
		s.To = limits.DayEnd(time.Date(to.Year(), to.Month(), to.Day(), 12, 0, 0, 0, zone), zone)
	}
}

// bucket is the one that was asked for where the span can be cut so, else what
// reads best.
func (s span) bucket(asked usage.Bucket, now time.Time) usage.Bucket {
	for _, b := range s.buckets(now) {
		if b.Value == string(asked) {
			return asked
		}
	}
	if s.To.Sub(s.From) <= 50*time.Hour {
		return usage.Hour
	}
	return usage.Day
}

// buckets are the ways in which the span can be cut. Minutes are kept for two
// days.
func (s span) buckets(now time.Time) (out []ui.Option) {
	for _, b := range bucketWords {
		if s.To.Sub(s.From) > b.most || b.Bucket == usage.Minute && now.Sub(s.From) > 46*time.Hour || b.Bucket == usage.Day && s.To.Sub(s.From) <= 26*time.Hour {
			continue
		}
		out = append(out, ui.Option{Value: string(b.Bucket), Label: b.Words, Chosen: b.Bucket == s.Bucket})
	}
	return out
}

// words say the span with its zone.
func (s span) words(now time.Time) string {
	last := s.To.Add(-time.Minute).In(now.Location())
	first := s.From.In(now.Location())
	end := "to the end of " + last.Format("Monday 2 January")
	if s.To.After(now) {
		end = "to now, " + now.Format("15:04 MST")
	}
	if first.YearDay() == last.YearDay() && first.Year() == last.Year() {
		if s.To.After(now) {
			return first.Format("Monday 2 January, 15:04 ") + end
		}
		return first.Format("Monday 2 January 2006")
	}
	return first.Format("Monday 2 January 2006, 15:04 MST ") + end
}

// noonOf is the middle of a day, from which days can be counted whatever the
// clock does at midnight.
func noonOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, t.Location())
}

// link is an address with some parameters changed; "" removes one.
func link(path string, q url.Values, change ...string) string {
	out := url.Values{}
	for name, v := range q {
		out[name] = v
	}
	out.Del("done")
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == "" {
			out.Del(change[i])
		} else {
			out.Set(change[i], change[i+1])
		}
	}
	if len(out) == 0 {
		return path
	}
	return path + "?" + out.Encode()
}

// marks name places on an axis of buckets: every so many, as few as can be read.
func marks(starts []time.Time, b usage.Bucket, now time.Time) (out []ui.Tick) {
	n := len(starts)
	if n == 0 {
		return nil
	}
	shown := 0
	for i, t := range starts {
		t = t.In(now.Location())
		word, whole := "", false
		switch b {
		case usage.Day:
			every := max(1, (n+7)/8)
			word, whole = t.Format("2 Jan"), (n-1-i)%every == 0
			if n <= 7 {
				word, whole = t.Format("Mon 2"), true
			}
		case usage.Hour:
			switch {
			case n <= 26:
				word, whole = t.Format("15:04"), t.Hour()%3 == 0 && t.Minute() == 0
			default:
				word, whole = t.Format("2 Jan"), t.Hour() == 0 && t.Minute() == 0 && (n <= 24*9 || t.Day()%4 == 1)
			}
		case usage.Quarter:
			word, whole = t.Format("15:04"), t.Minute() == 0 && t.Hour()%3 == 0
			if n > 100 {
				word, whole = t.Format("2 Jan"), t.Minute() == 0 && t.Hour() == 0
			}
		case usage.Minute:
			word, whole = t.Format("15:04"), t.Minute()%15 == 0
			if n > 70 {
				whole = t.Minute() == 0 && t.Hour()%3 == 0
			}
		}
		if whole {
			out = append(out, ui.Tick{At: float64(i) / float64(n), Word: word, Minor: shown%2 == 1})
			shown++
		}
	}
	return out
}
