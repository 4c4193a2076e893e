package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"weir/internal/fault"
)

func itoa(i int) string { return strconv.Itoa(i) }

func sorted(fields []fault.Field) []fault.Field {
	slices.SortFunc(fields, func(a, b fault.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	return fields
}
