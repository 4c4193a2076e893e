package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/internal/limits"
	"weir/internal/money"
)

// Words say what a reading is to its alert: "Kestrel used 4,312 of 5,000 tokens
// of its day".
func Words(a Alert, r Reading, currency string) string {
	switch a.Kind {
	case AlertCooling:
		return "Provider key " + r.Name + " cools"
	case AlertFailed:
		return "Provider key " + r.Name + " was refused by its provider"
	case AlertUnpriced:
		return "The cost of model " + r.Name + " is not known"
	case AlertBehind:
		return "The books are " + grouped(r.Value) + " minutes behind (alert at " + strconv.Itoa(a.Minutes) + "): calls that ended after " + instant(r.Period) + " may be missing from reports"
	case AlertDiffer:
		return "The books of " + r.Name + " differ from their calls"
	case AlertLetters:
		if r.Value == 1 {
			return "A message could not be counted, and is kept as a dead letter"
		}
		return grouped(r.Value) + " messages could not be counted, and are kept as dead letters"
	}
	figure := func(n int64) string {
		if a.Dimension == limits.DimensionSpend {
			return money.Times(n, 1_000_000).Decimal() + " " + currency
		}
		return grouped(n)
	}
	what := strings.ReplaceAll(string(a.Dimension), "_", " ")
	if a.Dimension == limits.DimensionSpend {
		what = "spend"
	}
	return fmt.Sprintf("%s: %s of %s, %s of the %s (alert at %s)", r.Name, figure(r.Value), figure(r.Of), what, a.Window, a.thresholdWords(figure))
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (a Alert) thresholdWords(figure func(int64) string) string {
	if a.Percent > 0 {
		return strconv.Itoa(a.Percent) + "%"
	}
	return figure(a.Amount)
}

// shorten makes words a subject.
func shorten(words string) string {
	if r := []rune(words); len(r) > 150 {
		return string(r[:150]) + "…"
	}
	return words
}

func instant(t time.Time) string { return t.UTC().Format("2 January 2006 15:04 UTC") }

// mailText is the body of an alert's mail.
func mailText(a Alert, r Reading, words, publicURL string) string {
	when, page := "Since "+instant(r.Period)+". This alert tells once in that period.", "/alerts"
	switch a.Kind {
	case AlertBehind:
		when = "No call is lost: what is on its way is counted when it arrives. This alert tells again only after the books had caught up."
	case AlertDiffer:
		when, page = "Found "+instant(r.Period)+". This alert tells of that day again only after its books agreed.", "/reconcile?day="+r.Subject
	}
	if a.Kind == AlertLetters {
		when, page = "In the hour from "+instant(r.Period)+". Everything else is counted meanwhile. This alert tells once an hour in which some come.", "/pipeline"
	}
	if a.Name != "" {
		when = "Alert: " + a.Name + ".\n" + when
	}
	return fmt.Sprintf("%s.\n\n%s\n\n%s%s\n", words, when, publicURL, page)
}
