package usage

import "slices"

// span is the numbers from first to last, both in it.
type span struct{ first, last int64 }

// numbers is a set of event numbers of one instance and shard, kept as spans in
// order that neither touch nor overlap. The zero value is empty.
type numbers []span

// add puts the numbers from first to last into the set.
func (n *numbers) add(first, last int64) {
	if last < first {
		return
	}
	i, _ := slices.BinarySearchFunc(*n, first, func(s span, first int64) int {
		if s.last+1 < first {
			return -1
		}
		return 1
	})
	j := i
	for j < len(*n) && (*n)[j].first <= last+1 {
		first, last = min(first, (*n)[j].first), max(last, (*n)[j].last)
		j++
	}
	*n = slices.Replace(*n, i, j, span{first, last})
}

// last is the greatest number of the set, 0 if it is empty.
func (n numbers) last() int64 {
	if len(n) == 0 {
		return 0
	}
	return n[len(n)-1].last
}

// has tells whether the number is in the set.
func (n numbers) has(number int64) bool { return n.after(number) != number }

// after is the least number at or above from that is not in the set.
func (n numbers) after(from int64) int64 {
	i, _ := slices.BinarySearchFunc(n, from, func(s span, from int64) int {
		if s.last < from {
			return -1
		}
		return 1
	})
	if i < len(n) && n[i].first <= from {
		return n[i].last + 1
	}
	return from
}
