package limits

import (
	"encoding/binary"
	"errors"
	"math"
)

// packer writes MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md),
// as far as Redis's cmsgpack reads it: integers, byte strings and arrays.
type packer struct{ b []byte }

func (p *packer) int(n int64) {
	switch {
	case n >= 0 && n < 128:
		p.b = append(p.b, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xd2), uint32(n))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xd3), uint64(n))
	}
}

func (p *packer) ints(list ...int64) {
	for _, n := range list {
		p.int(n)
	}
}

func (p *packer) flag(on bool) {
	if on {
		p.b = append(p.b, 1)
		return
	}
	p.b = append(p.b, 0)
}

func (p *packer) array(n int) {
	if n < 16 {
		p.b = append(p.b, 0x90|byte(n))
		return
	}
	p.b = binary.BigEndian.AppendUint16(append(p.b, 0xdc), uint16(n))
}

func (p *packer) str(s string) {
	switch n := len(s); {
	case n < 32:
		p.b = append(p.b, 0xa0|byte(n))
	case n < 256:
		p.b = append(p.b, 0xd9, byte(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xdb), uint32(n))
	}
	p.b = append(p.b, s...)
}

// unpacker reads what cmsgpack writes. After a mistake everything reads as zero,
// and err says so.
type unpacker struct {
	s   string
	err error
}

var errPacked = errors.New("limits: an answer of Redis cannot be read")

func (u *unpacker) take(n int) string {
	if n < 0 || n > len(u.s) {
		u.s, u.err = "", errPacked
		return ""
	}
	s := u.s[:n]
	u.s = u.s[n:]
	return s
}

// number is n bytes, big-endian.
func (u *unpacker) number(n int) (v uint64) {
	for _, c := range []byte(u.take(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (u *unpacker) lead() byte {
	if s := u.take(1); s != "" {
		return s[0]
	}
	return 0xc0
}

func (u *unpacker) int() int64 {
	switch c := u.lead(); {
	case c < 0x80:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c))
	case c == 0xcb:
		return int64(math.Float64frombits(u.number(8)))
	case c >= 0xcc && c <= 0xcf:
		return int64(u.number(1 << (c - 0xcc)))
	case c == 0xd0:
		return int64(int8(u.number(1)))
	case c == 0xd1:
		return int64(int16(u.number(2)))
	case c == 0xd2:
		return int64(int32(u.number(4)))
	case c == 0xd3:
		return int64(u.number(8))
	}
	u.err = errPacked
	return 0
}

func (u *unpacker) flag() bool { return u.int() != 0 }

func (u *unpacker) str() string {
	switch c := u.lead(); {
	case c >= 0xa0 && c < 0xc0:
		return u.take(int(c & 31))
	case c >= 0xd9 && c <= 0xdb:
		return u.take(int(u.number(1 << (c - 0xd9))))
	case c >= 0xc4 && c <= 0xc6:
		return u.take(int(u.number(1 << (c - 0xc4))))
	}
	u.err = errPacked
	return ""
}

// array is the number of elements that follow.
func (u *unpacker) array() int {
	n := 0
	switch c := u.lead(); {
	case c >= 0x90 && c < 0xa0:
		n = int(c & 15)
	case c == 0xdc:
		n = int(u.number(2))
	case c == 0xdd:
		n = int(u.number(4))
	default:
		u.err = errPacked
	}
	if n > len(u.s) {
		u.err = errPacked
		return 0
	}
	return n
}

// list is an array of any integers, or none where a 0 stands for it.
func (u *unpacker) list() []int64 {
	if u.s != "" && u.s[0] == 0 {
		u.int()
		return nil
	}
	list := make([]int64, u.array())
	for i := range list {
		list[i] = u.int()
	}
	return list
}

// skip passes over one value.
func (u *unpacker) skip() {
	switch c := u.s; {
	case c == "":
		u.err = errPacked
	case c[0] >= 0x90 && c[0] < 0xa0 || c[0] == 0xdc || c[0] == 0xdd:
		for range u.array() {
			u.skip()
		}
	case c[0] >= 0xa0 && c[0] < 0xc0 || c[0] >= 0xd9 && c[0] <= 0xdb:
		u.str()
	default:
		u.int()
	}
}
