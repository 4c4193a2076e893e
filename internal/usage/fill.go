package usage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"weir/internal/fault"
)

// maxRows bounds a report: buckets × groups.
const maxRows = 50_000

// fill spreads the cells over buckets × groups.
func (rep *Report) fill(q Query, starts []time.Time, cells []cell) error {
	groups := groupsOf(q.GroupBy, cells)
	if len(groups)*len(starts) > maxRows {
		return fault.InvalidFields(fault.Field{
			Pointer: "?group_by", Code: "too_many_rows",
			Message: "This range has too many groups for so many buckets. Use a longer bucket, a shorter range or a filter.",
		})
	}
	at := make(map[Group]int, len(groups))
	for i, g := range groups {
		at[g] = i
	}
	rep.Rows = make([]Row, 0, len(groups)*len(starts))
	for i, start := range starts {
		end := rep.To
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		for _, g := range groups {
			rep.Rows = append(rep.Rows, Row{Start: start, End: end, Group: g})
		}
	}
	for _, c := range cells {
		rep.Rows[c.bucket*len(groups)+at[c.group]].add(c)
		rep.Totals.add(c)
	}
	return nil
}

// groupsOf are the groups in order; without grouping there is one, always.
func groupsOf(by GroupBy, cells []cell) []Group {
	if by == ByNothing {
		return []Group{{}}
	}
	var groups []Group
	for _, c := range cells {
		groups = append(groups, c.group)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(rank(a.Rest), rank(b.Rest)), strings.Compare(a.Name, b.Name), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return slices.Compact(groups)
}

func (s *Sums) add(c cell) {
	s.Add(c.Sums) // whose amounts are apart, by pair of currencies
	s.Charges = plus(s.Charges, c.charge)
	s.Costs = plus(s.Costs, c.cost)
}

// plus adds an amount to the sums by currency, which stay in order.
func plus(sums []Money, m Money) []Money {
	if m.Currency == "" {
		return sums
	}
	i, found := slices.BinarySearchFunc(sums, m.Currency, func(s Money, c string) int { return strings.Compare(s.Currency, c) })
	if !found {
		return slices.Insert(sums, i, m)
	}
	sums[i].Amount = sums[i].Amount.Add(m.Amount)
	return sums
}
