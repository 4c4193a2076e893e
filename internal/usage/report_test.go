package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/limits"
	"weir/internal/money"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	must(t, err)
	return z
}

// callOf is a call of n input tokens at an instant, on a day of the zone.
func callOf(tenant uuid.UUID, at time.Time, z *time.Location, n int64) Event {
	e := call(tenant, at)
	e.Tokens, e.LocalDay = limits.Tokens{Input: n}, limits.DayStart(at, z)
	e.Charges[0].Amount = n
	return e
}

func (b books) reports() *Reports { return NewReports(b.App, time.Now) }

func (b books) report(tenant uuid.UUID, q Query) Report {
	b.t.Helper()
	rep, err := b.reports().Report(b.t.Context(), tenant, q)
	must(b.t, err)
	var sum int64
	for _, row := range rep.Rows {
		sum += row.Tokens.Total()
	}
	if sum != rep.Totals.Tokens.Total() {
		b.t.Fatalf("rows have %d tokens, the total %d", sum, rep.Totals.Tokens.Total())
	}
	return rep
}

func TestDayOfAZoneCountsThatDayOnly(t *testing.T) {
	t.Parallel()
	b, s, tenant, z := newBooks(t), newSource(), id.New(), zone(t, "Asia/Kolkata")
	midnight := limits.DayStart(time.Now().Add(-3*day), z)
	b.ingest(s.run(t, callOf(tenant, midnight.Add(-time.Minute), z, 10), callOf(tenant, midnight.Add(time.Minute), z, 20)))
	before, after := limits.DayStart(midnight.Add(-time.Second), z), limits.DayEnd(midnight, z)
	tokens := func(from, to time.Time) int64 {
		return b.report(tenant, Query{From: from, To: to, Bucket: Day, Zone: z}).Totals.Tokens.Total()
	}
	if first, second, both := tokens(before, midnight), tokens(midnight, after), tokens(before, after); first != 10 || second != 20 || both != 30 {
		t.Fatalf("the days have %d and %d tokens, the range %d", first, second, both)
	}
	rows := b.report(tenant, Query{From: before.Add(-day), To: after.Add(day), Bucket: Day, Zone: z}).Rows
	var got []int64
	for _, r := range rows {
		got = append(got, r.Tokens.Total())
	}
	if diff := cmp.Diff([]int64{0, 10, 20, 0}, got); diff != "" {
		t.Fatal(diff)
	}
	wantTotals(t, b.Worker, totals{Events: 2, Requests: 2, Tokens: 30, Caps: 30})
}

func TestOneDayReportOfAZoneHasOneDay(t *testing.T) {
	t.Parallel()
	b, s, tenant, z := newBooks(t), newSource(), id.New(), zone(t, "America/Los_Angeles")
	middle := limits.DayStart(time.Now().Add(-10*day), z)
	for _, n := range []int{-1, 0, 1} {
		noon := limits.DayStart(middle.Add(time.Duration(n)*day+2*time.Hour), z).Add(12 * time.Hour)
		b.ingest(s.run(t, callOf(tenant, noon, z, 5)))
	}
	rep := b.report(tenant, Query{From: middle, To: limits.DayEnd(middle, z), Bucket: Day, Zone: z})
	if len(rep.Rows) != 1 || rep.Totals.Requests != 1 {
		t.Fatalf("%d rows, %d requests", len(rep.Rows), rep.Totals.Requests)
	}
}

func TestBucketsTileEveryRangeInEveryZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, from string
		days       int
		hours      int // of a range of that many days
	}{
		{"America/New_York", "2026-03-07T05:00:00Z", 3, 71},
		{"America/New_York", "2026-10-31T04:00:00Z", 3, 73},
		{"Australia/Lord_Howe", "2026-04-03T13:00:00Z", 3, 73}, // two of them half as long
		{"America/Santiago", "2024-09-07T04:00:00Z", 3, 71},
		{"Asia/Kolkata", "2026-05-10T18:30:00Z", 3, 72},
	} {
		z := zone(t, c.zone)
		from, err := time.Parse(time.RFC3339, c.from)
		must(t, err)
		days, end := buckets(from, from.Add(time.Duration(c.days)*day-2*time.Hour), Day, z)
		if len(days) != c.days || !days[0].Equal(from) {
			t.Errorf("%s: %d days from %v", c.zone, len(days), days[0])
		}
		for i := range days {
			if !limits.DayStart(days[i], z).Equal(days[i]) {
				t.Errorf("%s: %v is no start of a day", c.zone, days[i])
			}
		}
		hours, hoursEnd := buckets(from, end, Hour, z)
		if len(hours) != c.hours || !hoursEnd.Equal(end) {
			t.Errorf("%s: %d hours until %v, want %d until %v", c.zone, len(hours), hoursEnd, c.hours, end)
		}
		for i := 1; i < len(hours); i++ {
			if d := hours[i].Sub(hours[i-1]); d <= 0 || d > time.Hour || hours[i].Truncate(15*time.Minute) != hours[i] {
				t.Errorf("%s: the hour at %v lasts %v", c.zone, hours[i-1], d)
			}
		}
	}
}

