package billing

import (
	"strings"
	"testing"

	"weir/internal/limits"
)

func limit(d limits.Dimension, w limits.Window, amount int64) limits.Limit {
	return limits.Default(limits.Limit{Dimension: d, Window: w, Amount: amount})
}

func each(l limits.Limit) limits.Limit {
	l.Scope.Kind = limits.ScopeEndUser
	return l
}

func TestTheSentenceSaysTheLimits(t *testing.T) {
	rpm, tpm := limit(limits.DimensionRequests, limits.WindowMinute, 500), limit(limits.DimensionTokens, limits.WindowMinute, 200_000)
	for want, list := range map[string][]limits.Limit{
		"No limits": nil,
		"500 requests and 200,000 tokens a minute":                               {tpm, rpm},
		"500 requests and 200,000 tokens a minute, up to 5 million tokens a day": {rpm, tpm, limit(limits.DimensionTokens, limits.WindowDay, 5_000_000)},
		"2.5 million tokens a day":                                               {limit(limits.DimensionTokens, limits.WindowDay, 2_500_000)},
		"2,550,001 tokens a day":                                                 {limit(limits.DimensionTokens, limits.WindowDay, 2_550_001)},
		"1 request a minute":                                                     {limit(limits.DimensionRequests, limits.WindowMinute, 1)},
		"no requests a day":                                                      {limit(limits.DimensionRequests, limits.WindowDay, 0)},
		"3 billion tokens a month":                                               {limit(limits.DimensionTokens, limits.WindowMonth, 3_000_000_000)},
		"a spend of 12.50 a day":                                                 {limit(limits.DimensionSpend, limits.WindowDay, 12_500_000)},
		"7 requests in any 24 hours":                                             {limit(limits.DimensionRequests, limits.WindowRollingDay, 7)},
		"500 requests a minute, 10 requests at once":                             {rpm, limit(limits.DimensionConcurrency, limits.WindowNone, 10)},
		"500 requests a minute; each end user 20 requests a minute, up to 100 requests a day": {
			each(limit(limits.DimensionRequests, limits.WindowDay, 100)), rpm, each(limit(limits.DimensionRequests, limits.WindowMinute, 20)),
		},
		"Each end user 1 request at once": {each(limit(limits.DimensionConcurrency, limits.WindowNone, 1))},
	} {
		if got := Sentence(list); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheFinePrintStatesTheMostInSixtySeconds(t *testing.T) {
	all := strings.Join(FinePrint([]limits.Limit{limit(limits.DimensionRequests, limits.WindowMinute, 500), limit(limits.DimensionTokens, limits.WindowDay, 1000)}, false, "Asia/Tokyo"), "\n")
	for _, want := range []string{"at most 999 can pass in any 60 seconds", "beginning of each calendar day in Asia/Tokyo", "counts from the moment it holds, from 0", "five minutes"} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
}

func TestTheFinePrintSaysWhatHoldsForEachEndUser(t *testing.T) {
	all := strings.Join(FinePrint([]limits.Limit{limit(limits.DimensionRequests, limits.WindowMinute, 500), each(limit(limits.DimensionRequests, limits.WindowMinute, 20))}, false, "UTC"), "\n")
	for _, want := range []string{"500 requests a minute refill", "20 requests of each end user a minute refill", "calls that name nobody count together"} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
}

func TestTheFinePrintOfAPlanThatCapsAnswersSaysSo(t *testing.T) {
	for _, list := range [][]limits.Limit{nil, {limit(limits.DimensionSpend, limits.WindowMonth, 5_000_000)}} {
		for _, caps := range []bool{true, false} {
			all := strings.Join(FinePrint(list, caps, "UTC"), "\n")
			if strings.Contains(all, "a call that states no ceiling for it gets one") != caps {
				t.Errorf("capped %v: %s", caps, all)
			}
		}
	}
}
