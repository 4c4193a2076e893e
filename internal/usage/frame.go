package usage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A record on disk is a header of 42 bytes, little endian, and a payload:
//
//	0  uint32  length of the payload
//	4  uint32  CRC32C over the length and over everything from byte 8 on
//	8  byte    kind
//	9  byte    shard (of an ended call)
//	10 int64   when it was written, Unix milliseconds
//	18 int64   number (of an ended call), or the new end in Unix microseconds
//	26 UUID    the call's event id
//	42         payload: JSON
//
// A run of zeros, which a power cut may leave, is no record: its sum is wrong.
const (
	headerSize = 42
	maxPayload = 1 << 20
)

type kind byte

const (
	kindStart      kind = 1  // the first record of a segment: whose it is, and the last numbers given
	kindAdmitted   kind = 2  // an Admission
	kindCheckpoint kind = 3  // what a running stream has counted
	kindExtended   kind = 4  // a later end of a reservation
	kindEnded      kind = 5  // the terminal Event
	kindAlive      kind = 6  // nothing but its time
	kindClean      kind = 7  // the clean stop: in a file of its own
	kindSnapshot   kind = 8  // a snapshot of the limiter: in a file of its own
	kindElsewhere  kind = 9  // the call is another instance's to end, or was ended there
	kindMoved      kind = 10 // how a call stands after an attempt that ended
	kindEnding     kind = 11 // how a call ends, of which an engine is told that others share
)

// record is one record. A payload that was read is valid until the next read.
type record struct {
	kind    kind
	shard   int
	at      time.Time
	number  int64
	id      uuid.UUID
	payload []byte
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errTorn    = errors.New("the record is cut off")
	errDamaged = errors.New("the record's checksum is wrong")
)

// frame is r with room for its payload behind the header; seal completes it.
func (r record) frame() []byte {
	b := make([]byte, headerSize+len(r.payload))
	copy(b[headerSize:], r.payload)
	copy(b[26:], r.id[:])
	b[8] = byte(r.kind)
	return b
}

// frames are memory for records that are written at once.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// keptFrame is the largest piece of it that is kept for the next record.
const keptFrame = 16 << 10

// framed is the frame of a record whose payload is v, encoded in its place. done
// gives its memory back once it is written.
func framed(kind kind, id uuid.UUID, v any) (b []byte, done func(), err error) {
	kept := frames.Get().(*[]byte)
	var header [headerSize]byte
	copy(header[26:], id[:])
	header[8] = byte(kind)
	b = (*kept)[:0]
	b = append(b, header[:]...)
	switch v := v.(type) {
	case *Admission:
		b = appendAdmission(b, v)
	case *Event:
		b = appendEvent(b, v)
	default:
		var body []byte
		body, err = encode(v)
		b = append(b, body...)
	}
	whole := b
	if body := b[headerSize:]; bytes.Contains(body, nul) {
		b = append(b[:headerSize:headerSize], withoutNUL(body)...)
	}
	return b, func() {
		if cap(whole) <= keptFrame {
			*kept = whole
			frames.Put(kept)
		}
	}, err
}

// seal writes into b what is known only at the moment of writing.
func seal(b []byte, at time.Time, shard int, number int64) {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(len(b)-headerSize))
	b[9] = byte(shard)
	le.PutUint64(b[10:], uint64(at.UnixMilli()))
	le.PutUint64(b[18:], uint64(number))
	le.PutUint32(b[4:], checksum(b))
}

func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:4], castagnoli), castagnoli, b[8:])
}

// parse reads the record that b begins with, and its size. errTorn says that b
// ends before the record does, errDamaged that it is not what was written.
func parse(b []byte) (record, int, error) { return parseWithin(b, maxPayload) }

func parseWithin(b []byte, most uint32) (record, int, error) {
	if len(b) < headerSize {
		return record{}, 0, errTorn
	}
	le := binary.LittleEndian
	length := le.Uint32(b)
	if length > most {
		return record{}, 0, errDamaged
	}
	size := headerSize + int(length)
	if len(b) < size {
		return record{}, 0, errTorn
	}
	b = b[:size]
	if le.Uint32(b[4:]) != checksum(b) {
		return record{}, 0, errDamaged
	}
	return record{
		kind: kind(b[8]), shard: int(b[9]), at: time.UnixMilli(int64(le.Uint64(b[10:]))).UTC(),
		number: int64(le.Uint64(b[18:])), id: uuid.UUID(b[26:42]), payload: b[headerSize:],
	}, size, nil
}
