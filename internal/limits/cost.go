package limits

import (
	"slices"

	"weir/internal/fault"
)

// Class is one of the five disjoint kinds of token.
type Class string

// The token classes.
const (
	ClassInput       Class = "input"
	ClassCachedInput Class = "cached_input"
	ClassCacheWrite  Class = "cache_write"
	ClassOutput      Class = "output"
	ClassReasoning   Class = "reasoning"
)

// Tokens counts a call's tokens in disjoint classes: Input is without CachedInput
// and CacheWrite, Output is without Reasoning.
type Tokens struct {
	Input       int64 `json:"input_tokens"`
	CachedInput int64 `json:"cached_input_tokens"`
	CacheWrite  int64 `json:"cache_write_tokens"`
	Output      int64 `json:"output_tokens"`
	Reasoning   int64 `json:"reasoning_tokens"`
}

// Total is the sum of the five classes.
func (t Tokens) Total() int64 {
	return t.Input + t.CachedInput + t.CacheWrite + t.Output + t.Reasoning
}

// Cost is what a call is expected to take, or took. Units are whatever a caller
// of the decision API meters: bytes, pages. Money is in pico-units (10^-12) of
// the tenant's currency: what the customer pays, and what the provider charges
// for it.
type Cost struct {
	Requests     int64  `json:"requests"`
	Units        int64  `json:"units,omitempty"`
	Tokens       Tokens `json:"tokens"`
	ChargePico   int64  `json:"charge_pico,omitempty"`
	ProviderPico int64  `json:"provider_pico,omitempty"`
}

// The largest counts that are believed. With weights of at most maxWeight they
// keep every charge at or below 10^12.
const (
	maxCount = 1_000_000_000
	maxUnits = 1_000_000_000_000

	// MaxPico is the most money that one call can be charged: a million.
	MaxPico = 1_000_000_000_000_000_000
)

// Check returns a field for every count that is negative or absurd; its pointers
// are members of a usage object ("/input_tokens").
func (c Cost) Check() []fault.Field {
	if c.sane() {
		return nil
	}
	var wrong []fault.Field
	within := func(pointer string, n, most int64) {
		if n < 0 || n > most {
			wrong = append(wrong, fault.Field{
				Pointer: pointer, Code: "out_of_range",
				Message: "Must be a whole number from 0 to " + grouped(most) + ".",
			})
		}
	}
	within("/requests", c.Requests, maxCount)
	within("/units", c.Units, maxUnits)
	within("/input_tokens", c.Tokens.Input, maxCount)
	within("/cached_input_tokens", c.Tokens.CachedInput, maxCount)
	within("/cache_write_tokens", c.Tokens.CacheWrite, maxCount)
	within("/output_tokens", c.Tokens.Output, maxCount)
	within("/reasoning_tokens", c.Tokens.Reasoning, maxCount)
	within("/charge_pico", c.ChargePico, MaxPico)
	within("/provider_pico", c.ProviderPico, MaxPico)
	if wrong == nil && c.Tokens.Total() > maxCount {
		wrong = append(wrong, fault.Field{
			Code:    "out_of_range",
			Message: "The tokens of all classes together must not exceed " + grouped(maxCount) + ".",
		})
	}
	return wrong
}

// sane tells whether nothing is wrong, in no time.
func (c *Cost) sane() bool {
	t := &c.Tokens
	return uint64(c.Requests) <= maxCount && uint64(c.Units) <= maxUnits &&
		uint64(c.ChargePico) <= MaxPico && uint64(c.ProviderPico) <= MaxPico &&
		uint64(t.Input) <= maxCount && uint64(t.CachedInput) <= maxCount && uint64(t.CacheWrite) <= maxCount &&
		uint64(t.Output) <= maxCount && uint64(t.Reasoning) <= maxCount && t.Total() <= maxCount
}

// Cost is what a call of c is charged by this limit: ceil(Σ tokens × weight / 1000)
// over the classes of its dimension, the same at reserve and at settle. A gauge
// charges one slot. Spend is in micro-units, without what Pico says.
func (l Limit) Cost(c Cost) int64 {
	switch l.Dimension {
	case DimensionRequests:
		return c.Requests
	case DimensionUnits:
		return c.Units
	case DimensionConcurrency:
		return 1
	case DimensionSpend:
		return l.pico(c) / picos
	}
	w := l.classWeights()
	t := &c.Tokens
	return thousandths(t.Input*w[0] + t.CachedInput*w[1] + t.CacheWrite*w[2] + t.Output*w[3] + t.Reasoning*w[4])
}

// Pico is what a spend limit charges beyond the whole micro-units of Cost: a
// ledger of money is exact to the pico-unit, as the books are.
func (l Limit) Pico(c Cost) int64 {
	if l.Dimension != DimensionSpend {
		return 0
	}
	return l.pico(c) % picos
}

// picos are in a micro-unit.
const picos = 1_000_000

func (l *Limit) pico(c Cost) int64 {
	if l.ofProvider() {
		return c.ProviderPico
	}
	return c.ChargePico
}

// ofProvider tells a spend limit that counts what providers charge, not what
// the customer pays.
func (l *Limit) ofProvider() bool {
	if l.Dimension != DimensionSpend {
		return false
	}
	return l.Scope.Kind == ScopeTenant || l.Scope.Kind == ScopeProviderKey || l.Scope.Kind == ScopePool
}

// allClasses is every class, in the order of classWeights.
var allClasses = [...]Class{ClassInput, ClassCachedInput, ClassCacheWrite, ClassOutput, ClassReasoning}

// classWeights is what each class counts for, in thousandths: 0 where it is of
// another dimension.
func (l *Limit) classWeights() (w [len(allClasses)]int64) {
	for i, class := range allClasses {
		if !slices.Contains(classes[l.Dimension], class) {
			continue
		}
		w[i] = 1000
		if own, ok := l.Weights[class]; ok {
			w[i] = own
		}
	}
	return w
}

func thousandths(n int64) int64 { return (n + 999) / 1000 }
