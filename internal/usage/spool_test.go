package usage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"weir/internal/id"
	"weir/internal/limits"
)

func TestReopenGivesBackOpenAdmissionsAndTail(t *testing.T) {
	t.Parallel()
	dir, c, tenant := t.TempDir(), newClock(), id.New()
	s, rec := spoolAt(t, dir, SpoolOptions{Now: c.now})
	if !rec.Fresh || rec.Clean {
		t.Fatalf("a new directory is %+v", rec)
	}
	ended, streaming, waiting := call(tenant, c.now()), call(tenant, c.now().Add(time.Millisecond)), call(tenant, c.now().Add(2*time.Millisecond))
	for _, e := range []Event{ended, streaming, waiting} {
		must(t, s.Admit(admission(e)))
	}
	counted := limits.Tokens{Input: 7, Output: 2}
	until := c.now().Add(time.Hour)
	must(t, s.Checkpoint(tenant, streaming.ID, limits.Tokens{Input: 7, Output: 1}))
	must(t, s.Checkpoint(tenant, streaming.ID, counted))
	must(t, s.Extend(waiting.ID, until))
	c.advance(time.Minute)
	must(t, s.Finish(&ended))
	crash(s)

	s, rec = spoolAt(t, dir, SpoolOptions{Now: c.now})
	if rec.Fresh || rec.Clean || !rec.LastAlive.Equal(c.now()) || len(rec.Damage) > 0 {
		t.Fatalf("recovery says %+v", rec)
	}
	if len(rec.Open) != 2 || rec.Open[0].Event.ID != streaming.ID || rec.Open[1].Event.ID != waiting.ID {
		t.Fatalf("open are %v", rec.Open)
	}
	if got := rec.Open[0].Checkpoint; got == nil || got.Tokens != counted {
		t.Fatalf("checkpoint is %v", got)
	}
	if got := rec.Open[1].Reservation.ExpiresAt; !got.Equal(until) {
		t.Fatalf("extended until %v, want %v", got, until)
	}
	want := *admission(streaming)
	if diff := cmp.Diff(want, rec.Open[0].Admission, exactMoney); diff != "" {
		t.Fatal(diff)
	}
	tail := []Ended{{ID: ended.ID, Tenant: tenant, Shard: ShardOf(tenant), Number: 1, Charges: ended.Charges}}
	if diff := cmp.Diff(tail, rec.Tail); diff != "" {
		t.Fatal(diff)
	}
	if err := s.Finish(&ended); !errors.Is(err, ErrNotOpen) {
		t.Fatalf("a second end after a restart: %v", err)
	}
	must(t, s.Finish(&streaming))
	if streaming.Number != 2 {
		t.Fatalf("number %d follows 1", streaming.Number)
	}
}

func TestEachAdmittedCallEndsOnce(t *testing.T) {
	t.Parallel()
	s, _ := spoolAt(t, t.TempDir(), SpoolOptions{})
	e := call(id.New(), time.Now())
	must(t, s.Admit(admission(e)))
	var wins, refused int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			mine := e
			err := s.Finish(&mine)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins++
			} else if errors.Is(err, ErrNotOpen) {
				refused++
			}
		})
	}
	wg.Wait()
	if wins != 1 || refused != 15 {
		t.Fatalf("%d ends, %d refused", wins, refused)
	}
	stranger := call(id.New(), time.Now())
	if err := s.Finish(&stranger); !errors.Is(err, ErrNotOpen) {
		t.Fatalf("a call that was never admitted: %v", err)
	}
	if err := s.Checkpoint(e.Tenant, e.ID, limits.Tokens{}); !errors.Is(err, ErrNotOpen) {
		t.Fatalf("a checkpoint after the end: %v", err)
	}
}

func TestCleanStopKeepsTheSnapshotOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := spoolAt(t, dir, SpoolOptions{})
	e := refusal(id.New(), time.Now())
	must(t, s.Finish(&e))
	snapshot := bytes.Repeat([]byte("ledger"), 300_000)
	must(t, s.Close(snapshot))
	if err := s.Finish(&e); err == nil {
		t.Fatal("a closed spool took a record")
	}
	s, rec := spoolAt(t, dir, SpoolOptions{})
	if !rec.Clean || !bytes.Equal(rec.Snapshot, snapshot) {
		t.Fatalf("clean %v, snapshot of %d bytes", rec.Clean, len(rec.Snapshot))
	}
	crash(s)
	if _, rec = spoolAt(t, dir, SpoolOptions{}); rec.Clean || rec.Snapshot != nil {
		t.Fatal("the clean mark counted twice")
	}
}

func TestDirectoryInUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spoolAt(t, dir, SpoolOptions{})
	if _, _, err := OpenSpool(dir, SpoolOptions{}); err == nil {
		t.Fatal("two processes hold one spool")
	}
}

func TestTornTailAtEveryByteLosesOnlyTheTornRecord(t *testing.T) {
	t.Parallel()
	dir, tenant := t.TempDir(), id.New()
	s, _ := spoolAt(t, dir, SpoolOptions{})
	whole, torn := refusal(tenant, time.Now()), refusal(tenant, time.Now())
	must(t, s.Finish(&whole))
	before := s.tail().size
	must(t, s.Finish(&torn))
	path, after := s.tail().path, s.tail().size
	crash(s)
	content, err := os.ReadFile(path)
	must(t, err)

	var g errgroup.Group
	g.SetLimit(64) // they wait for the disk, and do so together
	for size := before; size < after; size++ {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), content[:size], 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "instance"), []byte(s.Instance().String()), 0o600))
		g.Go(func() error {
			again, rec, err := OpenSpool(dir, SpoolOptions{SyncEvery: time.Hour})
			if err != nil {
				return err
			}
			defer crash(again)
			if len(rec.Tail) != 1 || rec.Tail[0].ID != whole.ID || len(rec.Damage) > 0 {
				return fmt.Errorf("cut at %d of %d: %+v", size, after, rec)
			}
			next := refusal(tenant, time.Now())
			if err := again.Finish(&next); err != nil || next.Number != 2 {
				return fmt.Errorf("cut at %d: number %d, %w", size, next.Number, err)
			}
			if info, err := os.Stat(filepath.Join(dir, filepath.Base(path))); err != nil || info.Size() != before {
				return fmt.Errorf("cut at %d: %d bytes stay, want %d", size, info.Size(), before)
			}
			return nil
		})
	}
	must(t, g.Wait())
}

func TestDamageInTheMiddleIsNamedKeptAndSteppedOver(t *testing.T) {
	t.Parallel()
	dir, tenant := t.TempDir(), id.New()
	s, _ := spoolAt(t, dir, SpoolOptions{})
	var events []Event
	var offsets []int64
	for range 5 {
		e := refusal(tenant, time.Now())
		offsets = append(offsets, s.tail().size)
		must(t, s.Finish(&e))
		events = append(events, e)
	}
	path := s.tail().path
	crash(s)
	crash2, _ := spoolAt(t, dir, SpoolOptions{}) // a later file: the damage is in an older one
	crash(crash2)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("!!"), offsets[2]+headerSize+5)
	must(t, errors.Join(err, f.Close()))

	s, rec := spoolAt(t, dir, SpoolOptions{})
	if len(rec.Tail) != 4 {
		t.Fatalf("%d of 4 intact events were read", len(rec.Tail))
	}
	if len(rec.Damage) != 2 || rec.Damage[0].File != path || rec.Damage[0].Offset != offsets[2] {
		t.Fatalf("damage is %v", rec.Damage)
	}
	kept, err := os.ReadFile(rec.Damage[0].Kept)
	must(t, err)
	if int64(len(kept)) != offsets[3]-offsets[2] {
		t.Fatalf("%d bytes kept aside", len(kept))
	}
	var seen []uuid.UUID
	_, err = s.read(position{}, func(r record) bool { seen = append(seen, r.id); return true })
	must(t, err)
	if diff := cmp.Diff([]uuid.UUID{events[0].ID, events[1].ID, events[3].ID, events[4].ID}, seen); diff != "" {
		t.Fatal(diff)
	}
	if p := s.progress(); p.given[ShardOf(tenant)] != 5 {
		t.Fatalf("numbers go on from %d", p.given[ShardOf(tenant)])
	}
}

