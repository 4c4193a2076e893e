package limits

import (
	"encoding/binary"
	"errors"
	"math"
)

// packer writes what the scripts read by struct.unpack: little-endian, numbers of
// any size as doubles, texts after their length.
type packer struct{ b []byte }

func (p *packer) byte(n int) { p.b = append(p.b, byte(n)) }

func (p *packer) flag(on bool) {
	if on {
		p.byte(1)
		return
	}
	p.byte(0)
}

// count is two bytes.
func (p *packer) count(n int) { p.b = binary.LittleEndian.AppendUint16(p.b, uint16(n)) }

func (p *packer) ints(list ...int64) {
	for _, n := range list {
		p.b = binary.LittleEndian.AppendUint64(p.b, math.Float64bits(float64(n)))
	}
}

// str is a text of up to 255 bytes.
func (p *packer) str(s string) {
	p.byte(len(s))
	p.b = append(p.b, s...)
}

// text is one of up to 65,535 bytes.
func (p *packer) text(s string) {
	p.count(len(s))
	p.b = append(p.b, s...)
}

// long is a text of any length.
func (p *packer) long(s string) {
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(len(s)))
	p.b = append(p.b, s...)
}

// unpacker reads what the scripts write by struct.pack. After a mistake everything
// reads as zero, and err says so.
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

// number is n bytes.
func (u *unpacker) number(n int) (v uint64) {
	s := u.take(n)
	for i := len(s) - 1; i >= 0; i-- {
		v = v<<8 | uint64(s[i])
	}
	return v
}

func (u *unpacker) byte() int    { return int(u.number(1)) }
func (u *unpacker) flag() bool   { return u.number(1) != 0 }
func (u *unpacker) count() int   { return int(u.number(2)) }
func (u *unpacker) int() int64   { return int64(math.Float64frombits(u.number(8))) }
func (u *unpacker) str() string  { return u.take(u.byte()) }
func (u *unpacker) text() string { return u.take(u.count()) }
func (u *unpacker) long() string { return u.take(int(u.number(4))) }
