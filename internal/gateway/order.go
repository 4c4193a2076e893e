package gateway

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// order puts the candidates of a call in the order in which they are tried:
// what fails much more than the others last; then by priority; lines of one
// priority by a draw in which each has its weight; keys of one line by what is
// left of their limits, the fullest first. A conversation that sticks draws the
// same each time, so that it stays on one key as long as that is well.
func (s *Server) order(call *call, list []candidate, sticky bool) {
	if len(list) < 2 {
		return
	}
	conversation := call.conversation
	if conversation == "" && sticky {
		conversation = call.opening()
	}
	now := s.Now()
	draw := rand.Uint64()
	places := make([]place, len(list))
	for i, c := range list {
		p := place{
			outlier: s.outliers.is(c.at(), now), rank: c.rank,
			tie: rand.Uint64(), line: drawn(hashed(conversation, draw, uint64(c.group), uuid.Nil), c.share), left: s.headroom.of(c.Key.ID, c.model, now),
		}
		if conversation != "" {
			p.key = drawn(hashed(conversation, 0, 0, c.Key.ID), 1)
		}
		places[i] = p
	}
	spare := slices.ContainsFunc(places, func(p place) bool { return !p.outlier })
	at := make([]int, len(list))
	for i := range at {
		at[i] = i
		places[i].outlier = places[i].outlier && spare
	}
	slices.SortStableFunc(at, func(a, b int) int { return places[a].compare(places[b]) })
	ordered := make([]candidate, len(list))
	for i, from := range at {
		ordered[i] = list[from]
	}
	copy(list, ordered)
}

// place is where a candidate stands.
type place struct {
	outlier bool
	rank    int
	line    float64 // the lowest draw goes first
	key     float64 // as line; 0: by headroom
	left    float64 // share of its tightest limit
	tie     uint64
}

func (p place) compare(o place) int {
	if p.outlier != o.outlier {
		if p.outlier {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(p.rank, o.rank), cmp.Compare(p.line, o.line), cmp.Compare(p.key, o.key), cmp.Compare(o.left, p.left), cmp.Compare(p.tie, o.tie))
}

// drawn is an exponential draw with a rate: the lowest of several wins as often
// as its rate says (weighted rendezvous hashing).
func drawn(hash uint64, weight int) float64 {
	u := (float64(hash>>11) + 0.5) / (1 << 53)
	return -math.Log(u) / float64(max(weight, 1))
}

// hashed is a number that is the same for one conversation; without one it
// follows the draw.
func hashed(conversation string, draw, group uint64, key uuid.UUID) uint64 {
	h := fnv.New64a()
	var b [8]byte
	if conversation == "" {
		binary.LittleEndian.PutUint64(b[:], draw)
		_, _ = h.Write(b[:])
	} else {
		_, _ = h.Write([]byte(conversation))
	}
	binary.LittleEndian.PutUint64(b[:], group)
	_, _ = h.Write(b[:])
	_, _ = h.Write(key[:])
	return mixed(h.Sum64())
}

// mixed spreads the bits of FNV, whose last bytes reach only its low ones
// (the finalizer of MurmurHash3).
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// opening stands for how the call's conversation begins, up to its first word of
// the user, in a few bytes: its later calls repeat that. "": it has no words.
func (call *call) opening() string {
	if call.body == nil {
		return ""
	}
	h, said := sha256.New(), false
	for _, name := range []string{"system", "instructions", "messages", "input", "prompt"} {
		v := firstTurn(call.body.Get(name))
		_, _ = h.Write(v)
		said = said || len(v) > 0
	}
	if !said {
		return ""
	}
	return string(h.Sum(nil))
}

// firstTurn is a list of messages up to the first of the user, as it stands; of
// anything else, all of it. It is a part of v, not a copy.
func firstTurn(v jsontext.Value) jsontext.Value {
	if v.Kind() != '[' {
		return v
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true), lenient)
	_, _ = d.ReadToken()
	for d.PeekKind() == '{' {
		user, err := ofUser(d)
		if err != nil {
			break
		}
		if user {
			return v[:d.InputOffset()]
		}
	}
	return v
}

// ofUser tells whether the message that d is at, and is led over, is the user's.
func ofUser(d *jsontext.Decoder) (user bool, err error) {
	_, _ = d.ReadToken()
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false, err
		}
		if name.String() == "role" && d.PeekKind() == '"' {
			role, err := d.ReadToken()
			if err != nil {
				return false, err
			}
			user = role.String() == "user"
		} else if err := d.SkipValue(); err != nil {
			return false, err
		}
	}
	_, err = d.ReadToken()
	return user, err
}
