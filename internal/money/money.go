// Package money holds exact amounts.
//
// A price is a whole number of micro-units of currency for a million tokens; a
// token count times a price is therefore a whole number of pico-units
// (10^-12), with no division and nothing rounded. Sums pass 64 bits, so Pico is
// arbitrary precision; the database keeps numeric(38,0).
package money

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Pico is an amount in 10^-12 units of a currency. The zero value is 0. Values
// are immutable and may be shared between goroutines.
type Pico struct{ n *big.Int }

// FromInt is n pico-units.
func FromInt(n int64) Pico { return Pico{big.NewInt(n)} }

// Times is count × microsPerMillion, exact.
func Times(count, microsPerMillion int64) Pico {
	return Pico{new(big.Int).Mul(big.NewInt(count), big.NewInt(microsPerMillion))}
}

// Big is a copy of p as a big integer.
func (p Pico) Big() *big.Int {
	if p.n == nil {
		return new(big.Int)
	}
	return new(big.Int).Set(p.n)
}

// FromBig is a copy of n as Pico; nil is 0.
func FromBig(n *big.Int) Pico {
	if n == nil {
		return Pico{}
	}
	return Pico{new(big.Int).Set(n)}
}

// zero is only read.
var zero = new(big.Int)

// read is p's number, for arithmetic that does not change it.
func (p Pico) read() *big.Int {
	if p.n == nil {
		return zero
	}
	return p.n
}

// Add is p + q.
func (p Pico) Add(q Pico) Pico {
	switch {
	case p.n == nil:
		return q
	case q.n == nil:
		return p
	}
	return Pico{new(big.Int).Add(p.n, q.n)}
}

// AddTo adds p to a sum.
func (p Pico) AddTo(sum *big.Int) { sum.Add(sum, p.read()) }

// Sub is p − q.
func (p Pico) Sub(q Pico) Pico { return Pico{new(big.Int).Sub(p.read(), q.read())} }

// Minor is p in the currency's minor units, rounded half away from zero. It is
// what an invoice's line says: round once, there, and add up what was rounded. A
// sum beyond 64 bits is an error.
func (p Pico) Minor(currency string) (int64, error) {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(12-Decimals(currency))), nil)
	n, rest := new(big.Int).QuoRem(p.read(), unit, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).Cmp(unit) >= 0 {
		n.Add(n, big.NewInt(int64(p.Sign())))
	}
	if !n.IsInt64() {
		return 0, errors.New("money: the amount is larger than 64 bits of minor units")
	}
	return n.Int64(), nil
}

// IsZero tells whether p is 0.
func (p Pico) IsZero() bool { return p.n == nil || p.n.Sign() == 0 }

// Sign is -1, 0 or 1.
func (p Pico) Sign() int { return p.read().Sign() }

// String is the whole number of pico-units.
func (p Pico) String() string { return p.read().String() }

// Decimal is the exact amount in units of currency: no exponent, no trailing
// zeros beyond two decimals ("0.007475", "12.50").
func (p Pico) Decimal() string {
	n := p.Big()
	sign := ""
	if n.Sign() < 0 {
		sign, n = "-", n.Neg(n)
	}
	digits := fmt.Sprintf("%013s", n.String())
	whole, frac := digits[:len(digits)-12], digits[len(digits)-12:]
	frac = strings.TrimRight(frac, "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return sign + whole + "." + frac
}

// MarshalText writes the whole number of pico-units.
func (p Pico) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (p *Pico) UnmarshalText(b []byte) error {
	n, ok := new(big.Int).SetString(string(b), 10)
	if !ok || len(b) > 40 {
		return fmt.Errorf("money: %q is not a whole number of pico-units", b)
	}
	p.n = n
	return nil
}
