package limits

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// killed says that ledgers of scopes older than Before may have been spent at
// LastAlive, unless they are known.
type killed struct {
	Before    time.Time `json:"before"`
	LastAlive time.Time `json:"last_alive"`
}

// A snapshot is a line of JSON, then one record for each bucket and sliding
// window that is not unused. Calendar windows come from the books, open
// reservations from Restore. A life that began after a kill may not have touched
// every ledger that was spent before: until they would be free again, the next
// life has to know.
type snapshotHead struct {
	Version int     `json:"version"`
	Records int     `json:"records"`
	Killed  *killed `json:"killed,omitempty"`
}

const snapshotVersion = 2

// snapshotRecord is followed by its sub-buckets: number and amount of those that
// are not 0.
type snapshotRecord struct {
	Tenant uuid.UUID
	ID     ident2
	Kind   uint32
	Parts  uint32
	A, B   int64 // bucket: rate, ceiling; sliding: amount, 0
	C, D   int64 // bucket: level, last; sliding: 0, the current sub-bucket
}

// ident2 is an ident as encoding/binary takes it.
type ident2 struct{ A, B uint64 }

type snapshotPart struct{ Number, Amount int64 }

// Snapshot is the state that a clean stop hands to the next life, as
// MemoryOptions.Snapshot. No call may run any more.
func (m *Memory) Snapshot() ([]byte, error) {
	var body bytes.Buffer
	head := snapshotHead{Version: snapshotVersion, Killed: m.killed}
	for _, t := range m.everyone() {
		n, err := t.snapshot(&body, m.now())
		if err != nil {
			return nil, err
		}
		head.Records += n
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return append(append(raw, '\n'), body.Bytes()...), nil
}

func (t *tenant) snapshot(to *bytes.Buffer, now time.Time) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.begin(now)
	for id, r := range t.index {
		rec := snapshotRecord{Tenant: t.id, ID: ident2{id.a, id.b}, Kind: uint32(r.kind())}
		var parts []snapshotPart
		switch i := r.place(); r.kind() {
		case kindBucket:
			b := t.buckets.at(i)
			if b.refill(at.ms, &t.rooms); b.level == b.full() {
				continue
			}
			rec.A, rec.B, rec.C, rec.D = b.rate, b.ceiling, b.level, b.last
		case kindMinute:
			parts = t.minutes.at(i).slider().snapshot(&rec, at.ms)
		case kindRolling:
			parts = t.rollings.at(i).slider().snapshot(&rec, at.ms)
		default:
			continue
		}
		if r.kind() != kindBucket && len(parts) == 0 {
			continue
		}
		rec.Parts = uint32(len(parts))
		if err := binary.Write(to, binary.LittleEndian, &rec); err != nil {
			return n, err
		}
		if err := binary.Write(to, binary.LittleEndian, parts); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (s slider) snapshot(to *snapshotRecord, now int64) (parts []snapshotPart) {
	s.touch(s.amount, now)
	to.A, to.D = s.amount, s.now
	for number := s.now; s.within(number); number-- {
		if n := *s.part(number); n != 0 {
			parts = append(parts, snapshotPart{number, n})
		}
	}
	return parts
}

func (m *Memory) readSnapshot(raw []byte) error {
	line, body, _ := bytes.Cut(raw, []byte("\n"))
	var head snapshotHead
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("limits: snapshot: %w", err)
	}
	if head.Version != snapshotVersion {
		return fmt.Errorf("limits: snapshot of version %d", head.Version)
	}
	from := bytes.NewReader(body)
	for range head.Records {
		var rec snapshotRecord
		if err := binary.Read(from, binary.LittleEndian, &rec); err != nil {
			return fmt.Errorf("limits: snapshot: %w", err)
		}
		if rec.Parts > rollingParts {
			return fmt.Errorf("limits: snapshot: %d sub-buckets", rec.Parts)
		}
		parts := make([]snapshotPart, rec.Parts)
		if err := binary.Read(from, binary.LittleEndian, parts); err != nil {
			return fmt.Errorf("limits: snapshot: %w", err)
		}
		m.tenant(rec.Tenant).recover(rec, parts, m.line(m.started))
	}
	m.killed = head.Killed
	return nil
}

// recover takes over one ledger of a snapshot; the clock may have stepped back
// since.
func (t *tenant) recover(rec snapshotRecord, parts []snapshotPart, now int64) {
	id := ident{rec.ID.A, rec.ID.B}
	if t.index[id] != 0 || rec.A < 0 {
		return
	}
	switch kind(rec.Kind) {
	case kindBucket:
		if rec.B < rec.A || rec.B > maxBucket || rec.C > rec.B*grain || rec.C < -rec.B*grain {
			return
		}
		r := t.make(kindBucket, id)
		t.enter(r, nil)
		b := t.buckets.at(r.place())
		b.rate, b.ceiling, b.level, b.last = rec.A, rec.B, rec.C, min(rec.D, now)
	case kindMinute:
		r := t.make(kindMinute, id)
		t.enter(r, nil)
		t.minutes.at(r.place()).slider().recover(rec, parts, now)
	case kindRolling:
		r := t.make(kindRolling, id)
		t.enter(r, nil)
		t.rollings.at(r.place()).slider().recover(rec, parts, now)
	}
}

func (s slider) recover(rec snapshotRecord, parts []snapshotPart, now int64) {
	s.begin(min(rec.A, maxBucket), now, false)
	s.now = min(max(rec.D, 0), s.now)
	for _, p := range parts {
		number := p.Number
		if number > s.now {
			number = s.now
		}
		if s.within(number) && p.Amount >= 0 && p.Amount <= maxUnits && s.used <= maxUnits {
			s.add(number, p.Amount)
		}
	}
}
