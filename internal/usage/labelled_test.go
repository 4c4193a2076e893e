package usage

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/money"
)

// labelledCalls are n calls over three hours of as many kinds as there are, of
// more end users than a report tells apart.
func labelledCalls(tenant uuid.UUID, from time.Time, n int) []Event {
	var out []Event
	for i := range n {
		at := from.Add(time.Duration(i) * 3 * time.Hour / time.Duration(n))
		e := call(tenant, at)
		if i%7 == 0 {
			e = refusal(tenant, at)
		}
		e.Tokens.Input, e.Charge = int64(i), money.FromInt(int64(i)*1_000_003)
		e.Test, e.ModelAsked = i%11 == 0, []string{"gpt-4o", "o4-mini"}[i%2]
		if i%5 == 0 {
			e.Cost, e.CostCurrency = nil, ""
		}
		if i%3 != 0 {
			e.EndUser = fmt.Sprintf("user-%03d", i%(mostLabels+50))
		}
		if i%4 != 0 {
			e.Tags = map[string]string{"team": []string{"red", "blue", "green"}[i%3], "build": fmt.Sprint(i)}
		}
		if i%13 == 0 && e.Outcome == OK {
			e.Outcome = ProviderError
		}
		out = append(out, e)
	}
	return out
}

func TestSumsByEndUserAndByTagAreThoseOfTheRollups(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	from := time.Now().Truncate(time.Hour).Add(-4 * time.Hour)
	b.ingest(s.run(t, labelledCalls(tenant, from, 400)...))
	for _, bucket := range []Bucket{Quarter, Hour, Day} {
		for _, f := range []Filter{{}, {Tests: WithTests}, {Model: "o4-mini", Tests: WithTests}, {Outcome: "refused"}, {Outcome: OK}} {
			q := Query{From: from, To: from.Add(3 * time.Hour), Bucket: bucket, Filter: f}
			want := b.report(tenant, q)
			if want.Totals.Quiet() || f.Outcome == OK && want.Totals.Unpriced == 0 {
				t.Fatalf("%v proves nothing: %+v", f, want.Totals)
			}
			for _, by := range []GroupBy{ByEndUser, ByTag("team"), ByTag("build"), ByTag("none")} {
				q.GroupBy = by
				got := b.report(tenant, q)
				if diff := cmp.Diff(want.Totals, got.Totals, exactMoney); diff != "" {
					t.Errorf("%s by %s, %v: %s", bucket, by, f, diff)
				}
				if diff := cmp.Diff(perBucket(want), perBucket(got), exactMoney); diff != "" {
					t.Errorf("%s by %s, %v: %s", bucket, by, f, diff)
				}
			}
		}
	}
}

// perBucket adds the rows of each bucket up.
func perBucket(rep Report) map[time.Time]Sums {
	out := map[time.Time]Sums{}
	for _, r := range rep.Rows {
		s := out[r.Start]
		s.Add(r.Sums)
		out[r.Start] = s
	}
	return out
}

