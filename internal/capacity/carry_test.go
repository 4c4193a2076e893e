package capacity

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"weir/internal/limits"
)

// most tries every way to share calls between sources: the plain meaning of what
// they carry together.
func most(list []source, pools map[uuid.UUID]int64) int64 {
	if len(list) == 0 {
		return 0
	}
	s, best := list[0], int64(0)
	for n := int64(0); n <= s.own && (s.pool != uuid.Nil || n <= s.shared); n++ {
		left := map[uuid.UUID]int64{}
		for id, v := range pools {
			left[id] = v
		}
		if s.pool != uuid.Nil {
			if left[s.pool] < n {
				break
			}
			left[s.pool] -= n
		}
		best = max(best, n+most(list[1:], left))
	}
	return best
}

func TestWhatKeysCarryIsTheMostThatAnySharingOfCallsPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []uuid.UUID{uuid.Nil, {1}, {2}}
		pools := map[uuid.UUID]int64{ids[1]: rapid.Int64Range(0, 5).Draw(t, "pool 1"), ids[2]: rapid.Int64Range(0, 5).Draw(t, "pool 2")}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) source {
			s := source{pool: rapid.SampledFrom(ids).Draw(t, "pool"), own: rapid.Int64Range(0, 4).Draw(t, "own"), shared: Unlimited}
			if s.pool != uuid.Nil {
				s.shared = pools[s.pool]
			}
			return s
		}), 0, 5).Draw(t, "keys")
		if got, want := carry(list), most(list, pools); got != want {
			t.Fatalf("%d, by trying %d", got, want)
		}
	})
}

func TestAKeyWithoutALimitCarriesWithoutEndUnlessItsPoolHasOne(t *testing.T) {
	pool := uuid.UUID{1}
	for want, list := range map[int64][]source{
		Unlimited: {{own: Unlimited, shared: Unlimited}, {own: 3, shared: Unlimited}},
		7:         {{pool: pool, own: Unlimited, shared: 7}, {pool: pool, own: Unlimited, shared: 7}},
		0:         nil,
	} {
		if got := carry(list); got != want {
			t.Errorf("%+v: %d, want %d", list, got, want)
		}
	}
}

func TestOfLimitsTheTightestThatAppliesToTheModelIsAllowed(t *testing.T) {
	l := func(d limits.Dimension, w limits.Window, n int64, models ...string) limits.Limit {
		return limits.Default(limits.Limit{Dimension: d, Window: w, Amount: n, Models: models})
	}
	shadow := l(limits.DimensionTokens, limits.WindowMinute, 1)
	shadow.Mode = limits.ModeShadow
	each := l(limits.DimensionTokens, limits.WindowMinute, 1)
	each.Scope.Kind = limits.ScopeEndUser
	list := []limits.Limit{
		l(limits.DimensionTokens, limits.WindowMinute, 100), l(limits.DimensionTokens, limits.WindowMinute, 40, "big*"), shadow, each,
		l(limits.DimensionInputTokens, limits.WindowMinute, 20, "split"), l(limits.DimensionOutputTokens, limits.WindowMinute, 30, "split"),
		l(limits.DimensionTokens, limits.WindowDay, 50_000, "big*"),
	}
	minute, day := Counted{limits.DimensionTokens, limits.WindowMinute}, Counted{limits.DimensionTokens, limits.WindowDay}
	for _, c := range []struct {
		model string
		of    Counted
		want  int64
	}{
		{"small", minute, 100},
		{"big-1", minute, 40},
		{"split", minute, 50},
		{"big-1", day, 50_000},
		{"small", day, 144_000},
		{"small", Counted{limits.DimensionRequests, limits.WindowDay}, Unlimited},
	} {
		if got := allowed(list, c.model, c.of); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.model, c.of.Words(), got, c.want)
		}
	}
}

func TestARatioIsRoundedUpAndReadsAsAFactor(t *testing.T) {
	for _, c := range []struct {
		sold, carried, percent int64
		words                  string
	}{
		{1_880_000, 450_000, 418, "4.18 times"},
		{450, 100, 450, "4.5 times"},
		{1, 1000, 1, "0.01 times"},
		{0, 0, 0, "0 times"},
		{1, 0, Unlimited, "without end more than"},
		{Unlimited, 5, Unlimited, "without end more than"},
		{400, 100, 400, "4 times"},
		{92e15, 30e15, 307, "3.07 times"},
		{Unlimited - 1, Unlimited - 1, 100, "1 times"},
		{Unlimited - 1, 1, Unlimited, "without end more than"},
		{1, Unlimited - 1, 1, "0.01 times"},
	} {
		if got := percentOf(c.sold, c.carried); got != c.percent || Times(got) != c.words {
			t.Errorf("%d of %d: %d, %q", c.sold, c.carried, got, Times(got))
		}
	}
}
