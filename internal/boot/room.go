package boot

import "sync/atomic"

// room is never touched: it takes addresses, and no memory.
var room atomic.Pointer[[]byte]

// roomBytes is how much garbage a small process may hold before it collects it.
const roomBytes = 64 << 20

// MakeRoom lets the collector count with a heap that is larger by 64 MiB than it
// is. It runs when the heap has doubled, so that a process of which little lives
// would otherwise collect every few megabytes: tens of times a second under load,
// for an eighth of its CPU. A share of a large heap (GOGC) would do the same, and
// grow without bound where thousands of streams are open.
//
// It is for mains, where neither GOGC nor GOMEMLIMIT says what is wanted.
func MakeRoom() {
	b := make([]byte, roomBytes)
	room.Store(&b)
}