func TestReportTellsCallsApart(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	at := time.Now().Truncate(time.Hour).Add(-time.Hour)
	ok, bad, no, practice, other := call(tenant, at), call(tenant, at), refusal(tenant, at), call(tenant, at), call(tenant, at)
	bad.Outcome = ProviderError
	practice.Test, practice.Charge = true, money.Pico{}
	other.ModelAsked, other.Customer, other.Cost, other.CostCurrency = "claude", sub(tenant, 9), nil, ""
	b.ingest(s.run(t, ok, bad, no, practice, other))
	hour := Query{From: at, To: at.Add(time.Hour), Bucket: Hour}
	with := func(change func(*Query)) Report {
		q := hour
		change(&q)
		return b.report(tenant, q)
	}

	all := with(func(q *Query) {})
	var took Latency
	took.count(21, 3) // of a second
	want := Sums{
		Requests: 3, Refused: 1, Errors: 1, Tokens: limits.Tokens{Input: 21, Output: 9},
		Charges: []Money{{"USD", money.FromInt(150)}}, Costs: []Money{{"USD", money.FromInt(60)}}, Unpriced: 1, Latency: took,
	}
	if diff := cmp.Diff(want, all.Totals, exactMoney); diff != "" {
		t.Fatal(diff)
	}
	if n := with(func(q *Query) { q.Filter.Tests = WithTests }).Totals.Requests; n != 4 {
		t.Errorf("%d requests with tests", n)
	}
	if n := with(func(q *Query) { q.Filter.Tests = OnlyTests }).Totals.Requests; n != 1 {
		t.Errorf("%d test requests", n)
	}
	byModel := with(func(q *Query) { q.GroupBy = ByModel }).Rows
	if len(byModel) != 2 || byModel[0].Group.Name != "claude" || byModel[0].Requests != 1 || byModel[1].Requests != 2 {
		t.Errorf("by model: %+v", byModel)
	}
	byCustomer := with(func(q *Query) { q.GroupBy, q.Bucket = ByCustomer, Quarter }).Rows
	if len(byCustomer) != 8 {
		t.Errorf("2 customers in 4 quarters are %d rows", len(byCustomer))
	}
	byOutcome := with(func(q *Query) { q.GroupBy, q.Bucket, q.To = ByOutcome, Minute, at.Add(time.Minute) }).Rows
	if len(byOutcome) != 3 || byOutcome[2].Group.Name != "refused_tokens_minute" || byOutcome[2].Refused != 1 {
		t.Errorf("by outcome: %+v", byOutcome)
	}
	for _, f := range []Filter{{Outcome: "refused"}, {Outcome: "refused_tokens_minute"}} {
		if got := with(func(q *Query) { q.Filter = f }).Totals; got.Refused != 1 || got.Requests != 0 {
			t.Errorf("%v: %+v", f, got)
		}
	}
	if n := with(func(q *Query) { q.Filter.Customer = sub(tenant, 9) }).Totals.Requests; n != 1 {
		t.Errorf("%d requests of one customer", n)
	}
	if n := b.report(id.New(), hour).Totals.Requests; n != 0 {
		t.Errorf("another tenant sees %d requests", n)
	}
}

func TestReportNamesTheParameterThatIsWrong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, q := range map[string]Query{
		"?bucket":   {From: now.Add(-time.Hour), To: now, Bucket: "2h"},
		"?from":     {From: time.Unix(0, 0), To: now, Bucket: Day},
		"?to":       {From: now, To: now, Bucket: Day},
		"?group_by": {From: now.Add(-time.Hour), To: now, Bucket: Day, GroupBy: "shoe_size"},
	} {
		_, err := NewReports(nil, time.Now).Report(t.Context(), id.New(), q)
		f := fault.Of(err)
		if f.Kind != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Pointer != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	for bucket, span := range map[Bucket]time.Duration{Minute: 27 * time.Hour, Quarter: 17 * day, Hour: 65 * day, Day: 801 * day} {
		_, err := NewReports(nil, time.Now).Report(t.Context(), id.New(), Query{From: now.Add(-span), To: now, Bucket: bucket})
		if f := fault.Of(err); f.Kind != fault.Invalid || f.Fields[0].Code != "range_too_long" {
			t.Errorf("%s over %v: %v", bucket, span, err)
		}
	}
}

