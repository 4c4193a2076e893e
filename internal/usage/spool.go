package usage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/limits"
)

// Spool is where an instance writes every call down: before it goes out, and
// when it has ended. It is a directory of append-only files, held by a lock.
//
// A method that returned nil has handed its record to the kernel, so a killed
// process loses nothing; a power cut may lose the last SyncEvery. Ended calls
// are numbered 1, 2, 3 … per shard, in the order of the file. Nothing is sent to
// the queue before it is on disk for good: a number that any other process has
// seen is never given twice.
//
// Methods are safe for concurrent use. A write that fails is an Unavailable
// metering_unavailable; nothing of it stays.
type Spool struct {
	dir      string
	instance uuid.UUID
	started  time.Time
	o        SpoolOptions
	lock     *flock.Flock
	stop     chan struct{}
	stopped  sync.WaitGroup
	syncing  sync.Mutex // one sync at a time; taken before mu

	mu      sync.Mutex
	segs    []*segment // oldest first; the last one is written to
	file    *os.File   // of the last segment
	torn    bool       // bytes of a failed write may lie behind the last record
	closed  bool
	broken  error // why the last write or sync failed
	lastAt  time.Time
	journal *journal        // while the files are read
	numbers [Shards]int64   // the last number given
	done    [Shards]numbers // committed, or never to come
	open    map[uuid.UUID]*openCall

	unsynced []*os.File // sealed files that are not on disk for good
	dirty    bool
	synced   position
	changed  chan struct{} // closed when synced or done moves
}

// SpoolOptions are the spool's sizes and times; zero values mean the defaults.
type SpoolOptions struct {
	Host         string        // what the instance calls its machine
	SegmentBytes int64         // 16 MiB
	SyncEvery    time.Duration // 100 ms
	KeepFor      time.Duration // how long a file stays after it is needed no more; 10 min
	AliveEvery   time.Duration // 5 s
	Now          func() time.Time
	Log          *slog.Logger
}

// openCall is an admitted call that has not ended.
type openCall struct {
	tenant     uuid.UUID
	admittedAt time.Time
	seg        *segment
	off        int64 // of its admission in seg
	checkpoint *Checkpoint
	until      time.Time // as last extended; zero: never
	moved      *Moved    // as it last moved; nil: never
	ending     *ending   // nil: the engine was not told of an end
}

// Checkpoint is what a running stream had counted.
type Checkpoint struct {
	Tokens limits.Tokens `json:"tokens"`
	At     time.Time     `json:"at"`
}

// position is a place between two records.
type position struct {
	seq uint64
	off int64
}

// ErrUnwritable is what Health says while the spool cannot be written.
var ErrUnwritable = errors.New("usage: the spool cannot be written")

// ErrNotOpen is returned for a call that was never admitted here or has ended.
var ErrNotOpen = errors.New("usage: the call is not open")

// Instance is the identity of the directory, and so of this process.
func (s *Spool) Instance() uuid.UUID { return s.instance }

// Health is nil while records can be written, and wraps ErrUnwritable from a
// write that failed until one that works; the spool tries by itself.
func (s *Spool) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, s.broken)
	}
	return nil
}

