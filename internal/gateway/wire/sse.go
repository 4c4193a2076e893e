package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineLimit is the longest line of a stream of text, mediaLimit that of one
// whose events may hold an image or the whole answer. An event is at most twice
// as long.
const (
	lineLimit  = 1 << 20
	mediaLimit = 16 << 20
)

// ErrLineTooLong ends a stream with a line or an event that no form has.
var ErrLineTooLong = errors.New("a line of the stream is longer than any that its form has")

// Event is one block of a stream. Its parts are good until the next one is
// read.
type Event struct {
	Name    []byte // of its last event line; nil for none
	Text    []byte // its lines as they go on, each with LF, and the empty line
	Data    []byte // the payload of its data lines
	HasData bool
}

// Reader splits a stream into events by the rules of the HTML standard
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): lines end
// with LF, CR or CRLF, an empty line ends an event, and several data lines make
// one payload. It belongs to one goroutine.
type Reader struct {
	r      *bufio.Reader
	most   int  // the longest line
	skipLF bool // the last line ended with CR: an LF that follows belongs to it
	first  bool
	text   []byte
	name   []byte
	data   []byte
}

// NewReader reads a stream of a form from r.
func NewReader(f Form, r io.Reader) *Reader {
	s := &Reader{r: bufio.NewReaderSize(r, 16<<10), most: mediaLimit, first: true}
	if f == Chat || f == Completions || f == Messages {
		s.most = lineLimit
	}
	return s
}

// Next reads one event. io.EOF comes after the last complete one; a block that
// the end cut off is dropped, as the standard says.
func (s *Reader) Next() (Event, error) {
	s.text, s.name, s.data = s.text[:0], s.name[:0], s.data[:0]
	var e Event
	for {
		from := len(s.text)
		if err := s.line(); err != nil {
			return Event{}, err
		}
		line := s.text[from:]
		s.text = append(s.text, '\n')
		switch {
		case len(line) > 0:
			s.take(&e, line)
		case from == 0:
			s.text = s.text[:0]
		default:
			e.Text, e.Data = s.text, s.data
			return e, nil
		}
		if len(s.text) > 2*s.most {
			return Event{}, ErrLineTooLong
		}
	}
}

// take reads a line's field.
func (s *Reader) take(e *Event, line []byte) {
	if value, ok := field(line, "data"); ok {
		if e.HasData {
			s.data = append(s.data, '\n')
		}
		s.data, e.HasData = append(s.data, value...), true
	} else if value, ok := field(line, "event"); ok {
		s.name = append(s.name[:0], value...)
		e.Name = s.name
	}
}

func field(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	value := line[len(name):]
	if len(value) == 0 {
		return value, true
	}
	if value[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

// line appends the next line to the text, without its end.
func (s *Reader) line() error {
	from := len(s.text)
	for {
		if _, err := s.r.Peek(1); err != nil {
			return err
		}
		b, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF {
			s.skipLF = false
			if b[0] == '\n' {
				_, _ = s.r.Discard(1) // it is there
				continue
			}
		}
		end := lineEnd(b)
		if end < 0 {
			s.text = append(s.text, b...)
			_, _ = s.r.Discard(len(b))
		} else {
			s.text = append(s.text, b[:end]...)
			s.skipLF = b[end] == '\r'
			_, _ = s.r.Discard(end + 1)
		}
		if len(s.text)-from > s.most {
			return ErrLineTooLong
		}
		if end >= 0 {
			s.withoutBOM(from)
			return nil
		}
	}
}

// lineEnd is where the first CR or LF is; −1 for none.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		b = b[:end]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// withoutBOM drops the byte order mark that the first line may begin with.
func (s *Reader) withoutBOM(from int) {
	if s.first {
		s.first = false
		s.text = append(s.text[:from], bytes.TrimPrefix(s.text[from:], []byte("\xef\xbb\xbf"))...)
	}
}
