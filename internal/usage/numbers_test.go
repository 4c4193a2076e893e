package usage

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNumbersAreASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var n numbers
		plain := map[int64]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "adds") {
			first := rapid.Int64Range(1, 60).Draw(t, "first")
			last := first + rapid.Int64Range(-1, 12).Draw(t, "length")
			n.add(first, last)
			for i := first; i <= last; i++ {
				plain[i] = true
			}
		}
		for i := range int64(80) {
			if n.has(i) != plain[i] {
				t.Fatalf("has(%d) is %v in %v", i, n.has(i), n)
			}
			after := i
			for plain[after] {
				after++
			}
			if n.after(i) != after {
				t.Fatalf("after(%d) is %d, want %d, in %v", i, n.after(i), after, n)
			}
		}
		for i := 1; i < len(n); i++ {
			if n[i].first <= n[i-1].last+1 {
				t.Fatalf("spans touch: %v", n)
			}
		}
	})
}
