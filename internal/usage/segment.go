package usage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// segment is one file of the spool. Only the last one is written to.
type segment struct {
	seq  uint64
	path string
	size int64

	first, last [Shards]int64 // numbers of the ended calls in it; 0: none
	need        [Shards]int64 // all up to here are committed before the file may go
	open        int           // calls admitted in it that have not ended
	holes       []hole        // damaged bytes, to be stepped over
	settledAt   time.Time     // since when nothing in it is needed
}

// hole is a run of damaged bytes: from is in it, to is not.
type hole struct{ from, to int64 }

const segmentSuffix = ".seg"

func segmentPath(dir string, seq uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016d%s", seq, segmentSuffix))
}

// note counts an ended call that is written here.
func (s *segment) note(shard int, number int64) {
	if s.first[shard] == 0 {
		s.first[shard] = number
	}
	s.last[shard] = number
	s.need[shard] = max(s.need[shard], number)
}

// scanner reads the records of a segment one after the other.
type scanner struct {
	r     *bufio.Reader
	off   int64 // of the record that comes next
	holes []hole
	buf   []byte
}

// scan reads f from off, which is where a record begins, up to limit.
func scan(f io.ReaderAt, off, limit int64, holes []hole) *scanner {
	return &scanner{
		r:   bufio.NewReaderSize(io.NewSectionReader(f, off, limit-off), 128<<10),
		off: off, holes: holes, buf: make([]byte, 4<<10),
	}
}

// next is the record at off, which moves on; io.EOF at the end. After errTorn
// or errDamaged the scanner is of no more use.
func (s *scanner) next() (record, error) {
	if err := s.skip(); err != nil {
		return record{}, err
	}
	if _, err := io.ReadFull(s.r, s.buf[:headerSize]); err != nil {
		return record{}, cut(err, io.EOF)
	}
	length := binary.LittleEndian.Uint32(s.buf)
	if length > maxPayload {
		return record{}, errDamaged
	}
	size := headerSize + int(length)
	if size > len(s.buf) {
		s.buf = append(s.buf, make([]byte, size-len(s.buf))...)
	}
	if _, err := io.ReadFull(s.r, s.buf[headerSize:size]); err != nil {
		return record{}, cut(err, errTorn)
	}
	r, _, err := parse(s.buf[:size])
	if err == nil {
		s.off += int64(size)
	}
	return r, err
}

// skip steps over the damaged bytes that begin here.
func (s *scanner) skip() error {
	for _, h := range s.holes {
		if h.from != s.off {
			continue
		}
		if _, err := s.r.Discard(int(h.to - h.from)); err != nil {
			return cut(err, io.EOF)
		}
		s.off = h.to
	}
	return nil
}

// cut is what an early end of the file means: nothing read, or a part.
func cut(err, atStart error) error {
	switch {
	case errors.Is(err, io.EOF):
		return atStart
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errTorn
	}
	return err
}

// resync is the distance from the start of b to the next intact record, or -1.
func resync(b []byte) int {
	for i := 1; i+headerSize <= len(b); i++ {
		if r, _, err := parse(b[i:]); err == nil && r.kind >= kindStart && r.kind <= kindAlive {
			return i
		}
	}
	return -1
}

// syncDir makes the names in a directory as durable as the files.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writeFile replaces a file in one step, durably.
func writeFile(path string, b []byte) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
