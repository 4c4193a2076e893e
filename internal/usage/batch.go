package usage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/id"
	"weir/internal/queue"
)

// batch is what one transaction commits: events, what is refused, and the
// numbers that are done with it. A forged message has letters only.
type batch struct {
	instance    uuid.UUID
	shard       int
	first, last int64 // 0: no numbers are committed
	items       []*item
	letters     []letter
	replays     uuid.UUID // the dead letter whose event it is
	parts       []batch   // what it was made from, each with numbers of its own; nil: of one message
}

// item is an event that looks right, with the hash of its body.
type item struct {
	event   Event
	hash    [sha256.Size]byte
	line    []byte
	message *queue.Message // nil: it came in none
}

// The reasons of dead letters, beside those of Event.wrong.
const (
	badSignature      = "bad_signature"
	badRun            = "bad_run"      // the lines are not as many as the numbers
	badBody           = "bad_body"     // no JSON, or none of an event
	otherShard        = "other_shard"  // the tenant belongs to another one
	conflict          = "conflict"     // the id is taken by an event with another body
	tooLate           = "too_late"     // events of its day are no longer kept, and with them whether it was counted
	refusedByDatabase = "not_storable" // the database does not take it
)

// future is how far an instance's clock may be ahead of the worker's.
const future = 48 * time.Hour

// read makes a batch of a verified run: every line is an item, a duplicate of
// one, or a dead letter.
func read(r run, m queue.Message, now time.Time) batch {
	b := batch{instance: r.instance, shard: r.shard, first: r.first, last: r.last}
	lines := r.lines()
	if int64(len(lines)) != r.last-r.first+1 {
		b.letters = []letter{{reason: badRun, instance: r.instance, shard: r.shard, number: r.first, payload: r.body, message: &m}}
		return b
	}
	for i, line := range lines {
		it := &item{hash: sha256.Sum256(line), line: line, message: &m}
		reason := it.read(r.shard, now)
		it.event.Instance, it.event.Shard, it.event.Number = r.instance, r.shard, r.first+int64(i)
		if reason != "" {
			b.letters = append(b.letters, it.letter(reason))
			continue
		}
		b.items = append(b.items, it)
	}
	b.settle()
	return b
}

// together is one batch of several, in which an event that more than one of them
// have is once.
func together(list []batch) batch {
	if len(list) == 1 {
		return list[0]
	}
	b := batch{parts: list}
	for _, part := range list {
		b.items, b.letters = append(b.items, part.items...), append(b.letters, part.letters...)
	}
	b.settle()
	return b
}

// settle puts the items in the order in which all workers write, by id. Of those
// with one id the first stays: the others are the same, or dead letters.
func (b *batch) settle() {
	slices.SortStableFunc(b.items, func(x, y *item) int { return bytes.Compare(x.event.ID[:], y.event.ID[:]) })
	kept := b.items[:0]
	for _, it := range b.items {
		switch n := len(kept); {
		case n == 0 || kept[n-1].event.ID != it.event.ID:
			kept = append(kept, it)
		case kept[n-1].hash != it.hash:
			b.letters = append(b.letters, it.letter(conflict))
		}
	}
	b.items = kept
}

// runs are the runs of numbers that the batch commits, in the order in which all
// workers write.
func (b batch) runs() []batch {
	if b.parts == nil {
		return []batch{b}
	}
	return slices.SortedFunc(slices.Values(b.parts), func(x, y batch) int {
		return cmp.Or(bytes.Compare(x.instance[:], y.instance[:]), cmp.Compare(x.shard, y.shard), cmp.Compare(x.first, y.first))
	})
}

// read decodes the line, and names why the books can't take it, or "".
func (it *item) read(shard int, now time.Time) string {
	e := &it.event
	if err := decodeEvent(it.line, e); err != nil {
		return badBody
	}
	if reason := e.wrong(); reason != "" {
		return reason
	}
	if ShardOf(e.Tenant) != shard {
		return otherShard
	}
	if id.Time(e.ID).After(now.Add(future)) {
		return "absurd_time"
	}
	return ""
}

// halves divide the batch by number.
func (b batch) halves() (low, high batch) {
	mid := b.first + (b.last-b.first)/2
	low, high = b, b
	low.last, high.first = mid, mid+1
	low.items, high.items, low.letters, high.letters = nil, nil, nil, nil
	for _, it := range b.items {
		if it.event.Number <= mid {
			low.items = append(low.items, it)
		} else {
			high.items = append(high.items, it)
		}
	}
	for _, l := range b.letters {
		if l.number <= mid {
			low.letters = append(low.letters, l)
		} else {
			high.letters = append(high.letters, l)
		}
	}
	return low, high
}

// buried is the batch with its items as dead letters.
func (b batch) buried(reason string) batch {
	for _, it := range b.items {
		b.letters = append(b.letters, it.letter(reason))
	}
	b.items = nil
	return b
}

// letter is something that could not be counted, kept with the reason. Its id
// follows from what it is: a message that comes twice leaves one.
type letter struct {
	reason   string
	instance uuid.UUID
	shard    int
	number   int64 // of the event; the first one of a whole run; 0: not known
	payload  []byte
	message  *queue.Message // in which it came; nil: in none
}

func (it *item) letter(reason string) letter {
	return letter{reason, it.event.Instance, it.event.Shard, it.event.Number, it.line, it.message}
}

func forged(m queue.Message) batch {
	return batch{letters: []letter{{reason: badSignature, payload: m.Body, message: &m}}}
}

// place is the shard, or -1 where the message proves none.
func (l letter) place() int {
	if l.number == 0 {
		return -1
	}
	return l.shard
}

func (l letter) id() uuid.UUID {
	h := slices.Concat(l.instance[:], []byte(strconv.Itoa(l.shard)+"/"+strconv.FormatInt(l.number, 10)+"/"+l.reason+"/"), l.payload)
	return uuid.NewSHA1(uuid.NameSpaceURL, h)
}

// sortLetters puts them in the order in which all workers write.
func sortLetters(letters []letter) {
	slices.SortFunc(letters, func(a, b letter) int {
		x, y := a.id(), b.id()
		return bytes.Compare(x[:], y[:])
	})
}
