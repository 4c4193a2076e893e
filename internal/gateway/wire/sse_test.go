package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const story = "\xef\xbb\xbf: hello\r\ndata: {\"a\":1}\r\n\r\nevent: x\rdata: one\rdata:two\r\r\nid: 7\ndata\n\nevent: a\nevent\ndata: [DONE]\n\ndata: cut off"

// heard is a copy of an event.
type heard struct{ Name, Data, Text string }

func events(t *testing.T, r io.Reader) (out []heard) {
	t.Helper()
	s := NewReader(Chat, r)
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, heard{string(e.Name), string(e.Data), string(e.Text)})
	}
}

// cuts are readers that give the same bytes in reads of other lengths; a random
// one is printed by its seed where a test fails.
func cuts(b []byte, random *rand.Rand) io.Reader {
	switch random.IntN(4) {
	case 0:
		return bytes.NewReader(b)
	case 1:
		return iotest.OneByteReader(bytes.NewReader(b))
	case 2:
		return iotest.HalfReader(bytes.NewReader(b))
	}
	var parts []io.Reader
	for len(b) > 0 {
		n := 1 + random.IntN(len(b))
		parts, b = append(parts, bytes.NewReader(b[:n])), b[n:]
	}
	return io.MultiReader(parts...)
}

func TestAStreamReadsAlikeHoweverItIsCut(t *testing.T) {
	want := []heard{
		{"", `{"a":1}`, ": hello\ndata: {\"a\":1}\n\n"},
		{"x", "one\ntwo", "event: x\ndata: one\ndata:two\n\n"},
		{"", "", "id: 7\ndata\n\n"},
		{"", "[DONE]", "event: a\nevent\ndata: [DONE]\n\n"},
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		if diff := cmp.Diff(want, events(t, cuts([]byte(story), random))); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestALineWithoutEndIsBounded(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"a line":           io.LimitReader(endless("x"), 10<<20),
		"lines of a block": io.LimitReader(endless("data: x\n"), 10<<20),
	} {
		if _, err := NewReader(Chat, r).Next(); !errors.Is(err, ErrLineTooLong) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// endless repeats itself.
type endless string

func (e endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat(string(e), 1+len(p)/len(e))) / len(e) * len(e), nil
}

func FuzzAnyStreamIsReadWithoutPanic(f *testing.F) {
	f.Add([]byte(story))
	f.Fuzz(func(_ *testing.T, b []byte) {
		s := NewReader(Chat, bytes.NewReader(b))
		for {
			if _, err := s.Next(); err != nil {
				return
			}
		}
	})
}