func TestNumbersGoOnWhenEveryOlderFileIsGone(t *testing.T) {
	t.Parallel()
	dir, tenant, c := t.TempDir(), id.New(), newClock()
	o := SpoolOptions{SegmentBytes: 4 << 10, Now: c.now}
	s, _ := spoolAt(t, dir, o)
	for range 40 {
		e := refusal(tenant, c.now())
		must(t, s.Finish(&e))
	}
	shard := ShardOf(tenant)
	commitTo(s, shard, 40)
	must(t, s.sweep())
	c.advance(11 * time.Minute)
	must(t, s.sweep())
	crash(s)
	for range 3 { // each life starts a file of its own
		s, _ = spoolAt(t, dir, o)
		commitTo(s, shard, 40)
		must(t, s.sweep())
		c.advance(11 * time.Minute)
		must(t, s.sweep())
		crash(s)
	}
	s, rec := spoolAt(t, dir, o)
	if len(rec.Tail) > 0 {
		t.Fatalf("%d events are still on disk", len(rec.Tail))
	}
	e := refusal(tenant, c.now())
	must(t, s.Finish(&e))
	if e.Number != 41 {
		t.Fatalf("number %d after 40", e.Number)
	}
}

func commitTo(s *Spool, shard int, last int64) {
	var marks [Shards]numbers
	marks[shard].add(1, last)
	s.commit(marks)
}

func TestFilesGoOnlyWhenNothingInThemIsNeeded(t *testing.T) {
	t.Parallel()
	dir, tenant, c := t.TempDir(), id.New(), newClock()
	shard := ShardOf(tenant)
	s, _ := spoolAt(t, dir, SpoolOptions{SegmentBytes: 8 << 10, Now: c.now})
	long, short := call(tenant, c.now()), call(tenant, c.now())
	must(t, s.Admit(admission(long)))
	must(t, s.Admit(admission(short)))
	must(t, s.Checkpoint(tenant, long.ID, limits.Tokens{Output: 5}))
	must(t, s.Extend(long.ID, c.now().Add(time.Hour)))
	first := s.tail().path
	for range 30 {
		e := refusal(tenant, c.now())
		must(t, s.Finish(&e))
	}
	must(t, s.Finish(&short)) // number 31, in a later file
	there := func() bool { _, err := os.Stat(first); return err == nil }
	sweepLater := func() {
		must(t, s.sweep())
		c.advance(11 * time.Minute)
		must(t, s.sweep())
	}

	commitTo(s, shard, 30)
	sweepLater()
	if !there() {
		t.Fatal("the file went before the end of a call admitted in it was committed")
	}
	commitTo(s, shard, 31)
	must(t, s.sweep())
	c.advance(9 * time.Minute)
	must(t, s.sweep())
	if !there() {
		t.Fatal("the file went early")
	}
	c.advance(2 * time.Minute)
	must(t, s.sweep())
	if there() {
		t.Fatal("an open call holds its file")
	}
	crash(s)
	s, rec := spoolAt(t, dir, SpoolOptions{Now: c.now})
	if len(rec.Open) != 1 || rec.Open[0].Event.ID != long.ID || rec.Open[0].Checkpoint.Tokens.Output != 5 || rec.Open[0].Reservation.ExpiresAt.Sub(long.StartedAt) != time.Hour {
		t.Fatalf("the copied call is %+v", rec.Open)
	}
	must(t, s.Finish(&long))
}

func TestAdmissionThatTheBooksWouldNotTakeIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := spoolAt(t, t.TempDir(), SpoolOptions{})
	bad := map[string]func(*Event){
		"absurd_count": func(e *Event) { e.Tokens.Input = -1 },
		"absurd_time":  func(e *Event) { e.StartedAt = e.StartedAt.Add(-48 * time.Hour) },
		"bad_id":       func(e *Event) { e.Tenant = uuid.Nil },
		"bad_currency": func(e *Event) { e.Currency = "" },
	}
	for reason, spoil := range bad {
		a := admission(call(id.New(), time.Now()))
		spoil(&a.Event)
		if err := s.Admit(a); err == nil {
			t.Errorf("%s was admitted", reason)
		}
	}
	odd := call(id.New(), time.Now())
	odd.ModelAsked, odd.EndUser = "a\x00b\xff", string(bytes.Repeat([]byte("é"), 300))
	must(t, s.Admit(admission(odd)))
	must(t, s.Finish(&odd))
	if odd.ModelAsked != "a\uFFFDb\uFFFD" || len(odd.EndUser) != 200 {
		t.Fatalf("stored as %q, %d bytes", odd.ModelAsked, len(odd.EndUser))
	}
}
