package limits

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func FuzzPatternsMatchAsTheirExpressionWould(f *testing.F) {
	for _, s := range [][2]string{{"gpt-4o*", "gpt-4o-mini"}, {"*", ""}, {"a*b*a", "aba"}, {"a*a", "a"}, {"*ab", "aab"}, {"a**b", "ab"}, {"", "x"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, model string) {
		pieces := strings.Split(strings.ToValidUTF8(pattern, ""), "*")
		for i := range pieces {
			pieces[i] = regexp.QuoteMeta(pieces[i])
		}
		model = strings.ToValidUTF8(model, "")
		want := regexp.MustCompile(`(?s)\A` + strings.Join(pieces, ".*") + `\z`).MatchString(model)
		if got := matches(strings.ToValidUTF8(pattern, ""), model); got != want {
			t.Fatalf("%q on %q: %v", pattern, model, got)
		}
	})
}

func TestALedgerIsNamedByWhatNeverChanges(t *testing.T) {
	u := uuid.MustParse("01890000-0000-7000-8000-000000000001")
	l := Limit{Scope: Scope{ScopeCustomer, u, "Acme"}, Dimension: DimensionTokens, Window: WindowDay, Policy: PolicyCalendar, Amount: 5}
	want := "customer:" + u.String() + "/tokens/day"
	if got := l.Ledger("gpt-4o"); got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	other := l
	other.ID, other.Scope.Name, other.Amount, other.Zone, other.Policy = u, "Other", 7, "Asia/Tokyo", PolicySliding
	if other.Ledger("o1") != want {
		t.Fatalf("%q changed with what may change", other.Ledger("o1"))
	}
	l.Models = []string{"o1", "gpt-4o*"}
	other.Models = []string{"gpt-4o*", "o1"}
	if l.Ledger("o1") != want+"/gpt-4o*,o1" || other.Ledger("o1") != l.Ledger("gpt-4o") {
		t.Fatalf("%q and %q", l.Ledger("o1"), other.Ledger("o1"))
	}
	l.EachModel = true
	if l.Ledger("o1") == l.Ledger("gpt-4o") || l.Ledger("o1") == other.Ledger("o1") {
		t.Fatalf("%q is shared", l.Ledger("o1"))
	}
}

func TestTheMostInAMinuteIsWhatTheBucketLetsThrough(t *testing.T) {
	for _, c := range []struct{ amount, burst, want int64 }{{500, 0, 999}, {500, 1000, 1499}, {1, 0, 1}, {0, 0, 0}, {60_000, 0, 119_999}, {maxBucket, 0, 2*maxBucket - 166_667}} {
		l := Default(Limit{Dimension: DimensionRequests, Window: WindowMinute, Amount: c.amount, Burst: c.burst})
		if n, ok := l.MaxIn60s(); !ok || n != c.want {
			t.Errorf("%d, burst %d: %d, want %d", c.amount, c.burst, n, c.want)
		}
	}
	if _, ok := Default(Limit{Window: WindowDay}).MaxIn60s(); ok {
		t.Error("a day prints a bound for a minute")
	}
}

func TestLabelsReadAsASentenceWould(t *testing.T) {
	for l, want := range map[*Limit]string{
		{Dimension: DimensionInputTokens, Window: WindowMinute}: "input tokens per minute",
		{Dimension: DimensionRequests, Window: WindowDay}:       "requests per day",
		{Dimension: DimensionConcurrency, Window: WindowNone}:   "concurrent requests",
	} {
		if got := l.Label(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAReservationSurvivesItsWayThroughJSON(t *testing.T) {
	r := Reservation{
		ID: uuid.New(), Model: "m", At: firstYear, ExpiresAt: lastYear, Estimate: Cost{Requests: 1, Tokens: Tokens{Input: 3}},
		Holds: []Hold{{
			Limit:  Default(Limit{Scope: Scope{ScopePool, uuid.New(), "p"}, Dimension: DimensionTokens, Window: WindowDay, Amount: 1, Weights: map[Class]int64{ClassInput: 5}, Models: []string{"a*"}}),
			Ledger: "l", Amount: 4, WindowStart: firstYear, WindowEnd: lastYear, Candidate: true,
		}},
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Reservation
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Fatal(diff)
	}
}
