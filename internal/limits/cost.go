package limits

import "weir/internal/fault"

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
// of the decision API meters: bytes, pages.
type Cost struct {
	Requests int64  `json:"requests"`
	Units    int64  `json:"units,omitempty"`
	Tokens   Tokens `json:"tokens"`
}

// The largest counts that are believed. With weights of at most maxWeight they
// keep every charge at or below 10^12.
const (
	maxCount = 1_000_000_000
	maxUnits = 1_000_000_000_000
)

// Check returns a field for every count that is negative or absurd; its pointers
// are members of a usage object ("/input_tokens").
func (c Cost) Check() []fault.Field {
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
	if wrong == nil && c.Tokens.Total() > maxCount {
		wrong = append(wrong, fault.Field{
			Code:    "out_of_range",
			Message: "The tokens of all classes together must not exceed " + grouped(maxCount) + ".",
		})
	}
	return wrong
}

// Cost is what a call of c is charged by this limit: ceil(Σ tokens × weight / 1000)
// over the classes of its dimension, the same at reserve and at settle. A gauge
// charges one slot.
func (l Limit) Cost(c Cost) int64 {
	switch l.Dimension {
	case DimensionRequests:
		return c.Requests
	case DimensionUnits:
		return c.Units
	case DimensionConcurrency:
		return 1
	case DimensionTokens:
		return thousandths(l.input(c.Tokens) + l.output(c.Tokens))
	case DimensionInputTokens:
		return thousandths(l.input(c.Tokens))
	case DimensionOutputTokens:
		return thousandths(l.output(c.Tokens))
	}
	return 0
}

func (l Limit) input(t Tokens) int64 {
	return t.Input*l.weight(ClassInput) + t.CachedInput*l.weight(ClassCachedInput) + t.CacheWrite*l.weight(ClassCacheWrite)
}

func (l Limit) output(t Tokens) int64 {
	return t.Output*l.weight(ClassOutput) + t.Reasoning*l.weight(ClassReasoning)
}

func (l Limit) weight(c Class) int64 {
	if w, ok := l.Weights[c]; ok {
		return w
	}
	return 1000
}

func thousandths(n int64) int64 { return (n + 999) / 1000 }
