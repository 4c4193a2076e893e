package limits

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// A snapshot is a line of JSON, then numbers in little endian: for each tenant
// its id, how many ledgers follow and how many calls, then the ledgers (buckets
// and sliding windows that are in use) and the ids of the calls that were open.
// Calendar windows come from the books, open reservations from Restore. A life
// that began after a kill may not have touched every ledger that was spent
// before: until they would be free again, the next life has to know.
type snapshotHead struct {
	Version int     `json:"version"`
	Tenants int     `json:"tenants"`
	Killed  *killed `json:"killed,omitempty"`
}

// snapshotVersion is what is written. What was written before does not say of which
// limit a ledger is one of many.
const (
	snapshotVersion = 4
	snapshotBefore  = 3
)

// kept is a ledger in a snapshot.
type kept struct {
	id, family ident
	kind       kind
	a, b, c, d int64 // bucket: rate, ceiling, level, last; sliding: amount, 0, 0, the sub-bucket that runs
	parts      []keptPart
}

type keptPart struct{ number, amount int64 }

// Snapshot is the state that the next life begins with, as
// MemoryOptions.Snapshot: of a clean stop, or of a moment after which a journal
// was kept. It holds one tenant's lock at a time.
func (m *Memory) Snapshot() ([]byte, error) {
	var body []byte
	tenants := m.everyone()
	for _, t := range tenants {
		body = t.snapshot(body, m.now())
	}
	head, err := json.Marshal(snapshotHead{snapshotVersion, len(tenants), m.killed})
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), body...), nil
}

func (t *tenant) snapshot(to []byte, now time.Time) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.begin(now)
	to = append(to, t.id[:]...)
	counts := len(to)
	to = append(to, make([]byte, 16)...)
	var ledgers, calls uint64
	t.each(func(r ref) {
		if k, used := t.keep(r, &at); used {
			to = k.append(to)
			ledgers++
		}
	})
	for _, c := range t.open {
		to = append(to, c.id[:]...)
		calls++
	}
	binary.LittleEndian.PutUint64(to[counts:], ledgers)
	binary.LittleEndian.PutUint64(to[counts+8:], calls)
	return to
}

// each calls f for each bucket and sliding window in the index.
func (t *tenant) each(f func(ref)) {
	for _, s := range []struct {
		kind kind
		n    uint32
	}{{kindBucket, t.buckets.n}, {kindMinute, t.minutes.n}, {kindRolling, t.rollings.n}} {
		for i := range s.n {
			r := refOf(s.kind, i)
			if h := t.head(r); h.id != (ident{}) {
				f(r)
			}
		}
	}
}

func (t *tenant) keep(r ref, at *instant) (k kept, used bool) {
	h := t.head(r)
	k = kept{id: h.id, family: t.families.name(h.family), kind: r.kind()}
	if k.kind == kindBucket {
		b := t.buckets.at(r.place())
		b.refill(at.ms, &t.rooms)
		k.a, k.b, k.c, k.d = b.rate, b.ceiling, b.level, b.last
		if b.forgiven {
			k.parts = []keptPart{{amount: 1}}
		}
		return k, b.level < b.full()
	}
	s := t.slider(r)
	s.touch(s.amount, at.ms)
	k.a, k.d = s.amount, s.now
	for number := s.now; s.within(number); number-- {
		if n := *s.part(number); n != 0 {
			k.parts = append(k.parts, keptPart{number, n})
		}
	}
	return k, s.used != 0
}

func (k *kept) append(to []byte) []byte {
	le := binary.LittleEndian
	for _, id := range []ident{k.id, k.family} {
		to = le.AppendUint64(le.AppendUint64(to, id.a), id.b)
	}
	to = le.AppendUint32(le.AppendUint32(to, uint32(k.kind)), uint32(len(k.parts)))
	for _, n := range []int64{k.a, k.b, k.c, k.d} {
		to = le.AppendUint64(to, uint64(n))
	}
	for _, p := range k.parts {
		to = le.AppendUint64(le.AppendUint64(to, uint64(p.number)), uint64(p.amount))
	}
	return to
}

var errShort = errors.New("limits: the snapshot is cut off")

// reader reads numbers until there are no more.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short = r.short || len(r.b) < n; r.short {
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) int64() int64   { return int64(binary.LittleEndian.Uint64(r.take(8))) }

func (r *reader) ident() ident { return ident{uint64(r.int64()), uint64(r.int64())} }

func (r *reader) kept(version int) kept {
	k := kept{id: r.ident()}
	if version > snapshotBefore {
		k.family = r.ident()
	}
	k.kind = kind(r.uint32())
	parts := r.uint32()
	k.a, k.b, k.c, k.d = r.int64(), r.int64(), r.int64(), r.int64()
	for range parts {
		if r.short {
			break
		}
		k.parts = append(k.parts, keptPart{r.int64(), r.int64()})
	}
	return k
}

// readSnapshot takes a snapshot over, and returns the calls that were open then.
// An error leaves the engine without any tenant.
func (m *Memory) readSnapshot(raw []byte) (open map[uuid.UUID]bool, err error) {
	line, body, _ := bytes.Cut(raw, []byte("\n"))
	var head snapshotHead
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, fmt.Errorf("limits: snapshot: %w", err)
	}
	if head.Version != snapshotVersion && head.Version != snapshotBefore {
		return nil, fmt.Errorf("limits: snapshot of version %d", head.Version)
	}
	r, now := &reader{b: body}, m.line(m.started)
	open = map[uuid.UUID]bool{}
	for range head.Tenants {
		t := m.tenant(uuid.UUID(r.take(16)))
		ledgers, calls := r.int64(), r.int64()
		for i := int64(0); i < ledgers && !r.short; i++ {
			t.recover(r.kept(head.Version), now)
		}
		for i := int64(0); i < calls && !r.short; i++ {
			open[uuid.UUID(r.take(16))] = true
		}
		if r.short {
			m.tenants, m.all = map[uuid.UUID]*tenant{}, nil
			return nil, errShort
		}
	}
	m.killed = head.Killed
	return open, nil
}

// recover takes over one ledger of a snapshot; the clock may have stepped back
// since. What no engine can have written is left out.
func (t *tenant) recover(k kept, now int64) {
	if t.index[k.id] != 0 || k.id == (ident{}) || k.a < 0 || k.a > maxBucket {
		return
	}
	switch k.kind {
	case kindBucket:
		if k.b < k.a || k.b > maxBucket || k.c > k.b*grain || k.c < -k.b*grain {
			return
		}
		r := t.make(kindBucket, k.id)
		t.enterAs(r, k.family)
		b := t.buckets.at(r.place())
		b.rate, b.ceiling, b.level, b.last, b.forgiven = k.a, k.b, k.c, min(max(k.d, 0), now), len(k.parts) > 0
	case kindMinute, kindRolling:
		r := t.make(k.kind, k.id)
		t.enterAs(r, k.family)
		t.slider(r).recover(k, now)
	}
}

func (s slider) recover(k kept, now int64) {
	s.begin(k.a, now, false)
	s.now = min(max(k.d, 0), s.now)
	for _, p := range k.parts {
		number := min(p.number, s.now)
		if s.within(number) && p.amount >= 0 && p.amount <= maxUnits && s.used <= maxUnits {
			s.add(number, p.amount)
		}
	}
}
