package billing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/limits"
)

// readBack reads a sentence as a customer would, without the code that writes
// one: which limits does it state?
func readBack(sentence string) (out []limits.Limit, err error) {
	if sentence == "No limits" {
		return nil, nil
	}
	together, each, found := strings.Cut(sentence, "; each end user ")
	if rest, alone := strings.CutPrefix(sentence, "Each end user "); alone {
		together, each, found = "", rest, true
	}
	for i, clause := range []string{together, each} {
		if i == 0 && together == "" || i == 1 && !found {
			continue
		}
		list, err := readClause(clause)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			if i == 1 {
				l.Scope.Kind = limits.ScopeEndUser
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// windowWords are how a window ends its part of a sentence.
var windowWords = []struct {
	words  string
	window limits.Window
}{{" in any 24 hours", limits.WindowRollingDay}, {" a minute", limits.WindowMinute}, {" a day", limits.WindowDay}, {" a month", limits.WindowMonth}}

// readClause takes the parts from the end, where each says its window.
func readClause(clause string) (out []limits.Limit, err error) {
	window := limits.WindowNone
	words := strings.Split(clause, ", ")
	for i := len(words) - 1; i >= 0; i-- {
		part := strings.TrimPrefix(words[i], "up to ")
		for _, w := range windowWords {
			if rest, ok := strings.CutSuffix(part, w.words); ok {
				part, window = rest, w.window
			}
		}
		for _, one := range strings.Split(part, " and ") {
			l, err := readOne(one, window)
			if err != nil {
				return nil, fmt.Errorf("%q of %q: %w", one, clause, err)
			}
			out = append(out, l)
		}
	}
	return out, nil
}

func readOne(text string, w limits.Window) (limits.Limit, error) {
	if spent, ok := strings.CutPrefix(text, "a spend of "); ok {
		whole, frac, _ := strings.Cut(spent, ".")
		n, err := strconv.ParseInt(strings.ReplaceAll(whole, ",", "")+frac+strings.Repeat("0", 6-len(frac)), 10, 64)
		return limits.Limit{Dimension: limits.DimensionSpend, Window: w, Amount: n}, err
	}
	number, noun, _ := strings.Cut(text, " ")
	scale := int64(1)
	for word, by := range map[string]int64{"million ": 1_000_000, "billion ": 1_000_000_000} {
		if rest, ok := strings.CutPrefix(noun, word); ok {
			noun, scale = rest, by
		}
	}
	whole, tenth, _ := strings.Cut(strings.ReplaceAll(number, ",", ""), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if number == "no" {
		n, err = 0, nil
	}
	if err != nil {
		return limits.Limit{}, err
	}
	n *= scale
	if tenth != "" {
		n += int64(tenth[0]-'0') * scale / 10
	}
	for _, d := range order {
		if noun == noun1(d) || noun == noun2(d) {
			if d == limits.DimensionConcurrency {
				w = limits.WindowNone
			}
			return limits.Limit{Dimension: d, Window: w, Amount: n}, nil
		}
	}
	return limits.Limit{}, fmt.Errorf("counts %q", noun)
}

func noun1(d limits.Dimension) string { return noun(d, 1) }
func noun2(d limits.Dimension) string { return noun(d, 2) }

// drawLimits are any set that a plan can have for all its models: one limit of
// each dimension, window and whom it holds for.
func drawLimits(t *rapid.T) []limits.Limit {
	var all []limits.Limit
	for _, each := range []bool{false, true} {
		for _, d := range order {
			windows := []limits.Window{limits.WindowMinute, limits.WindowDay, limits.WindowRollingDay, limits.WindowMonth}
			if d == limits.DimensionConcurrency {
				windows = []limits.Window{limits.WindowNone}
			}
			for _, w := range windows {
				amounts := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 2_000_000), rapid.Custom(func(t *rapid.T) int64 { return 100_000 * rapid.Int64Range(1, 90_000).Draw(t, "hundred thousands") }))
				l := limits.Default(limits.Limit{Dimension: d, Window: w, Amount: amounts.Draw(t, "amount")})
				if each {
					l.Scope.Kind = limits.ScopeEndUser
				}
				all = append(all, l)
			}
		}
	}
	chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, len(all)-1), 0, 12, func(i int) int { return i }).Draw(t, "which")
	out := make([]limits.Limit, len(chosen))
	for i, at := range chosen {
		out[i] = all[at]
	}
	return out
}

func TestASentenceReadBackStatesTheSameLimitsAndSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawLimits(t)
		said := Sentence(list)
		back, err := readBack(said)
		if err != nil {
			t.Fatalf("%q cannot be read: %v", said, err)
		}
		for i := range back {
			back[i] = limits.Default(back[i])
		}
		if again := Sentence(back); again != said {
			t.Fatalf("%q reads back as %q", said, again)
		}
		if a, b := stated(list), stated(back); !slices.Equal(a, b) {
			t.Fatalf("%q\nstates %v\nof     %v", said, b, a)
		}
	})
}

func stated(list []limits.Limit) (out []string) {
	for _, l := range list {
		out = append(out, fmt.Sprint(l.Dimension, " ", l.Window, " ", l.EachEndUser(), " ", l.Amount))
	}
	slices.Sort(out)
	return out
}
