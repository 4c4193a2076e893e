package limits

import "slices"

// history is how little headroom (ceiling − level, in grains) a bucket has had
// since each of its open calls was charged. It bounds what a settlement gives
// back: had a call been charged less from the start, the bucket would have held
// more, but never more than its ceiling, so of the difference there remains what
// every instant since had room for.
//
// One room stands for the calls charged from its turn on, and keeps the least
// headroom from then until now; so rooms grow strictly, and those that have
// become equal are one. A turn begins when the bucket refills: calls charged with
// no refill between them share a room, for nothing can be lost between them. At
// most maxRooms are kept: beyond that, the two neighbours that differ least
// become the smaller, which gives back less, never more.
type history []room

type room struct {
	since int64 // turn
	least int64 // grains
	calls int64 // unsettled calls charged from since on, before the next room
}

const maxRooms = 12

// rooms are the histories that need more than the one room that a bucket has
// itself, one more than maxRooms each, so that adding never grows them.
type rooms = slab[[maxRooms + 1]room]

// add notes a call charged in the turn since, which left this headroom. There is
// room for one more.
func (h *history) add(since, headroom int64) {
	if n := len(*h); n > 0 && (*h)[n-1].since == since {
		last := &(*h)[n-1]
		last.least = headroom
		last.calls++
		return
	}
	*h = append(*h, room{since, headroom, 1})
	if len(*h) > maxRooms {
		h.merge(h.closest())
	}
}

// fall notes that the headroom has come down to this.
func (h *history) fall(headroom int64) {
	rooms := *h
	for i := len(rooms) - 1; i >= 0 && rooms[i].least > headroom; i-- {
		rooms[i].least = headroom
	}
	h.unite()
}

// giveBack returns how much of want the bucket would still hold had the call
// charged in the turn since never asked for it, and takes it out of the history, so that
// no other call is given the same room.
func (h *history) giveBack(since, want int64) int64 {
	i := h.find(since)
	if i < 0 {
		return 0
	}
	rooms := *h
	given := min(want, rooms[i].least)
	for j := range rooms[i:] {
		rooms[i+j].least -= given
	}
	for j := range rooms[:i] {
		rooms[j].least = min(rooms[j].least, rooms[i].least)
	}
	h.unite()
	return given
}

// release forgets one call charged in that turn; a room without calls bounds nobody.
func (h *history) release(since int64) {
	i := h.find(since)
	if i < 0 {
		return
	}
	(*h)[i].calls--
	if (*h)[i].calls <= 0 {
		*h = slices.Delete(*h, i, i+1)
	}
}

// find is the room that stands for calls charged in that turn, or -1 when the
// bucket is younger than the call: it had no headroom before it was made.
func (h history) find(since int64) int {
	i := len(h) - 1
	for i >= 0 && h[i].since > since {
		i--
	}
	return i
}

func (h *history) unite() {
	for i := len(*h) - 1; i > 0; i-- {
		if (*h)[i].least == (*h)[i-1].least {
			h.merge(i)
		}
	}
}

// merge puts room i into its older neighbour, which has no more room.
func (h *history) merge(i int) {
	(*h)[i-1].calls += (*h)[i].calls
	*h = slices.Delete(*h, i, i+1)
}

// closest is the room that differs least from its older neighbour. The newest is
// left alone: its turn may go on.
func (h history) closest() int {
	best := 1
	for i := 2; i < len(h)-1; i++ {
		if h[i].least-h[i-1].least < h[best].least-h[best-1].least {
			best = i
		}
	}
	return best
}
