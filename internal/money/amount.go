package money

import (
	"fmt"
	"strconv"
	"strings"
)

// Amount is money as the API writes it: a decimal string and its currency.
type Amount struct {
	Amount   string `json:"amount" description:"A decimal number, as a string" example:"49.00"`
	Currency string `json:"currency" description:"ISO 4217 code" example:"USD"`
}

// Amount is p in a currency, exact.
func (p Pico) Amount(currency string) Amount {
	return Amount{Amount: p.Decimal(), Currency: currency}
}

// decimals holds the currencies that do not have two decimals (ISO 4217).
var decimals = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
}

// Decimals is how many decimals a currency's minor unit has.
func Decimals(currency string) int {
	if d, ok := decimals[currency]; ok {
		return d
	}
	return 2
}

// ValidCurrency tells whether s has the form of an ISO 4217 code.
func ValidCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for _, c := range s {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// ParseMinor reads a non-negative decimal amount into minor units of its
// currency. More decimals than the currency has, a sign, an exponent or more
// than 12 digits before the point are errors.
func ParseMinor(s, currency string) (int64, error) {
	d := Decimals(currency)
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > 12 || len(frac) > d || !digitsOnly(whole) || !digitsOnly(frac) || strings.HasSuffix(s, ".") {
		return 0, fmt.Errorf("%q is not an amount of %s with at most %d decimals", s, currency, d)
	}
	return strconv.ParseInt(whole+frac+strings.Repeat("0", d-len(frac)), 10, 64)
}

// ParsePico reads a non-negative decimal amount, exact to the pico-unit: at most
// 12 digits before the point and 12 after it, no sign, no exponent.
func ParsePico(s string) (Pico, error) {
	whole, frac, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > 12 || len(frac) > 12 || point && frac == "" || !digitsOnly(whole) || !digitsOnly(frac) {
		return Pico{}, fmt.Errorf("%q is not an amount with at most 12 decimals", s)
	}
	var p Pico
	err := p.UnmarshalText([]byte(whole + frac + strings.Repeat("0", 12-len(frac))))
	return p, err
}

// FormatMinor writes minor units of a currency as a decimal amount.
func FormatMinor(n int64, currency string) string {
	d := Decimals(currency)
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%0*d", d+1, n)
	if d == 0 {
		return sign + s
	}
	return sign + s[:len(s)-d] + "." + s[len(s)-d:]
}

func digitsOnly(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
