package id

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// alphabet is Crockford's base32, in lower case.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// textLength is how many characters 128 bits take: the first holds 3 of them.
const textLength = 26

// Format writes u with its prefix; the zero UUID is the empty string.
func (k Kind) Format(u uuid.UUID) string {
	if u == uuid.Nil {
		return ""
	}
	var buf [40]byte
	return string(k.Append(buf[:0], u))
}

// Append is Format into a buffer: answers hold many ids.
func (k Kind) Append(b []byte, u uuid.UUID) []byte {
	if u == uuid.Nil {
		return b
	}
	b = append(append(b, k...), '_')
	hi, lo := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	for shift := 5 * (textLength - 1); shift >= 0; shift -= 5 {
		var five uint64
		switch {
		case shift >= 64:
			five = hi >> (shift - 64)
		case shift > 59:
			five = hi<<(64-shift) | lo>>shift
		default:
			five = lo >> shift
		}
		b = append(b, alphabet[five&31])
	}
	return b
}