// Admit writes down a call before it goes out. A call whose event the books
// would not take, or whose id is open, is an error that is not Unavailable. What
// the books would not take of its texts and times is cleaned in a.
func (s *Spool) Admit(a *Admission) error {
	a.Event.clean()
	if w := a.Event.wrong(); w != "" {
		return fmt.Errorf("usage: admission %s: %s", a.Event.ID, w)
	}
	b, done, err := framed(kindAdmitted, a.Event.ID, a)
	defer done()
	if err != nil {
		return fmt.Errorf("usage: admission %s: %w", a.Event.ID, err)
	}
	if n := len(b) - headerSize; n > maxBody {
		return fmt.Errorf("usage: admission %s of %d bytes is too large", a.Event.ID, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[a.Event.ID] != nil {
		return fmt.Errorf("usage: admission %s is open already", a.Event.ID)
	}
	off, err := s.append(b, 0, 0)
	if err != nil {
		return err
	}
	s.hold(a.Event.ID, &openCall{tenant: a.Event.Tenant, admittedAt: a.Event.StartedAt, seg: s.tail(), off: off})
	return nil
}

// Checkpoint notes what a running stream has counted so far: what it is charged
// if its process dies. ErrNotOpen if the tenant has no such open call.
func (s *Spool) Checkpoint(tenant, id uuid.UUID, tokens limits.Tokens) error {
	c := Checkpoint{tokens, stored(s.o.Now())}
	body, err := encode(c)
	if err != nil {
		return err
	}
	b := record{kind: kindCheckpoint, id: id, payload: body}.frame()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o == nil || o.tenant != tenant {
		return ErrNotOpen
	}
	if _, err := s.append(b, 0, 0); err != nil {
		return err
	}
	o.checkpoint = &c
	return nil
}

// Extend notes a later end of a reservation. ErrNotOpen if no such call is open.
func (s *Spool) Extend(id uuid.UUID, until time.Time) error {
	until = stored(until)
	b := record{kind: kindExtended, id: id}.frame()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o == nil {
		return ErrNotOpen
	}
	if _, err := s.append(b, 0, until.UnixMicro()); err != nil {
		return err
	}
	o.until = until
	return nil
}

// Leave notes that an open call is another instance's to end, or was ended there:
// it has no event here. ErrNotOpen if no such call is open.
func (s *Spool) Leave(id uuid.UUID) error {
	b := record{kind: kindElsewhere, id: id}.frame()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == nil {
		return ErrNotOpen
	}
	if _, err := s.append(b, 0, 0); err != nil {
		return err
	}
	s.letGo(id)
	return nil
}

// Finish writes down how a call ended, and stamps e with where it stands. A call
// that was admitted ends once: a second Finish is ErrNotOpen. Refusals,
// corrections and imports were never admitted. After an Unavailable error the call is still
// open, and Finish may be tried again.
func (s *Spool) Finish(e *Event) error {
	e.clean()
	if w := e.wrong(); w != "" {
		return fmt.Errorf("usage: event %s: %s", e.ID, w)
	}
	b, done, err := framed(kindEnded, e.ID, e)
	defer done()
	if err != nil {
		return fmt.Errorf("usage: event %s: %w", e.ID, err)
	}
	if n := len(b) - headerSize; n > maxBody {
		return fmt.Errorf("usage: event %s of %d bytes is too large", e.ID, n)
	}
	shard := ShardOf(e.Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[e.ID]
	if e.admitted() && (o == nil || o.tenant != e.Tenant) {
		return ErrNotOpen
	}
	number := s.numbers[shard] + 1
	if _, err := s.append(b, shard, number); err != nil {
		return err
	}
	e.Instance, e.Shard, e.Number = s.instance, shard, number
	s.numbers[shard] = number
	s.tail().note(shard, number)
	s.release(e.ID, shard, number)
	return nil
}

// admitted tells whether an event ends a call that has an admission.
func (e *Event) admitted() bool {
	return !e.Outcome.Refused() && e.Outcome != Correction && e.Kind != KindImported
}

// hold and release keep the open calls and, per segment, what still needs it.
func (s *Spool) hold(id uuid.UUID, o *openCall) {
	s.open[id] = o
	o.seg.open++
}

func (s *Spool) release(id uuid.UUID, shard int, number int64) {
	if o := s.open[id]; o != nil {
		o.seg.need[shard] = max(o.seg.need[shard], number)
		s.letGo(id)
	}
}

func (s *Spool) letGo(id uuid.UUID) {
	if o := s.open[id]; o != nil {
		o.seg.open--
		delete(s.open, id)
	}
}

func (s *Spool) tail() *segment { return s.segs[len(s.segs)-1] }

func unwritable(err error) error {
	return fault.New(fault.Unavailable, "metering_unavailable", "Usage cannot be recorded right now, so no call can be let through. Try again in a few seconds.").
		After(5 * time.Second).Because(err)
}
