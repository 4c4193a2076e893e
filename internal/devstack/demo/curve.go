package demo

import (
	"cmp"
	"maps"
	"slices"
)

// curve is the share of a day's calls by hour of the wall clock.
type curve [24]float64

// office is the day of people who work; evening that of those who come after
// school.
var (
	office  = curve{8, 6, 5, 5, 6, 9, 18, 38, 66, 92, 100, 96, 78, 88, 98, 94, 80, 58, 40, 30, 26, 22, 16, 11}.even()
	evening = curve{6, 3, 2, 1, 1, 2, 6, 12, 14, 14, 16, 20, 26, 30, 38, 56, 78, 92, 100, 96, 74, 46, 26, 12}.even()
)

// even makes the shares add up to 1.
func (c curve) even() curve {
	var sum float64
	for _, v := range c {
		sum += v
	}
	for i := range c {
		c[i] /= sum
	}
	return c
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
