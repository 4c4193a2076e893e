package tenants

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
)

// Prefixes of API keys. A test key reaches the practice provider only.
const (
	LivePrefix = "weir_live_"
	TestPrefix = "weir_test_"
)

const (
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomChars = 30 // 178 bits
	sumChars    = 6
)

// newSecret makes the secret of an API key: prefix, 30 random Base62
// characters, and 6 that are the CRC32 (IEEE) of all before them, so that a
// mistyped or invented key is refused without a look-up.
func newSecret(test bool) string {
	prefix := LivePrefix
	if test {
		prefix = TestPrefix
	}
	var b strings.Builder
	b.WriteString(prefix)
	for range randomChars {
		n, err := rand.Int(rand.Reader, big.NewInt(62))
		if err != nil {
			panic(err) // no randomness: nothing may go on
		}
		b.WriteByte(base62[n.Int64()])
	}
	return b.String() + checksum(b.String())
}

func checksum(s string) string {
	n := crc32.ChecksumIEEE([]byte(s))
	var out [sumChars]byte
	for i := sumChars - 1; i >= 0; i-- {
		out[i] = base62[n%62]
		n /= 62
	}
	return string(out[:])
}

// WellFormed tells whether s can be an API key: prefix, length and checksum. It
// does no I/O.
func WellFormed(s string) bool {
	if len(s) != len(LivePrefix)+randomChars+sumChars || !strings.HasPrefix(s, LivePrefix) && !strings.HasPrefix(s, TestPrefix) {
		return false
	}
	body, sum := s[:len(s)-sumChars], s[len(s)-sumChars:]
	return checksum(body) == sum
}

// LooksLikeKey tells whether s begins as an API key does, right or wrong: it
// belongs into no URL and no message.
func LooksLikeKey(s string) bool {
	return strings.HasPrefix(s, LivePrefix) || strings.HasPrefix(s, TestPrefix)
}

// HashSecret is how a secret is kept and found: its SHA-256. A secret has 178
// random bits, so no salt and no slow hash is needed.
func HashSecret(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// shown is what stays readable of a secret: the first and last four characters
// after the prefix.
func shown(s string) (first4, last4 string) {
	body := s[len(LivePrefix):]
	return body[:4], body[len(body)-4:]
}
