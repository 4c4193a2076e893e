package usage

import (
	"testing"
	"time"

	"weir/internal/id"
)

// BenchmarkRecord is what writing the two records of a call takes, by hand and by
// the library.
func BenchmarkRecord(b *testing.B) {
	e := call(id.New(), time.Now())
	a := admission(e)
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = appendEvent(appendAdmission(buf[:0], a), &e)
		}
	})
	b.Run("by the library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = encode(a)
			_, _ = encode(&e)
		}
	})
}
