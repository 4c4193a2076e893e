package ui

import (
	"testing"
	"time"
)

func TestNumbersReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n           int64
		count, word string
	}{
		{0, "0", "0"},
		{7, "7", "7"},
		{999, "999", "999"},
		{1000, "1,000", "1,000"},
		{-1234567, "−1,234,567", "−1,234,567"},
		{999_999, "999,999", "999,999"},
		{1_000_000, "1,000,000", "1.0 M"},
		{1_999_999, "1,999,999", "1.9 M"},
		{126_220_276, "126,220,276", "126.2 M"},
		{9_223_372_036_854_775_807, "9,223,372,036,854,775,807", "9,223,372.0 T"},
		{-9_223_372_036_854_775_808, "−9,223,372,036,854,775,808", "−9,223,372,036,854,775,808"},
	} {
		if got := Count(c.n); got != c.count {
			t.Errorf("Count(%d) = %s, want %s", c.n, got, c.count)
		}
		if got := Short(c.n); got != c.word {
			t.Errorf("Short(%d) = %s, want %s", c.n, got, c.word)
		}
	}
}

func TestAmountsAreCutOffAndNeverRoundedUp(t *testing.T) {
	t.Parallel()
	for exact, want := range map[string]string{
		"0.00": "0.00", "0.007475": "0.0074", "0.000000000001": "0.000000000001", "12.50": "12.50", "12.999": "12.99",
		"1234567.895": "1,234,567.89", "-0.05": "−0.05", "-3.999": "−3.99", "0.10": "0.10", "0.109": "0.10", "49": "49",
	} {
		if got := Amount(exact); got != want {
			t.Errorf("Amount(%s) = %s, want %s", exact, got, want)
		}
	}
}

func TestAnInstantCarriesItsZoneAndAsMuchDateAsItNeeds(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 14, 32, 0, 0, berlin)
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{now.Add(-time.Minute), "14:31 CET"},
		{now.AddDate(0, 0, -1), "29 Nov, 14:32 CET"},
		{now.AddDate(0, -3, 0), "30 Aug, 14:32 CEST"},
		{now.AddDate(-1, 0, 0), "30 Nov 2025, 14:32 CET"},
		{now.UTC(), "13:32 UTC"},
	} {
		if got := Instant(c.at, now); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
