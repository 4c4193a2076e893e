package usage

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/id"
	"weir/internal/money"
)

var samePico = cmp.Comparer(func(a, b money.Pico) bool { return a.String() == b.String() })

// TestAnEventIsReadAsTheLibraryReadsIt: whatever is in it; and one without a
// refusal or anything that is escaped in the one pass.
func TestAnEventIsReadAsTheLibraryReadsIt(t *testing.T) {
	t.Parallel()
	r := random(t)
	quick := 0
	for range 2000 {
		var e, want, got, skimmed Event
		fill(r, reflect.ValueOf(&e).Elem())
		body := appendEvent(nil, &e)
		must(t, decode(body, &want))
		must(t, decodeEvent(body, &got))
		if diff := cmp.Diff(want, got, samePico); diff != "" {
			t.Fatalf("%s\nof %s", diff, body)
		}
		if skimEvent(body, &skimmed) {
			quick++
		}
	}
	if quick == 0 {
		t.Error("none was read in one pass")
	}
	for range 100 {
		e := call(id.New(), time.Now())
		e.Tags = map[string]string{"team": "größer", "b": "流れ"}
		e.clean()
		if body := appendEvent(nil, &e); !skimEvent(body, &Event{}) {
			t.Fatalf("not read in one pass: %s", body)
		}
	}
}

// FuzzWhatIsReadInOnePassIsWhatTheLibraryReads: nothing is taken that it refuses.
func FuzzWhatIsReadInOnePassIsWhatTheLibraryReads(f *testing.F) {
	e := call(id.New(), time.Now())
	e.Tags, e.Prices = map[string]string{"a": "b"}, append(e.Prices, id.New())
	body := appendEvent(nil, &e)
	f.Add(body)
	for _, old := range [][2]string{
		{`{"v":1`, `{"v":01`}, {`{"v":1`, `{"v":1e0`}, {`{"v":1`, `{"v":-0`}, {`"a":"b"`, `"a":"b","a":"c"`}, {`Z"`, `+00:00"`}, {`"kind"`, `"Kind"`}, {`{"v":1`, `{"v":1,"v":1`}, {`}`, `} `}, {`"b"`, "\"\xff\""}, {`"b"`, "\"\x01\""},
	} {
		f.Add([]byte(strings.Replace(string(body), old[0], old[1], 1)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want Event
		if !skimEvent(b, &got) {
			return
		}
		if err := decode(b, &want); err != nil {
			t.Fatalf("the library says %v of %q", err, b)
		}
		if diff := cmp.Diff(want, got, samePico); diff != "" {
			t.Fatalf("%s\nof %q", diff, b)
		}
	})
}

func BenchmarkReadEvent(b *testing.B) {
	e := manyCalls(1)[0]
	body := appendEvent(nil, &e)
	b.Run("in one pass", func(b *testing.B) {
		for b.Loop() {
			must(b, decodeEvent(body, &Event{}))
		}
	})
	b.Run("by the library", func(b *testing.B) {
		for b.Loop() {
			must(b, decode(body, &Event{}))
		}
	})
}
