package gateway

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestAnAnswerInPiecesIsNoLongerThanAny: a provider cannot go on for ever.
func TestAnAnswerInPiecesIsNoLongerThanAny(t *testing.T) {
	w := watch(func(error) {}, Timeouts{FirstByte: time.Hour, Idle: time.Hour, Total: time.Hour})
	defer w.stop()
	for most, want := range map[int64]error{10: nil, 9: errTooMuch} {
		b, err := io.ReadAll(w.reader(strings.NewReader("ten bytes."), most))
		if !errors.Is(err, want) || int64(len(b)) > most {
			t.Errorf("of ten bytes where %d may come: %q, %v", most, b, err)
		}
	}
}
