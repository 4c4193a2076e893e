package usage

import (
	"errors"
	"os"
	"time"
)

var errClosed = errors.New("the spool is closed")

// append writes one framed record with one write(2), and returns where it
// begins. The lock is held. What a failed write left is cut off before the next
// one, so that a file never holds a broken record before a whole one.
func (s *Spool) append(b []byte, shard int, number int64) (off int64, err error) {
	if s.closed {
		return 0, unwritable(errClosed)
	}
	if err := s.repair(); err != nil {
		return 0, s.fail(err)
	}
	if s.tail().size >= s.o.SegmentBytes {
		if err := s.rotate(); err != nil {
			return 0, s.fail(err)
		}
	}
	off, err = s.write(b, shard, number)
	if err != nil {
		return 0, s.fail(err)
	}
	s.broken = nil
	return off, nil
}

func (s *Spool) write(b []byte, shard int, number int64) (off int64, err error) {
	now := s.o.Now()
	seal(b, now, shard, number)
	seg := s.tail()
	if _, err := s.file.WriteAt(b, seg.size); err != nil {
		s.torn = true
		_ = s.repair()
		return 0, err
	}
	off = seg.size
	seg.size += int64(len(b))
	s.dirty = true
	s.lastAt = now
	return off, nil
}

func (s *Spool) fail(err error) error {
	s.broken = err
	return unwritable(err)
}

// repair cuts off what a failed write may have left.
func (s *Spool) repair() error {
	if !s.torn {
		return nil
	}
	if err := s.file.Truncate(s.tail().size); err != nil {
		return err
	}
	s.torn = false
	return nil
}

// rotate begins a new file. The old one is synced and closed in the background.
func (s *Spool) rotate() error {
	seq := s.tail().seq + 1
	f, seg, err := s.create(seq)
	if err != nil {
		return err
	}
	s.unsynced = append(s.unsynced, s.file)
	s.file, s.segs = f, append(s.segs, seg)
	return nil
}

// start is the payload of a segment's first record: with it the numbers go on
// when every older file is gone.
type start struct {
	Instance string        `json:"instance"`
	Host     string        `json:"host"`
	Numbers  [Shards]int64 `json:"numbers"`
}

func (s *Spool) create(seq uint64) (*os.File, *segment, error) {
	body, err := encode(start{s.instance.String(), s.o.Host, s.numbers})
	if err != nil {
		return nil, nil, err
	}
	path := segmentPath(s.dir, seq)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	b := record{kind: kindStart, payload: body}.frame()
	seal(b, s.o.Now(), 0, 0)
	if _, err := f.WriteAt(b, 0); err != nil {
		return nil, nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	s.dirty = true
	return f, &segment{seq: seq, path: path, size: int64(len(b))}, nil
}

// run syncs what is dirty, says that the process is alive, and tries a spool
// that could not be written, until stop.
func (s *Spool) run() {
	defer s.stopped.Done()
	tick := time.NewTicker(s.o.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.alive()
			if err := s.sync(); err != nil {
				s.o.Log.Error("spool not synced", "dir", s.dir, "error", err)
			}
		}
	}
}

// probe is large enough that a disk that takes it takes the next calls too.
const probe = 16 << 10

func (s *Spool) alive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := s.o.Now().Sub(s.lastAt)
	r := record{kind: kindAlive}
	switch {
	case s.broken != nil && idle.Abs() >= min(time.Second, s.o.AliveEvery):
		r.payload = make([]byte, probe)
		s.lastAt = s.o.Now()
	case s.broken == nil && idle.Abs() >= s.o.AliveEvery:
	default:
		return
	}
	_, _ = s.append(r.frame(), 0, 0) // Health says it
}

// sync makes everything written so far durable, and says so to those who wait.
func (s *Spool) sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	if !s.dirty {
		s.mu.Unlock()
		return nil
	}
	sealed, current := s.unsynced, s.file
	to := position{s.tail().seq, s.tail().size}
	s.unsynced, s.dirty = nil, false
	s.mu.Unlock()

	err := s.flush(sealed, current)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.unsynced, s.dirty, s.broken = append(sealed, s.unsynced...), true, err
		return err
	}
	for _, f := range sealed {
		f.Close()
	}
	s.synced = to
	s.wake()
	return nil
}

func (s *Spool) flush(sealed []*os.File, current *os.File) error {
	for _, f := range sealed {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := current.Sync(); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// wake tells those who wait on changed. The lock is held.
func (s *Spool) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}
