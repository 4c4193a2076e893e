package usage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// Recovery is what the earlier life of a spool left.
type Recovery struct {
	Fresh     bool           // there was no earlier life
	Clean     bool           // it ended by Close
	Snapshot  []byte         // what Close was given, or after a kill what Keep was given last
	Journal   []limits.Entry // after a kill: what happened after that
	LastAlive time.Time      // the last instant that it is known to have run; zero if Fresh
	Open      []OpenAdmission
	Tail      []Ended // ended calls still on disk, committed or not
	Damage    []Damage
}

// OpenAdmission is a call that was admitted and has not ended, as it stood: with
// its extensions and the attempts that it went through.
type OpenAdmission struct {
	Admission
	Checkpoint *Checkpoint // nil: none was written

	moved  *Moved  // nil: never
	ending *ending // nil: it was not ending
}

// Ended is what the books need of a terminal event that may not be committed.
type Ended struct {
	ID      uuid.UUID
	Tenant  uuid.UUID
	Shard   int
	Number  int64
	Charges []limits.Charge
}

// recover reads every file in order.
func (s *Spool) recover(seqs []uint64, rec *Recovery) error {
	for i, seq := range seqs {
		seg := &segment{seq: seq, path: segmentPath(s.dir, seq)}
		s.segs = append(s.segs, seg)
		if err := s.recoverSegment(seg, i == len(seqs)-1, rec); err != nil {
			return fmt.Errorf("usage: %s: %w", seg.path, err)
		}
	}
	return s.readOpen(rec)
}

func (s *Spool) recoverSegment(seg *segment, last bool, rec *Recovery) error {
	f, err := os.OpenFile(seg.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	seg.size = info.Size()
	sc := scan(f, 0, seg.size, nil)
	for {
		off := sc.off
		r, err := sc.next()
		switch {
		case errors.Is(err, io.EOF):
			return f.Sync()
		case errors.Is(err, errTorn), errors.Is(err, errDamaged):
			next, err := s.mend(f, seg, off, last, err, rec)
			if err != nil {
				return err
			}
			sc = scan(f, next, seg.size, nil)
		case err != nil:
			return err
		default:
			if err := s.replay(seg, off, r, rec); err != nil {
				return err
			}
		}
	}
}

// replay takes one record over.
func (s *Spool) replay(seg *segment, off int64, r record, rec *Recovery) error {
	s.journal.note(s, seg, off, r)
	if r.at.After(rec.LastAlive) {
		rec.LastAlive = r.at
	}
	switch r.kind {
	case kindStart:
		return s.replayStart(seg, off, r, rec)
	case kindAdmitted:
		o := &openCall{seg: seg, off: off}
		if was := s.open[r.id]; was != nil { // copied forward
			was.seg.open--
			o.checkpoint, o.until, o.moved, o.ending = was.checkpoint, was.until, was.moved, was.ending
		}
		s.hold(r.id, o)
	case kindCheckpoint:
		if o := s.open[r.id]; o != nil {
			o.checkpoint = new(Checkpoint)
			return decodeOwn(r.payload, o.checkpoint)
		}
	case kindExtended:
		if o := s.open[r.id]; o != nil {
			o.until = time.UnixMicro(r.number).UTC()
		}
	case kindMoved:
		if o := s.open[r.id]; o != nil {
			o.moved = new(Moved)
			return decodeOwn(r.payload, o.moved)
		}
	case kindEnding:
		if o := s.open[r.id]; o != nil {
			o.ending = new(ending)
			return decodeOwn(r.payload, o.ending)
		}
	case kindEnded:
		return s.replayEnded(seg, off, r, rec)
	case kindElsewhere:
		s.letGo(r.id)
	case kindAlive:
	default:
		return fmt.Errorf("a record at byte %d is of a newer version", off)
	}
	return nil
}

func (s *Spool) replayStart(seg *segment, off int64, r record, rec *Recovery) error {
	var st start
	if err := decodeOwn(r.payload, &st); err != nil {
		return err
	}
	if st.Instance != s.instance.String() {
		return errors.New("it belongs to another instance")
	}
	for shard, n := range st.Numbers {
		s.give(seg, off, shard, n+1, rec)
	}
	return nil
}

func (s *Spool) replayEnded(seg *segment, off int64, r record, rec *Recovery) error {
	e := Ended{ID: r.id, Shard: r.shard, Number: r.number}
	if err := decodeOwn(r.payload, &struct {
		Tenant  *uuid.UUID       `json:"tenant"`
		Charges *[]limits.Charge `json:"charges"`
	}{&e.Tenant, &e.Charges}); err != nil {
		return err
	}
	s.give(seg, off, r.shard, r.number, rec)
	s.numbers[r.shard] = max(s.numbers[r.shard], r.number)
	seg.note(r.shard, r.number)
	s.release(r.id, r.shard, r.number)
	rec.Tail = append(rec.Tail, e)
	return nil
}

// give notes that next is the number that comes next. Those between the last one
// seen and next will never come: they were dropped with their files, or lost.
func (s *Spool) give(seg *segment, off int64, shard int, next int64, rec *Recovery) {
	last := s.numbers[shard]
	if next <= last+1 {
		return
	}
	if seg != s.segs[0] || off != 0 {
		reason := fmt.Sprintf("events %d to %d of shard %d are missing", last+1, next-1, shard)
		rec.Damage = append(rec.Damage, Damage{File: seg.path, Offset: off, Reason: reason})
	}
	s.done[shard].add(last+1, next-1)
	s.numbers[shard] = next - 1
}

// readOpen reads the admissions that are still open, in order of admission.
func (s *Spool) readOpen(rec *Recovery) error {
	for _, o := range s.open {
		a, err := o.read()
		if err != nil {
			return err
		}
		o.tenant, o.admittedAt = a.Event.Tenant, a.Event.StartedAt
		rec.Open = append(rec.Open, a)
	}
	slices.SortFunc(rec.Open, func(a, b OpenAdmission) int {
		return cmp.Or(a.Event.StartedAt.Compare(b.Event.StartedAt), cmp.Compare(a.Event.ID.String(), b.Event.ID.String()))
	})
	return nil
}

// read is the admission as it was written.
func (o *openCall) read() (OpenAdmission, error) {
	a := OpenAdmission{Checkpoint: o.checkpoint, moved: o.moved, ending: o.ending}
	f, err := os.Open(o.seg.path)
	if err != nil {
		return a, err
	}
	defer f.Close()
	r, err := scan(f, o.off, o.seg.size, nil).next()
	if err == nil {
		err = decodeOwn(r.payload, &a.Admission)
	}
	if err != nil {
		return a, fmt.Errorf("usage: %s at byte %d: %w", o.seg.path, o.off, err)
	}
	if o.moved != nil {
		o.moved.apply(&a.Admission)
	}
	if !o.until.IsZero() {
		a.Reservation.ExpiresAt = o.until
	}
	return a, nil
}
