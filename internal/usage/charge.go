package usage

import (
	"slices"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/money"
)

// Class is what a price line is for.
type Class string

// The classes of price line. Tokens are disjoint classes; request is one
// admitted call, unit one unit of the decision API.
const (
	Input       Class = "input"
	CachedInput Class = "cached_input"
	CacheWrite  Class = "cache_write"
	Output      Class = "output"
	Reasoning   Class = "reasoning"
	PerRequest  Class = "request"
	PerUnit     Class = "unit"
)

// Classes lists every class of price line.
var Classes = []Class{Input, CachedInput, CacheWrite, Output, Reasoning, PerRequest, PerUnit}

// Rate is one price line as it stood when a call was admitted.
type Rate struct {
	Price            uuid.UUID `json:"price"`
	Class            Class     `json:"class"`
	MicrosPerMillion int64     `json:"micros_per_million"`
}

// Charge prices a call: Σ count × price, exact, in pico-units. lines are the
// price lines that counted something.
func Charge(rates []Rate, c limits.Cost) (sum money.Pico, lines []uuid.UUID) {
	for _, r := range rates {
		n := count(r.Class, c)
		if n == 0 {
			continue
		}
		sum = sum.Add(money.Times(n, r.MicrosPerMillion))
		if !slices.Contains(lines, r.Price) {
			lines = append(lines, r.Price)
		}
	}
	return sum, lines
}

// chargePico is Charge as the limits engine counts money; a test call costs
// nothing. What no call can cost is what the most expensive one can.
func chargePico(rates []Rate, c limits.Cost, test bool) int64 {
	if test {
		return 0
	}
	sum, _ := Charge(rates, c)
	return pico(sum)
}

func pico(sum money.Pico) int64 {
	if n := sum.Big(); n.IsInt64() {
		return min(n.Int64(), limits.MaxPico)
	}
	return limits.MaxPico
}

func count(class Class, c limits.Cost) int64 {
	switch class {
	case Input:
		return c.Tokens.Input
	case CachedInput:
		return c.Tokens.CachedInput
	case CacheWrite:
		return c.Tokens.CacheWrite
	case Output:
		return c.Tokens.Output
	case Reasoning:
		return c.Tokens.Reasoning
	case PerRequest:
		return c.Requests
	case PerUnit:
		return c.Units
	}
	return 0
}