func TestReportSaysUpToWhenItIsComplete(t *testing.T) {
	t.Parallel()
	b, tenant := newBooks(t), id.New()
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := NewReports(b.App, func() time.Time { return now })
	asOf := func() time.Duration {
		rep, err := r.Report(t.Context(), tenant, Query{From: now.Add(-time.Hour), To: now, Bucket: Hour})
		must(t, err)
		return now.Sub(rep.AsOf)
	}
	if got := asOf(); got != 0 {
		t.Fatalf("without instances the books are %v old", got)
	}
	put := func(column string) {
		owner(t, b.Database, `insert into instances (instance_id, host, started_at, seen_at, fresh_at, `+column+`)
			values (gen_random_uuid(), 'h', '`+now.Format(time.RFC3339Nano)+`', now(), timestamptz '`+now.Format(time.RFC3339Nano)+`' - interval '7 seconds', now())`)
	}
	put("stopped_at")
	put("retired_at")
	if got := asOf(); got != 0 {
		t.Fatalf("with instances that are gone the books are %v old", got)
	}
	put("oldest_open")
	if got := asOf(); got != 7*time.Second {
		t.Fatalf("the books are %v old", got)
	}
}

// TestDaysAreTheSameFromEveryRollup: a report by day reads the sums of civil days
// where its buckets are these, and says the same as from quarters of an hour; in a
// zone of its own, across a change of clocks, and where the tenant changed zone.
func TestDaysAreTheSameFromEveryRollup(t *testing.T) {
	t.Parallel()
	b, s, r, now := newBooks(t), newSource(), random(t), time.Now()
	changed := limits.DayStart(now.Add(-10*day), time.UTC)
	for _, days := range []limits.Zones{
		{Zone: "Europe/Berlin"},
		{Zone: "America/Santiago"},
		{Zone: "Asia/Kathmandu"},
		{Zone: "Asia/Tokyo", Past: []limits.PastZone{{Zone: "America/New_York", UntilMS: changed.UnixMilli()}}},
	} {
		tenant := id.New()
		var events []Event
		for range 300 {
			at := now.Add(-time.Duration(r.Int64N(int64(60 * day))))
			e := callOf(tenant, at, time.UTC, r.Int64N(1000))
			e.LocalDay, _, _ = days.Day(e.StartedAt)
			e.Charges = nil
			events = append(events, e)
		}
		b.ingest(s.run(t, events...))
		for _, name := range []string{days.Zone, "UTC", "Pacific/Chatham"} {
			q := Query{From: now.Add(-50 * day), To: now, Bucket: Day, GroupBy: ByModel, Zone: zone(t, name)}
			from := b.report(tenant, q)
			q.Days = days
			starts, end := buckets(q.From, q.To, q.Bucket, q.Zone)
			if table := q.table(starts, end, now); (table == "usage_day") != (name == days.Zone && days.Past == nil) {
				t.Errorf("%+v by days of %s reads %s", days, name, table)
			}
			if diff := cmp.Diff(from.Rows, b.report(tenant, q).Rows, exactMoney); diff != "" {
				t.Errorf("%+v by days of %s: %s", days, name, diff)
			}
		}
	}
}

// TestDaysAreReportedAfterQuartersAreGone: a report by day over both is what it
// was, in the tenant's zone to the row, in others to the total; and what is kept in
// no shorter bucket is refused, not made up as nothing.
func TestDaysAreReportedAfterQuartersAreGone(t *testing.T) {
	t.Parallel()
	b, s, r, tenant, now := newBooks(t), newSource(), random(t), id.New(), time.Now()
	home := limits.Zones{Zone: "Asia/Tokyo"}
	var events []Event
	for range 200 {
		e := callOf(tenant, now.Add(-time.Duration(r.Int64N(int64(110*day)))), time.UTC, r.Int64N(1000))
		e.LocalDay, _, _ = home.Day(e.StartedAt)
		e.Charges = nil
		events = append(events, e)
	}
	b.ingest(s.run(t, events...))
	by := func(name string) Report {
		return b.report(tenant, Query{From: now.Add(-115 * day), To: now, Bucket: Day, GroupBy: ByModel, Zone: zone(t, name), Days: home})
	}
	before := map[string]Report{}
	for _, name := range []string{"Asia/Tokyo", "UTC", "America/Los_Angeles"} {
		before[name] = by(name)
	}
	must(t, b.keeper(60, time.Now).Drop(t.Context()))
	for name, was := range before {
		got := by(name)
		if diff := cmp.Diff(was.Totals, got.Totals, exactMoney); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(was.Rows, got.Rows, exactMoney); diff != "" && name == home.Zone {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for bucket, ago := range map[Bucket]time.Duration{Minute: 50 * time.Hour, Quarter: 62 * day, Hour: 62 * day} {
		q := Query{From: now.Add(-ago), To: now.Add(-ago + time.Hour), Bucket: bucket}
		_, err := b.reports().Report(t.Context(), tenant, q)
		if f := fault.Of(err); f == nil || len(f.Fields) != 1 || f.Fields[0].Code != "not_kept" {
			t.Errorf("buckets of %s that are gone: %v", bucket, err)
		}
		q.From, q.To = now.Add(-40*time.Hour), now.Add(-39*time.Hour)
		if _, err := b.reports().Report(t.Context(), tenant, q); err != nil {
			t.Errorf("buckets of %s that are kept: %v", bucket, err)
		}
	}
}
