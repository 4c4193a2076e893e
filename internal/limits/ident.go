package limits

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// ident is a ledger's stable name in 128 bits, the head of its SHA-256: what it
// is found by, in every life of the process.
type ident struct{ a, b uint64 }

func identify(name []byte) ident {
	sum := sha256.Sum256(name)
	return ident{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// hashed is text that nobody is to read in a name: 32 hexadecimal digits.
func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
