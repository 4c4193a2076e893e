// Package ui is what pages are made of: components that know words, numbers and
// instants, and nothing of what Weir is about.
package ui

import (
	"strconv"
	"strings"
	"time"
)

// Count writes a whole number with thousands apart: 1,234,567.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Of is a count with its noun: "1 request", "2,000 requests".
func Of(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Short writes a number of at most four characters and a unit where it would
// be long otherwise: 126.2 M. It rounds towards zero, so that it never claims
// what was not reached.
func Short(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}} {
		if n >= u.size {
			tenths := n / (u.size / 10)
			return Count(tenths/10) + "." + strconv.FormatInt(tenths%10, 10) + " " + u.name
		}
	}
	return Count(n)
}

// Amount shortens an exact decimal amount for reading: two decimals from 1 up,
// else two digits that are not 0, cut off and never rounded up. "0.007475"
// becomes "0.0074".
func Amount(exact string) string {
	exact, minus := strings.CutPrefix(exact, "-")
	if minus {
		return "−" + Amount(exact)
	}
	whole, frac, ok := strings.Cut(exact, ".")
	if !ok {
		return exact
	}
	keep := 2
	if strings.Trim(whole, "0") == "" {
		zeros := len(frac) - len(strings.TrimLeft(frac, "0"))
		if zeros < len(frac) {
			keep = max(2, zeros+2)
		}
	}
	return grouped(whole) + "." + frac[:min(keep, len(frac))]
}

func grouped(whole string) string {
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n == 0 {
		return whole
	}
	return Count(n)
}

// Instant writes t with its zone, as short as the day it is read on allows:
// "14:02 CET" today, "29 Nov, 14:02 CET" this year, else with the year.
func Instant(t, now time.Time) string {
	now = now.In(t.Location())
	switch {
	case t.Year() != now.Year():
		return t.Format("2 Jan 2006, 15:04 MST")
	case t.YearDay() != now.YearDay():
		return t.Format("2 Jan, 15:04 MST")
	}
	return t.Format("15:04 MST")
}

// Day writes the day of t, with its year where that is not the reader's.
func Day(t, now time.Time) string {
	if t.Year() != now.In(t.Location()).Year() {
		return t.Format("2 Jan 2006")
	}
	return t.Format("2 Jan")
}
