package limits

import (
	"strings"
	"testing"
)

func TestOnlyCombinationsOfTheTableAreAccepted(t *testing.T) {
	accepted := map[string]bool{}
	for _, d := range []Dimension{DimensionRequests, DimensionTokens, DimensionInputTokens, DimensionOutputTokens, DimensionUnits} {
		for _, combination := range []string{"/minute/bucket", "/minute/sliding", "/rolling_day/sliding", "/day/calendar", "/month/calendar"} {
			accepted[string(d)+combination] = true
		}
	}
	accepted["concurrency/none/gauge"], accepted["spend/day/calendar"], accepted["spend/month/calendar"] = true, true, true
	for _, d := range []Dimension{DimensionRequests, DimensionTokens, DimensionInputTokens, DimensionOutputTokens, DimensionUnits, DimensionConcurrency, DimensionSpend, "megabytes"} {
		for _, w := range []Window{WindowMinute, WindowDay, WindowMonth, WindowRollingDay, WindowNone, "hour", ""} {
			for _, p := range []Policy{PolicyBucket, PolicySliding, PolicyCalendar, PolicyGauge, "leaky"} {
				name := strings.Join([]string{string(d), string(w), string(p)}, "/")
				wrong := Check([]Limit{{Dimension: d, Window: w, Policy: p, Amount: 1}})
				if (len(wrong) == 0) != accepted[name] {
					t.Errorf("%s: %v", name, wrong)
				}
			}
		}
	}
}

func TestCheckNamesTheMemberAndTheReason(t *testing.T) {
	minute := func(change func(*Limit)) Limit {
		l := Limit{Dimension: DimensionTokens, Window: WindowMinute, Amount: 100}
		change(&l)
		return l
	}
	day := func(change func(*Limit)) Limit {
		l := Limit{Dimension: DimensionTokens, Window: WindowDay, Amount: 100}
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		limit Limit
		want  string // pointer and code; empty: nothing is wrong
	}{
		"zero is a limit":          {minute(func(l *Limit) { l.Amount = 0 }), ""},
		"largest bucket":           {minute(func(l *Limit) { l.Amount = 10_000_000_000 }), ""},
		"larger bucket":            {minute(func(l *Limit) { l.Amount = 10_000_000_001 }), "/limits/0/amount out_of_range"},
		"largest day":              {day(func(l *Limit) { l.Amount = 1_000_000_000_000_000 }), ""},
		"larger day":               {day(func(l *Limit) { l.Amount = 1_000_000_000_000_001 }), "/limits/0/amount out_of_range"},
		"negative":                 {minute(func(l *Limit) { l.Amount = -1 }), "/limits/0/amount out_of_range"},
		"burst":                    {minute(func(l *Limit) { l.Burst = 100 }), ""},
		"burst below amount":       {minute(func(l *Limit) { l.Burst = 99 }), "/limits/0/burst out_of_range"},
		"burst of a year":          {minute(func(l *Limit) { l.Amount, l.Burst = 1, 525_600 }), ""},
		"burst of centuries":       {minute(func(l *Limit) { l.Amount, l.Burst = 1, 525_601 }), "/limits/0/burst out_of_range"},
		"burst of a day":           {day(func(l *Limit) { l.Burst = 100 }), "/limits/0/burst not_allowed"},
		"burst of nothing":         {minute(func(l *Limit) { l.Amount, l.Burst = 0, 5 }), "/limits/0/burst not_allowed"},
		"sliding":                  {minute(func(l *Limit) { l.Policy = PolicySliding }), ""},
		"rolling day":              {minute(func(l *Limit) { l.Window = WindowRollingDay }), ""},
		"spend":                    {day(func(l *Limit) { l.Dimension = DimensionSpend }), ""},
		"shadow":                   {minute(func(l *Limit) { l.Mode = ModeShadow }), ""},
		"unknown mode":             {minute(func(l *Limit) { l.Mode = "warn" }), "/limits/0/mode unknown_value"},
		"unknown outage":           {minute(func(l *Limit) { l.Outage = "panic" }), "/limits/0/outage unknown_value"},
		"unknown window":           {minute(func(l *Limit) { l.Window = "hour" }), "/limits/0/window unknown_value"},
		"concurrency a day":        {day(func(l *Limit) { l.Dimension = DimensionConcurrency }), "/limits/0/window not_allowed"},
		"bucket a day":             {day(func(l *Limit) { l.Policy = PolicyBucket }), "/limits/0/policy not_allowed"},
		"zone":                     {day(func(l *Limit) { l.Zone = "Asia/Tokyo" }), ""},
		"no zone":                  {day(func(l *Limit) { l.Zone = "Mars/Olympus" }), "/limits/0/zone unknown_zone"},
		"machine zone":             {day(func(l *Limit) { l.Zone = "Local" }), "/limits/0/zone unknown_zone"},
		"zone outside":             {day(func(l *Limit) { l.Zone = "../../etc/passwd" }), "/limits/0/zone unknown_zone"},
		"zone of a minute":         {minute(func(l *Limit) { l.Zone = "UTC" }), "/limits/0/zone not_allowed"},
		"weights":                  {minute(func(l *Limit) { l.Weights = map[Class]int64{ClassCachedInput: 0} }), ""},
		"weight of another class":  {minute(func(l *Limit) { l.Weights = map[Class]int64{"audio": 1} }), "/limits/0/weights/audio not_allowed"},
		"weight of another member": {day(func(l *Limit) { l.Dimension, l.Weights = DimensionOutputTokens, map[Class]int64{ClassInput: 1} }), "/limits/0/weights/input not_allowed"},
		"weight below zero":        {minute(func(l *Limit) { l.Weights = map[Class]int64{ClassInput: -1} }), "/limits/0/weights/input out_of_range"},
		"patterns":                 {minute(func(l *Limit) { l.Models, l.EachModel = []string{"gpt-4o*", "meta/llama-3:free"}, true }), ""},
		"empty pattern":            {minute(func(l *Limit) { l.Models = []string{"a", ""} }), "/limits/0/models/1 invalid_pattern"},
		"two patterns in one":      {minute(func(l *Limit) { l.Models = []string{"a,b"} }), "/limits/0/models/0 invalid_pattern"},
		"same pattern":             {minute(func(l *Limit) { l.Models = []string{"a", "a"} }), "/limits/0/models/1 duplicate"},
		"unknown scope":            {minute(func(l *Limit) { l.Scope.Kind = "planet" }), "/limits/0/scope unknown_value"},
	} {
		got := ""
		for _, f := range Check([]Limit{c.limit}) {
			got += f.Pointer + " " + f.Code
			if f.Message == "" {
				t.Errorf("%s: no message", name)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTwoLimitsOfOneSetNeverShareALedger(t *testing.T) {
	l := Limit{Dimension: DimensionTokens, Window: WindowMinute, Amount: 1, Models: []string{"a", "b"}}
	twin, day := l, l
	twin.Models, twin.Amount, twin.EachModel = []string{"b", "a"}, 2, true
	day.Window = WindowDay
	wrong := Check([]Limit{l, day, twin})
	if len(wrong) != 1 || wrong[0].Pointer != "/limits/2" || wrong[0].Code != "duplicate" || !strings.Contains(wrong[0].Message, "Limit 1") {
		t.Fatalf("%v", wrong)
	}
	if wrong := Check(make([]Limit, maxLimits+1)); len(wrong) != 1 || wrong[0].Code != "too_many" {
		t.Fatalf("%v", wrong)
	}
}
