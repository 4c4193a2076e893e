package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"weir/internal/id"
)

// OpenSpool takes the directory (made if it is missing) for this process and
// says what the earlier life left there. A directory that another process holds,
// or that belongs to nobody's identity though it has records, is an error.
// Records that were damaged stop nothing: they are in Recovery.Damage, and their
// bytes are kept.
func OpenSpool(dir string, o SpoolOptions) (*Spool, Recovery, error) {
	o.fill()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Recovery{}, fmt.Errorf("usage: spool: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if held, err := lock.TryLock(); err != nil {
		return nil, Recovery{}, fmt.Errorf("usage: spool lock: %w", err)
	} else if !held {
		return nil, Recovery{}, fmt.Errorf("%w: %s", ErrHeld, dir)
	}
	_ = os.Remove(wantedPath(dir)) // what is missing was not asked for
	s := &Spool{
		dir: dir, o: o, lock: lock, started: o.Now(), stop: make(chan struct{}), changed: make(chan struct{}),
		open: map[uuid.UUID]*openCall{},
	}
	rec, err := s.begin()
	if err != nil {
		return nil, Recovery{}, errors.Join(err, lock.Close())
	}
	s.stopped.Add(1)
	go s.run()
	return s, rec, nil
}

func (o *SpoolOptions) fill() {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 16 << 20
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = 100 * time.Millisecond
	}
	if o.KeepFor == 0 {
		o.KeepFor = 10 * time.Minute
	}
	if o.AliveEvery == 0 {
		o.AliveEvery = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// begin reads what is there and starts a file of this life's own.
func (s *Spool) begin() (Recovery, error) {
	var rec Recovery
	seqs, err := segments(s.dir)
	if err != nil {
		return rec, err
	}
	if rec.Fresh, err = s.identify(len(seqs) == 0); err != nil {
		return rec, err
	}
	if s.journal, err = s.takeJournal(seqs); err != nil {
		return rec, err
	}
	if err := s.recover(seqs, &rec); err != nil {
		return rec, err
	}
	if rec.Clean, rec.Snapshot, err = s.takeClean(); err != nil {
		return rec, err
	}
	if j := s.journal; j != nil && !rec.Clean && !j.broken && len(rec.Damage) == 0 {
		rec.Snapshot, rec.Journal = j.snapshot, j.entries
	}
	s.journal = nil
	seq := uint64(1)
	if len(seqs) > 0 {
		seq = seqs[len(seqs)-1] + 1
	}
	f, seg, err := s.create(seq)
	if err != nil {
		return rec, fmt.Errorf("usage: spool: %w", err)
	}
	s.file, s.segs, s.lastAt = f, append(s.segs, seg), s.started
	return rec, s.sync()
}

// identify reads the identity of the directory, or mints it where nothing was
// ever written.
func (s *Spool) identify(empty bool) (fresh bool, err error) {
	path := filepath.Join(s.dir, "instance")
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && empty:
		s.instance = id.New()
		return true, writeFile(path, []byte(s.instance.String()+"\n"))
	case err != nil:
		return false, fmt.Errorf("usage: the spool's identity: %w", err)
	}
	s.instance, err = uuid.Parse(strings.TrimSpace(string(b)))
	if err != nil {
		return false, fmt.Errorf("usage: the spool's identity in %s cannot be read", path)
	}
	return false, nil
}

// segments are the numbers of the files in dir, in order.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir) // sorted by name, and so by number
	if err != nil {
		return nil, fmt.Errorf("usage: spool: %w", err)
	}
	var seqs []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		if !ok {
			continue
		}
		var seq uint64
		if _, err := fmt.Sscanf(name, "%d", &seq); err != nil || segmentPath(dir, seq) != filepath.Join(dir, e.Name()) {
			return nil, fmt.Errorf("usage: %s is no file of a spool", filepath.Join(dir, e.Name()))
		}
		seqs = append(seqs, seq)
	}
	return seqs, nil
}

// Close makes everything durable, marks a clean stop, keeps the limiter's
// snapshot for the next life, and lets go of the directory. Every later call of
// a writing method is Unavailable.
func (s *Spool) Close(snapshot []byte) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	end := position{s.tail().seq, s.tail().size}
	err := s.repair()
	s.mu.Unlock()
	close(s.stop)
	s.stopped.Wait()
	err = errors.Join(err, s.sync())
	if err == nil {
		err = s.putClean(end, snapshot)
	}
	return errors.Join(err, s.file.Close(), s.lock.Close())
}

func (s *Spool) cleanPath() string { return filepath.Join(s.dir, "clean") }

func (s *Spool) putClean(end position, snapshot []byte) error {
	payload := binary.LittleEndian.AppendUint64(nil, uint64(end.off))
	b := record{kind: kindClean, id: s.instance, payload: append(payload, snapshot...)}.frame()
	seal(b, s.o.Now(), 0, int64(end.seq))
	return writeFile(s.cleanPath(), b)
}

// takeClean tells whether the earlier life ended by Close, right where the files
// end, and removes the mark: it counts once.
func (s *Spool) takeClean() (clean bool, snapshot []byte, err error) {
	b, err := os.ReadFile(s.cleanPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("usage: spool: %w", err)
	}
	if err := errors.Join(os.Remove(s.cleanPath()), syncDir(s.dir)); err != nil {
		return false, nil, fmt.Errorf("usage: spool: %w", err)
	}
	end, snapshot, ok := s.mark(b, kindClean)
	if !ok || len(s.segs) == 0 || end != (position{s.tail().seq, s.tail().size}) {
		return false, nil, nil
	}
	return true, snapshot, nil
}

// mark reads a place and a snapshot, as putClean and Keep write them.
func (s *Spool) mark(b []byte, k kind) (end position, snapshot []byte, ok bool) {
	r, _, err := parseWithin(b, 1<<31)
	if err != nil || r.kind != k || r.id != s.instance || len(r.payload) < 8 {
		return end, nil, false
	}
	return position{uint64(r.number), int64(binary.LittleEndian.Uint64(r.payload))}, r.payload[8:], true
}
