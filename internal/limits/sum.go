package limits

// sum is what a ledger counts: whole units, and of money, in micro-units, the
// pico-units beyond them, from 0 to 999,999.
type sum struct{ n, pico int64 }

func (s sum) plus(o sum) sum  { return sum{s.n + o.n, s.pico + o.pico}.carried() }
func (s sum) minus(o sum) sum { return sum{s.n - o.n, s.pico - o.pico}.carried() }

func (s sum) carried() sum {
	if s.pico >= picos || s.pico < 0 {
		whole := floorDiv(s.pico, picos)
		s.n, s.pico = s.n+whole, s.pico-whole*picos
	}
	return s
}

// up is the sum in whole units, rounded up: the refusing side.
func (s sum) up() int64 {
	if s.pico > 0 {
		return s.n + 1
	}
	return s.n
}

// above tells whether s is more than n whole units.
func (s sum) above(n int64) bool { return s.n > n || s.n == n && s.pico > 0 }

func (s sum) zero() bool { return s == sum{} }

// toward states a signed sum with both parts on the same side of 0, as the
// books take it.
func (s sum) toward() sum {
	if s.n < 0 && s.pico > 0 {
		return sum{s.n + 1, s.pico - picos}
	}
	return s
}

func floorDiv(a, b int64) int64 {
	if a >= 0 {
		return a / b
	}
	return -((-a + b - 1) / b)
}
