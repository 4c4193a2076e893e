package boot_test

import (
	"runtime"
	"testing"

	"weir/internal/boot"
)

var garbage []byte

// TestWithRoomASmallProcessCollectsLessOften: and needs no more memory for it
// than the garbage takes.
func TestWithRoomASmallProcessCollectsLessOften(t *testing.T) {
	collections := func() uint32 {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 4 << 10 {
			garbage = make([]byte, 128<<10)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	without := collections()
	boot.MakeRoom()
	with := collections()
	if with == 0 || with > without/2 {
		t.Errorf("half a gigabyte is collected %d times with room, %d times without", with, without)
	}
}
