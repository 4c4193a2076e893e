package billing

import (
	"slices"
	"strings"

	"weir/internal/limits"
)

// Meaning is one limit in words: what it says in the sentence, and what that
// means.
type Meaning struct{ Title, Text string }

// Meanings explain each limit of a plan, for a tenant whose days end in zone.
// FinePrint says the same, with what holds for all of them.
func Meanings(list []limits.Limit, zone string) (out []Meaning) {
	for _, l := range list {
		text := strings.Join(fine(l, zone), " ")
		if text == "" {
			continue
		}
		out = append(out, Meaning{title(l), strings.ToUpper(text[:1]) + text[1:]})
	}
	return out
}

func title(l limits.Limit) string {
	words := quantity(l)
	switch l.Window {
	case limits.WindowMinute:
		words += " a minute"
	case limits.WindowDay:
		words += " a day"
	case limits.WindowRollingDay:
		words += " in any 24 hours"
	case limits.WindowMonth:
		words += " a month"
	}
	if len(l.Models) > 0 {
		words += ", " + strings.Join(l.Models, ", ")
	}
	if l.EachModel {
		words += ", each model"
	}
	if l.EachEndUser() {
		words += ", each end user"
	}
	return words
}

// Common is what FinePrint says beside the meaning of each limit.
func Common(list []limits.Limit, capOutput bool, zone string) (out []string) {
	var own []string
	for _, l := range list {
		own = append(own, fine(l, zone)...)
	}
	for _, line := range FinePrint(list, capOutput, zone) {
		if i := slices.Index(own, line); i >= 0 {
			own = slices.Delete(own, i, i+1)
			continue
		}
		out = append(out, line)
	}
	return out
}