func TestAReportByEndUserTellsTheLargestApartAndSumsTheOthers(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	from := time.Now().Truncate(time.Hour).Add(-4 * time.Hour)
	b.ingest(s.run(t, labelledCalls(tenant, from, 400)...))
	rep := b.report(tenant, Query{From: from, To: from.Add(3 * time.Hour), Bucket: Day, GroupBy: ByEndUser, Filter: Filter{Tests: WithTests}})
	groups := map[Group]int64{}
	for _, r := range rep.Rows {
		groups[r.Group] += r.Tokens.Total()
	}
	rest, others := groups[Group{Rest: true}]
	if len(groups) != mostLabels+1 || !others || rest == 0 {
		t.Fatalf("%d groups, the others %v with %d tokens", len(groups), others, rest)
	}
	if rep.Rows[len(rep.Rows)-1].Group != (Group{Rest: true}) {
		t.Error("the others are not last")
	}
	red := b.report(tenant, Query{From: from, To: from.Add(3 * time.Hour), Bucket: Day, GroupBy: ByModel, Filter: Filter{Tests: WithTests, Tag: Tag{"team", "red"}}}).Totals
	byTeam := b.report(tenant, Query{From: from, To: from.Add(3 * time.Hour), Bucket: Day, GroupBy: ByTag("team"), Filter: Filter{Tests: WithTests}})
	var reds Sums // of each day: three hours may have two
	for _, r := range byTeam.Rows {
		if r.Group.Name == "red" {
			reds.Add(r.Sums)
		}
	}
	if diff := cmp.Diff(red, reds, exactMoney); diff != "" {
		t.Error(diff)
	}
	one := b.report(tenant, Query{From: from, To: from.Add(3 * time.Hour), Bucket: Day, Filter: Filter{Tests: WithTests, EndUser: "user-001"}}).Totals
	if one.Requests+one.Refused != 3 { // the calls 1, 151 and 301
		t.Errorf("one end user has %d calls", one.Requests+one.Refused)
	}
	names, err := b.reports().TagNames(t.Context(), tenant, from, from.Add(3*time.Hour))
	must(t, err)
	if diff := cmp.Diff([]string{"build", "team"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCallsWithoutAPriceAreCountedAndNoCurrencyIsMixed(t *testing.T) {
	t.Parallel()
	b, s, tenant := newBooks(t), newSource(), id.New()
	at := time.Now().Truncate(time.Hour).Add(-time.Hour)
	priced, unpriced, foreign, practice := call(tenant, at), call(tenant, at), call(tenant, at), call(tenant, at)
	unpriced.Cost, unpriced.CostCurrency = nil, ""
	foreign.CostCurrency = "EUR"
	practice.Test, practice.Cost, practice.CostCurrency, practice.Charge = true, nil, "", money.Pico{}
	b.ingest(s.run(t, priced, unpriced, foreign, practice))
	got := b.report(tenant, Query{From: at, To: at.Add(time.Hour), Bucket: Hour, Filter: Filter{Tests: WithTests}}).Totals
	if got.Unpriced != 1 {
		t.Errorf("%d without a price", got.Unpriced)
	}
	if diff := cmp.Diff([]Money{{"EUR", money.FromInt(-30)}, {"USD", money.FromInt(120)}}, got.Margins(), exactMoney); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Money{{"USD", money.FromInt(150)}}, got.Charges, exactMoney); diff != "" {
		t.Errorf("the charges changed: %s", diff)
	}
}

func TestAReportIsCompleteUntilTheOldestCallThatIsOpen(t *testing.T) {
	t.Parallel()
	b, tenant := newBooks(t), id.New()
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := NewReports(b.App, func() time.Time { return now })
	until := func() time.Duration {
		rep, err := r.Report(t.Context(), tenant, Query{From: now.Add(-time.Hour), To: now, Bucket: Hour})
		must(t, err)
		if rep.CompleteUntil.After(rep.AsOf) {
			t.Fatalf("complete until %v, as of %v", rep.CompleteUntil, rep.AsOf)
		}
		return now.Sub(rep.CompleteUntil)
	}
	put := func(stopped, open string) {
		owner(t, b.Database, `insert into instances (instance_id, host, started_at, seen_at, fresh_at, stopped_at, oldest_open)
			values (gen_random_uuid(), 'h', now(), now(), timestamptz '`+now.Format(time.RFC3339Nano)+`' - interval '2 seconds', `+stopped+`, `+open+`)`)
	}
	at := func(ago time.Duration) string { return "timestamptz '" + now.Add(-ago).Format(time.RFC3339Nano) + "'" }
	if got := until(); got != 0 {
		t.Fatalf("without instances: %v", got)
	}
	put("now()", at(time.Hour))
	if got := until(); got != 0 {
		t.Fatalf("with one that stopped: %v", got)
	}
	put("null", "null")
	if got := until(); got != 2*time.Second+writing {
		t.Fatalf("with nothing open: %v", got)
	}
	put("null", at(40*time.Second))
	if got := until(); got != 40*time.Second {
		t.Fatalf("with a call of 40 seconds: %v", got)
	}
}
