package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"weir/internal/limits"
)

// Place is a place between two records of a spool.
type Place struct{ at position }

// Place is where the next record will be written.
func (s *Spool) Place() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Place{position{s.tail().seq, s.tail().size}}
}

// Keep keeps a snapshot of the limiter for a life that follows a kill: taken
// after the place was noted, so that with the records from there on nothing is
// missing. It replaces the one before.
func (s *Spool) Keep(from Place, snapshot []byte) error {
	payload := binary.LittleEndian.AppendUint64(nil, uint64(from.at.off))
	b := record{kind: kindSnapshot, id: s.instance, payload: append(payload, snapshot...)}.frame()
	seal(b, s.o.Now(), 0, int64(from.at.seq))
	return writeFile(s.snapshotPath(), b)
}

func (s *Spool) snapshotPath() string { return filepath.Join(s.dir, "snapshot") }

// journal gathers, while the files are read, what happened after a snapshot.
type journal struct {
	from     position
	snapshot []byte
	admitted map[uuid.UUID]limits.Reservation // after it
	entries  []limits.Entry
	broken   bool
}

// takeJournal begins with the snapshot that was kept last; nil if there is none
// that can be read, or whose records are gone.
func (s *Spool) takeJournal(seqs []uint64) (*journal, error) {
	b, err := os.ReadFile(s.snapshotPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("usage: spool: %w", err)
	}
	from, snapshot, ok := s.mark(b, kindSnapshot)
	if !ok || len(seqs) == 0 || from.seq < seqs[0] {
		return nil, nil
	}
	return &journal{from: from, snapshot: snapshot, admitted: map[uuid.UUID]limits.Reservation{}}, nil
}

// note takes a record over before the spool does.
func (j *journal) note(s *Spool, seg *segment, off int64, r record) {
	if j == nil || j.broken || seg.seq < j.from.seq || seg.seq == j.from.seq && off < j.from.off {
		return
	}
	var err error
	switch r.kind {
	case kindAdmitted:
		if s.open[r.id] == nil { // else copied forward
			err = j.noteAdmitted(r)
		}
	case kindMoved:
		err = j.noteMoved(s, r)
	case kindEnded:
		err = j.noteEnded(s, r)
	}
	j.broken = err != nil
}

func (j *journal) noteAdmitted(r record) error {
	var a struct {
		Reservation limits.Reservation `json:"reservation"`
	}
	if err := decodeOwn(r.payload, &a); err != nil {
		return err
	}
	j.admitted[r.id] = a.Reservation
	j.entries = append(j.entries, limits.Entry{At: r.at, Reservation: a.Reservation})
	return nil
}

// reservation is an open call as it stands, and whether it was admitted after the
// snapshot.
func (j *journal) reservation(o *openCall, id uuid.UUID) (r limits.Reservation, after bool, err error) {
	if r, after = j.admitted[id]; after {
		return r, true, nil
	}
	a, err := o.read()
	return a.Reservation, false, err
}

func (j *journal) noteMoved(s *Spool, r record) error {
	o := s.open[r.id]
	if o == nil {
		return nil
	}
	var to Moved
	if err := decodeOwn(r.payload, &to); err != nil {
		return err
	}
	was, after, err := j.reservation(o, r.id)
	if err != nil || was.Moves == to.Reservation.Moves { // copied forward
		return err
	}
	if after {
		j.admitted[r.id] = to.Reservation
	}
	j.entries = append(j.entries, limits.Entry{At: r.at, Reservation: was, Earlier: !after, Moved: &to.Reservation})
	return nil
}

func (j *journal) noteEnded(s *Spool, r record) error {
	o := s.open[r.id]
	if o == nil {
		return nil // a refusal or a correction
	}
	var e Event
	if err := decodeOwn(r.payload, &e); err != nil {
		return err
	}
	if e.Outcome == Expired {
		return nil // it stays charged
	}
	reservation, after, err := j.reservation(o, r.id)
	if err != nil {
		return err
	}
	delete(j.admitted, r.id)
	actual := limits.Cost{Requests: e.Requests, Units: e.Units, Tokens: e.Tokens}
	j.entries = append(j.entries, limits.Entry{At: r.at, Reservation: reservation, Earlier: !after, Actual: &actual})
	return nil
}
