package id

import (
	"testing"

	"github.com/google/uuid"
	"go.jetify.com/typeid"
	"pgregory.net/rapid"
)

// TestIDsAreWrittenAsTheirFormatSays holds ours against the library that defines
// the format.
func TestIDsAreWrittenAsTheirFormatSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		want, err := typeid.FromUUIDBytesWithPrefix(string(Reservation), u[:])
		if err != nil {
			t.Fatal(err)
		}
		if got := Reservation.Format(u); got != want.String() && u != uuid.Nil {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
