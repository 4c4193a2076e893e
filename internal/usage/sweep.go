package usage

import (
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
)

// sweep deletes, oldest first, the files of which nothing has been needed for
// KeepFor: every event in them is committed, and every call admitted in them has
// a committed end. A call that is still open does not hold its file: its
// admission is copied forward, and the copy is durable before the file goes. One
// sweep runs at a time.
func (s *Spool) sweep() error {
	for {
		seg, ids := s.sweepable()
		switch {
		case seg == nil:
			return nil
		case len(ids) > 0:
			if err := s.copyForward(seg, ids); err != nil {
				return fmt.Errorf("usage: sweep: %w", err)
			}
		default:
			if err := os.Remove(seg.path); err != nil {
				return fmt.Errorf("usage: sweep: %w", err)
			}
			s.mu.Lock()
			s.segs = s.segs[1:]
			s.mu.Unlock()
		}
	}
}

// sweepable is the oldest file if it may go, with the calls that are still open
// in it.
func (s *Spool) sweepable() (*segment, []uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	now, p := s.o.Now(), s.progressLocked()
	for _, seg := range s.segs[:len(s.segs)-1] {
		if !seg.settled(p) {
			seg.settledAt = time.Time{}
		} else if seg.settledAt.IsZero() {
			seg.settledAt = now
		}
	}
	seg := s.segs[0]
	if len(s.segs) == 1 || seg.settledAt.IsZero() || now.Sub(seg.settledAt) < s.o.KeepFor {
		return nil, nil
	}
	return seg, s.openIn(seg)
}

func (s *Spool) openIn(seg *segment) []uuid.UUID {
	if seg.open == 0 {
		return nil
	}
	ids := make([]uuid.UUID, 0, seg.open)
	for id, o := range s.open {
		if o.seg == seg {
			ids = append(ids, id)
		}
	}
	return ids
}

// settled tells whether everything in it that ended is committed.
func (s *segment) settled(p progress) bool {
	for shard, need := range s.need {
		if need >= p.missing[shard] {
			return false
		}
	}
	return true
}

// copyForward writes the open admissions of seg, as they stand, to the last
// file, and makes them durable. It takes the lock for one call at a time.
func (s *Spool) copyForward(seg *segment, ids []uuid.UUID) error {
	f, err := os.Open(seg.path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, id := range ids {
		if err := s.copyCall(f, seg, id); err != nil {
			return err
		}
	}
	return s.sync()
}

func (s *Spool) copyCall(f *os.File, seg *segment, id uuid.UUID) error {
	s.mu.Lock()
	o := s.open[id]
	s.mu.Unlock()
	if o == nil {
		return nil // ended meanwhile
	}
	r, err := scan(f, o.off, seg.size, nil).next()
	if err != nil {
		return Damage{File: seg.path, Offset: o.off, Reason: err.Error()}
	}
	b := r.frame()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] != o {
		return nil
	}
	off, err := s.append(b, 0, 0)
	if err != nil {
		return err
	}
	to := s.tail()
	if err := s.copyState(id, o); err != nil {
		return err // the old copy stands; the next sweep makes another
	}
	seg.open--
	to.open++
	o.seg, o.off = to, off
	return nil
}

// copyState repeats what was noted of a call since its admission.
func (s *Spool) copyState(id uuid.UUID, o *openCall) error {
	if o.moved != nil {
		if err := s.copyNote(kindMoved, id, o.moved); err != nil {
			return err
		}
	}
	if o.checkpoint != nil {
		if err := s.copyNote(kindCheckpoint, id, o.checkpoint); err != nil {
			return err
		}
	}
	if o.ending != nil {
		if err := s.copyNote(kindEnding, id, o.ending); err != nil {
			return err
		}
	}
	if o.until.IsZero() {
		return nil
	}
	_, err := s.append(record{kind: kindExtended, id: id}.frame(), 0, o.until.UnixMicro())
	return err
}

func (s *Spool) copyNote(k kind, id uuid.UUID, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	_, err = s.append(record{kind: k, id: id, payload: body}.frame(), 0, 0)
	return err
}
