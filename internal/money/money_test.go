package money

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestAnEventIsPricedExactly(t *testing.T) {
	// 1,234 input of which 1,024 cached, 567 output.
	sum := Times(1234-1024, 2_500_000).Add(Times(1024, 1_250_000)).Add(Times(567, 10_000_000))
	if sum.String() != "7475000000" || sum.Decimal() != "0.007475" {
		t.Fatalf("got %s pico = %s", sum, sum.Decimal())
	}
}

func TestSumsPassSixtyFourBits(t *testing.T) {
	p := Times(1_000_000_000, 1_000_000_000_000)
	if p.String() != "1000000000000000000000" || p.Decimal() != "1000000000.00" {
		t.Fatalf("got %s, %s", p, p.Decimal())
	}
}

func TestPicoSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Times(rapid.Int64().Draw(t, "count"), rapid.Int64Range(0, 1e12).Draw(t, "price"))
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Pico
		if err := json.Unmarshal(b, &q); err != nil || q.String() != p.String() {
			t.Fatalf("%s: got %s, %v", b, q, err)
		}
	})
}

func TestAmountsKeepTheirMinorUnit(t *testing.T) {
	for _, c := range []struct {
		in, currency string
		minor        int64
		out          string
	}{
		{"49.00", "USD", 4900, "49.00"},
		{"49", "USD", 4900, "49.00"},
		{"0.5", "EUR", 50, "0.50"},
		{"1200", "JPY", 1200, "1200"},
		{"1.234", "KWD", 1234, "1.234"},
	} {
		n, err := ParseMinor(c.in, c.currency)
		if err != nil || n != c.minor || FormatMinor(n, c.currency) != c.out {
			t.Errorf("%s %s: got %d, %v, %s", c.in, c.currency, n, err, FormatMinor(n, c.currency))
		}
	}
	for _, bad := range []string{"", "-1", "1e3", "1.", ".5", "1.234", "1234567890123", "١"} {
		if n, err := ParseMinor(bad, "USD"); err == nil {
			t.Errorf("%q read as %d", bad, n)
		}
	}
}

func TestALineIsRoundedHalfAwayFromZeroToItsMinorUnit(t *testing.T) {
	for _, c := range []struct {
		pico     int64
		currency string
		want     int64
	}{
		{5_000_000_000, "USD", 1},
		{-5_000_000_000, "USD", -1},
		{4_999_999_999, "USD", 0},
		{-4_999_999_999, "USD", 0},
		{75_000_225_000, "USD", 8},
		{500_000_000_000, "JPY", 1},
		{499_999_999_999, "JPY", 0},
		{500_000_000, "KWD", 1},
		{-1_500_000_000, "KWD", -2},
	} {
		if got, err := FromInt(c.pico).Minor(c.currency); got != c.want || err != nil {
			t.Errorf("%d pico %s: %d, %v; want %d", c.pico, c.currency, got, err, c.want)
		}
	}
	if _, err := Times(1<<62, 1<<62).Minor("USD"); err == nil {
		t.Error("a sum that fits nowhere was rounded")
	}
}

func TestAnAmountIsReadToItsLastDecimalOrRefused(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "12.5": "12500000000000", "0.000000000001": "1", "999999999999.999999999999": "999999999999999999999999", "00.10": "100000000000"} {
		if p, err := ParsePico(in); err != nil || p.String() != want {
			t.Errorf("%q is %s, %v", in, p, err)
		}
	}
	for _, bad := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0x1", "NaN", " 1", "1 ", "1.0000000000001", "1000000000000", "1.2.3", "٣"} {
		if p, err := ParsePico(bad); err == nil {
			t.Errorf("%q is %s", bad, p)
		}
	}
}
