package usage

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"weir/internal/queue"
)

// A message is one run of events of one instance and shard: bodies as they are
// on disk, one a line, with numbers that follow each other from first to last.
// What the lines do not say is in the headers, and the signature covers it.
const (
	headerInstance  = "Weir-Instance"
	headerShard     = "Weir-Shard"
	headerFirst     = "Weir-First"
	headerLast      = "Weir-Last"
	headerKey       = "Weir-Key"
	headerSignature = "Weir-Signature"
)

const (
	maxRunEvents = 500
	maxRunBytes  = 512 << 10
)

// SigningKeys are the keys that instances sign messages with and workers verify
// them by. Rotation: give the workers the new key, then make it current at the
// instances, then take the old one away.
type SigningKeys struct {
	Current string            // the id of the key to sign with; workers need none
	Keys    map[string][]byte // by id; at least 32 random bytes each
}

// errForged says that a message does not come from an instance that holds one of
// our keys, or not as it was sent.
var errForged = errors.New("usage: the signature does not verify")

// run is a message, opened.
type run struct {
	instance    uuid.UUID
	shard       int
	first, last int64
	body        []byte
	again       string // where another run may have had the same id: what tells them apart
}

// id names the run; the queue's duplicate window compares it.
func (r run) id() string { return fmt.Sprintf("%s.%d.%d-%d", r.instance, r.shard, r.first, r.last) }

// lines are the bodies of the events.
func (r run) lines() [][]byte { return bytes.Split(r.body, []byte{'\n'}) }

func (k SigningKeys) message(r run) queue.Message {
	return queue.Message{
		Subject: queue.Subject(r.shard), ID: r.id() + r.again, Body: r.body,
		Header: map[string]string{
			headerInstance:  r.instance.String(),
			headerShard:     strconv.Itoa(r.shard),
			headerFirst:     strconv.FormatInt(r.first, 10),
			headerLast:      strconv.FormatInt(r.last, 10),
			headerKey:       k.Current,
			headerSignature: hex.EncodeToString(signature(k.Keys[k.Current], queue.Subject(r.shard), r)),
		},
	}
}

// open verifies a message and reads what it says about itself; errForged
// otherwise.
func (k SigningKeys) open(m queue.Message) (run, error) {
	instance, err1 := uuid.Parse(m.Header[headerInstance])
	shard, err2 := strconv.Atoi(m.Header[headerShard])
	first, err3 := strconv.ParseInt(m.Header[headerFirst], 10, 64)
	last, err4 := strconv.ParseInt(m.Header[headerLast], 10, 64)
	given, err5 := hex.DecodeString(m.Header[headerSignature])
	key := k.Keys[m.Header[headerKey]]
	r := run{instance: instance, shard: shard, first: first, last: last, body: m.Body}
	if errors.Join(err1, err2, err3, err4, err5) != nil || len(key) == 0 || !hmac.Equal(given, signature(key, m.Subject, r)) {
		return run{}, errForged
	}
	if shard < 0 || shard >= Shards || m.Subject != queue.Subject(shard) || first < 1 || last < first {
		return run{}, errForged
	}
	return r, nil
}

func signature(key []byte, subject string, r run) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "weir usage 1\n%s\n%s\n", subject, r.id())
	h.Write(r.body)
	return h.Sum(nil)
}
