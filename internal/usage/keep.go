package usage

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// commit takes over which numbers the books have. A shard of which they have
// numbers that were never given here is behind: the directory is an older copy
// of itself. Its numbers go on above those, and what is on disk below is not
// known to be committed, whatever the marks say.
func (s *Spool) commit(marks [Shards]numbers) (behind [Shards]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard, m := range marks {
		for _, r := range m {
			s.done[shard].add(r.first, r.last)
		}
		if last := m.last(); last > s.numbers[shard] {
			s.numbers[shard], behind[shard] = last, last
		}
	}
	s.wake()
	return behind
}

// progress is how far each shard has come: the last number given, and the first
// one that is not committed.
type progress struct {
	given, missing [Shards]int64
}

// drained tells whether everything that was given a number is committed.
func (p progress) drained() bool {
	for shard := range p.given {
		if p.missing[shard] <= p.given[shard] {
			return false
		}
	}
	return true
}

func (s *Spool) progress() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progressLocked()
}

func (s *Spool) progressLocked() progress {
	p := progress{given: s.numbers}
	for shard := range p.missing {
		p.missing[shard] = s.done[shard].after(1)
	}
	return p
}

// oldestOpen is when the call that has been open the longest was admitted; zero
// if none is open.
func (s *Spool) oldestOpen() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Time
	for _, o := range s.open {
		if oldest.IsZero() || o.admittedAt.Before(oldest) {
			oldest = o.admittedAt
		}
	}
	return oldest
}

// watch is a channel that is closed when events become durable or committed.
func (s *Spool) watch() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// view is a file, as far as it can be read.
type view struct {
	seq   uint64
	path  string
	limit int64
	holes []hole
}

// read hands the durable ended calls from a position on to f, oldest first, until
// f wants no more, and returns where to go on: before the record that f refused.
// It holds no lock while it reads.
func (s *Spool) read(from position, f func(record) bool) (position, error) {
	for _, v := range s.views(from.seq) {
		off := int64(0)
		if v.seq == from.seq {
			off = from.off
		}
		at, more, err := v.read(off, f)
		if err != nil {
			return from, err
		}
		from = position{v.seq, at}
		if !more {
			break
		}
	}
	return from, nil
}

func (s *Spool) views(from uint64) []view {
	s.mu.Lock()
	defer s.mu.Unlock()
	var vs []view
	for _, seg := range s.segs {
		if seg.seq < from || seg.seq > s.synced.seq {
			continue
		}
		v := view{seg.seq, seg.path, seg.size, seg.holes}
		if seg.seq == s.synced.seq {
			v.limit = s.synced.off
		}
		vs = append(vs, v)
	}
	return vs
}

func (v view) read(off int64, f func(record) bool) (at int64, more bool, err error) {
	if off >= v.limit {
		return off, true, nil
	}
	file, err := os.Open(v.path)
	if errors.Is(err, fs.ErrNotExist) { // swept meanwhile: all of it is committed
		return v.limit, true, nil
	}
	if err != nil {
		return off, false, err
	}
	defer file.Close()
	sc := scan(file, off, v.limit, v.holes)
	for {
		at := sc.off
		r, err := sc.next()
		if errors.Is(err, io.EOF) {
			return sc.off, true, nil
		}
		if err != nil {
			return at, false, Damage{File: v.path, Offset: at, Reason: err.Error()}
		}
		if r.kind == kindEnded && !f(r) {
			return at, false, nil
		}
	}
}

// find is the start of the file that a number is in.
func (s *Spool) find(shard int, number int64) position {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segs {
		if seg.last[shard] >= number {
			return position{seq: seg.seq}
		}
	}
	return s.synced
}
