package cache

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNothingIsServedThatWasChangedMoreThanASecondAgo tries histories of
// changes, looks at them, lookups, pauses, outages and lost positions. While
// the database answers, a lookup is as of a second ago or later; while it is
// out, as of five minutes ago, and never as of before a change that is known.
func TestNothingIsServedThatWasChangedMoreThanASecondAgo(t *testing.T) {
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		s, h, c := followed(2)
		type version struct {
			at time.Time
			n  int
		}
		history := map[string][]version{"a": {{}}, "b": {{}}, "c": {{}}}
		known := map[string]int{} // what a look has dropped: nothing older may come back
		var pending []string
		since := false // a position that changes are followed from
		asOf := func(k string, at time.Time) (n int) {
			for _, v := range history[k] {
				if !v.at.After(at) {
					n = v.n
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				if s.out {
					return
				}
				k := keys.Draw(t, "key")
				s.value[k]++
				history[k] = append(history[k], version{s.now, s.value[k]})
				pending = append(pending, k)
			},
			"look": func(t *rapid.T) {
				switch {
				case s.out:
				case !since || rapid.IntRange(0, 9).Draw(t, "lost") == 0:
					h.Restart(s.now, s.now)
					since, pending = true, nil
				default:
					for _, k := range pending {
						c.Drop(k)
						known[k] = s.value[k]
					}
					pending = nil
					h.Confirm(s.now)
				}
			},
			"pause": func(t *rapid.T) {
				s.advance(time.Duration(rapid.SampledFrom([]int{1, 10, 240, 999, 1000, 30_000, 299_000, 4_000_000}).Draw(t, "ms")) * time.Millisecond)
			},
			"outage": func(t *rapid.T) {
				s.out = !s.out
			},
			"get": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				v, err := c.Get(t.Context(), k)
				if err != nil {
					if !s.out {
						t.Fatalf("%s: %v", k, err)
					}
					return
				}
				oldest := s.now.Add(-time.Second)
				if s.out {
					oldest = s.now.Add(-5 * time.Minute)
				}
				if least := max(asOf(k, oldest), known[k]); v < least {
					t.Fatalf("%s is %d, and was %d already", k, v, least)
				}
			},
		})
	})
}
