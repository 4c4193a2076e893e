package id

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestFormatThenParseGivesTheSameID(t *testing.T) {
	u := New()
	s := Customer.Format(u)
	got, err := Customer.Parse(s)
	if err != nil || got != u {
		t.Fatalf("Parse(%q) = %v, %v; want %v", s, got, err, u)
	}
}

func TestParseRefusesOtherKindsAndGarbage(t *testing.T) {
	for _, s := range []string{"", "cus_", "cus", APIKey.Format(New()), "cus_01", "cus_zzzzzzzzzzzzzzzzzzzzzzzzzz", Customer.Format(New()) + "0", "CUS_01h455vb4pex5vsknk084sn02q"} {
		if _, err := Customer.Parse(s); err == nil {
			t.Errorf("Parse(%q) accepted", s)
		}
	}
}

func TestTimeIsTheInstantOfMaking(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	got := Time(New())
	if got.Before(before) || got.After(time.Now()) {
		t.Fatalf("Time = %v, want now", got)
	}
}

func TestAtIsOrderedByItsInstant(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	if u := At(at); !Time(u).Equal(at) || u.Version() != 7 {
		t.Fatalf("got %v, version %d", Time(u), u.Version())
	}
}

func TestTheZeroIDIsWrittenAsNothing(t *testing.T) {
	if s := Customer.Format(uuid.Nil); s != "" {
		t.Fatalf("got %q", s)
	}
}
