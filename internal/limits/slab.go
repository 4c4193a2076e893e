package limits

// slab keeps values of one type in chunks without pointers, so that a million of
// them cost the garbage collector nothing. A value stays where it is until it is
// given back.
type slab[T any] struct {
	chunks []*[chunkLen]T
	n      uint32 // places ever taken
	free   []uint32
}

const (
	chunkBits = 6
	chunkLen  = 1 << chunkBits
)

func (s *slab[T]) at(i uint32) *T { return &s.chunks[i>>chunkBits][i%chunkLen] }

// peek is the value at a place that may not be there.
func (s *slab[T]) peek(i uint32) *T {
	if i >= s.n {
		return nil
	}
	return s.at(i)
}

// take is the place of a zero value.
func (s *slab[T]) take() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	if int(s.n>>chunkBits) == len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkLen]T))
	}
	s.n++
	return s.n - 1
}

// give takes a place back. When none is left in use, neither is memory.
func (s *slab[T]) give(i uint32) {
	var zero T
	*s.at(i) = zero
	s.free = append(s.free, i)
	if len(s.free) == int(s.n) && s.n > chunkLen {
		*s = slab[T]{}
	}
}

// kind is how a ledger counts.
type kind uint32

const (
	kindBucket kind = iota + 1
	kindMinute
	kindRolling
	kindCalendar
	kindGauge
)

// ref is where a ledger is: its kind, and its place in the slab of that kind. 0
// is nowhere.
type ref uint32

const placeBits = 29

func refOf(k kind, place uint32) ref { return ref(uint32(k)<<placeBits | place) }

func (r ref) kind() kind    { return kind(r >> placeBits) }
func (r ref) place() uint32 { return uint32(r) & (1<<placeBits - 1) }

// head is what every ledger begins with.
type head struct {
	id     ident  // zero: the place is free
	gen    uint32 // of this making of the ledger; 0: none
	family uint32 // among tenant.families, from 1; 0: of no family
}
