package limits

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var keyScope = Scope{Kind: ScopeProviderKey, ID: uuid.MustParse("01900000-0000-7000-8000-000000000001"), Name: "main"}

func perMinute(amount int64, models ...string) Limit {
	return Default(Limit{Scope: keyScope, Dimension: DimensionRequests, Window: WindowMinute, Amount: amount, Models: models, Zone: "UTC"})
}

func learned(amount int64) []Learned {
	return []Learned{{Model: "m", Dimension: DimensionRequests, Window: WindowMinute, Amount: amount}}
}

// amounts are what a list admits, limit by limit.
func amounts(list []Limit) (out []int64) {
	for _, l := range list {
		out = append(out, l.Amount)
	}
	return out
}

func TestWhatIsLearnedTightensOrFillsAndNeverLoosens(t *testing.T) {
	for name, c := range map[string]struct {
		configured []Limit
		learned    int64
		model      string
		want       []int64
	}{
		"nothing is configured":                {nil, 60, "m", []int64{60}},
		"it is tighter":                        {[]Limit{perMinute(100)}, 60, "m", []int64{100, 60}},
		"it is looser":                         {[]Limit{perMinute(50)}, 60, "m", []int64{50}},
		"it is the same ledger":                {[]Limit{perMinute(100, "m")}, 60, "m", []int64{60}},
		"only a burst is beyond it":            {[]Limit{{Scope: keyScope, Dimension: DimensionRequests, Window: WindowMinute, Policy: PolicyBucket, Mode: ModeEnforce, Amount: 50, Burst: 90, Models: []string{"m"}}}, 60, "m", []int64{50}},
		"what is configured is for others":     {[]Limit{perMinute(50, "gpt*")}, 60, "m", []int64{50, 60}},
		"what is configured refuses nobody":    {[]Limit{{Scope: keyScope, Dimension: DimensionRequests, Window: WindowMinute, Policy: PolicyBucket, Mode: ModeShadow, Amount: 5}}, 60, "m", []int64{5, 60}},
		"another model learned it":             {nil, 60, "n", nil},
		"what is configured is of another day": {[]Limit{Default(Limit{Scope: keyScope, Dimension: DimensionRequests, Window: WindowDay, Amount: 5})}, 60, "m", []int64{5, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			got := WithLearned(c.configured, learned(c.learned), c.model, keyScope, Zones{Zone: "UTC"})
			if diff := cmp.Diff(c.want, amounts(got)); diff != "" {
				t.Error(diff)
			}
			if s := Compile(got); s.broken != nil {
				t.Error(s.broken)
			}
		})
	}
}

func TestALastStatementCountsAndZeroIsNone(t *testing.T) {
	say := func(amount int64) []Statement {
		return []Statement{{Dimension: DimensionRequests, Window: WindowMinute, Amount: amount, Left: -1, From: FromHeader}}
	}
	known := Learn(nil, "m", say(60), noon)
	if len(known) != 1 || known[0].Amount != 60 || known[0].LearnedAt != noon {
		t.Fatalf("learned %+v", known)
	}
	if got := Learn(known, "m", say(60), noon.Add(time.Minute)); got != nil {
		t.Errorf("the same again changes %+v", got)
	}
	if got := Learn(known, "m", say(60), noon.Add(2*time.Hour)); len(got) != 1 || got[0].LearnedAt != noon || got[0].SeenAt != noon.Add(2*time.Hour) {
		t.Errorf("two hours later: %+v", got)
	}
	if got := Learn(known, "m", say(500), noon.Add(time.Minute)); len(got) != 1 || got[0].Amount != 500 || got[0].LearnedAt != noon.Add(time.Minute) {
		t.Errorf("it does not fade: %+v", got)
	}
	for _, nonsense := range []int64{0, -1, maxBucket + 1} {
		if got := Learn(known, "m", say(nonsense), noon.Add(time.Minute)); got != nil {
			t.Errorf("%d is learned: %+v", nonsense, got)
		}
	}
	if got := Learn(nil, "m", []Statement{{Dimension: DimensionRequests, Window: WindowMonth, Amount: 5}}, noon); got != nil {
		t.Errorf("a window that nobody states: %+v", got)
	}
}

// TestNoCallPassesThatWhatIsConfiguredWouldRefuse: beside a configured limit,
// whatever was learned leaves the smallest amount that applies as it was or
// smaller, and everything that counts can be enforced.
func TestNoCallPassesThatWhatIsConfiguredWouldRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := [][]string{nil, {"m"}, {"m*"}, {"x"}}
		var configured []Limit
		for i, models := range patterns {
			if rapid.Bool().Draw(t, "configured") {
				l := perMinute(rapid.Int64Range(0, 100).Draw(t, "amount"), models...)
				l.EachModel = i == 2
				configured = append(configured, l)
			}
		}
		amount := rapid.Int64Range(1, 100).Draw(t, "learned")
		least := func(list []Limit) int64 {
			n := int64(1 << 40)
			for _, l := range list {
				if l.Applies("m") {
					n = min(n, l.Amount)
				}
			}
			return n
		}
		got := WithLearned(configured, learned(amount), "m", keyScope, Zones{Zone: "UTC"})
		if want := min(least(configured), amount); least(got) != want {
			t.Fatalf("%v and %d make %v", configured, amount, got)
		}
		names := map[string]bool{}
		for _, l := range got {
			if names[l.Ledger("m")] {
				t.Fatalf("two limits have the ledger %s", l.Ledger("m"))
			}
			names[l.Ledger("m")] = true
		}
	})
}
