package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineLimit is the longest line of a stream.
const lineLimit = 1 << 20

var errLineTooLong = errors.New("a line of the stream is longer than 1 MiB")

// sseReader splits a stream into events by the rules of the HTML standard
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): lines end
// with LF, CR or CRLF, an empty line ends an event, and several data lines make
// one payload.
type sseReader struct {
	r      *bufio.Reader
	skipLF bool // the last line ended with CR: an LF that follows belongs to it
	first  bool
}

func newSSEReader(r io.Reader) *sseReader {
	return &sseReader{r: bufio.NewReaderSize(r, 16<<10), first: true}
}

// event is one block: its lines as they go on, and the payload of its data
// lines.
type event struct {
	text    []byte // lines, each with LF, and the empty line
	data    []byte
	hasData bool
}

// next reads one event. io.EOF comes after the last complete one; a block that
// the end cut off is dropped, as the standard says.
func (s *sseReader) next() (event, error) {
	var e event
	for {
		line, err := s.line()
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if len(e.text) == 0 {
				continue
			}
			e.text = append(e.text, '\n')
			return e, nil
		}
		e.text = append(append(e.text, line...), '\n')
		if len(e.text) > 2*lineLimit {
			return event{}, errLineTooLong
		}
		if value, ok := field(line, "data"); ok {
			if e.hasData {
				e.data = append(e.data, '\n')
			}
			e.data, e.hasData = append(e.data, value...), true
		}
	}
}

func field(line []byte, name string) ([]byte, bool) {
	value, ok := bytes.CutPrefix(line, []byte(name))
	if !ok {
		return nil, false
	}
	if len(value) == 0 {
		return value, true
	}
	if value[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

func (s *sseReader) line() ([]byte, error) {
	var line []byte
	for {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
		b, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF {
			s.skipLF = false
			if b[0] == '\n' {
				_, _ = s.r.Discard(1) // it is there
				continue
			}
		}
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			line = append(line, b...)
			_, _ = s.r.Discard(len(b))
		} else {
			line = append(line, b[:end]...)
			s.skipLF = b[end] == '\r'
			_, _ = s.r.Discard(end + 1)
		}
		if len(line) > lineLimit {
			return nil, errLineTooLong
		}
		if end >= 0 {
			return s.withoutBOM(line), nil
		}
	}
}

// withoutBOM drops the byte order mark that the first line may begin with.
func (s *sseReader) withoutBOM(line []byte) []byte {
	if s.first {
		s.first = false
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}
