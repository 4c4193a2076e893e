package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
)

const redacted = "[redacted]"

// Secret is a credential in the clear. It prints, logs and marshals as
// "[redacted]"; only Reveal gives it out, and only where archtest says may that be
// called: where a call to a provider is given its credential, where webhooks are
// signed, and where a mail is given its link.
type Secret struct{ value string }

// NewSecret wraps a credential.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal is the credential itself.
func (s Secret) Reveal() string { return s.value }

// IsZero tells whether there is no credential.
func (s Secret) IsZero() bool { return s.value == "" }

// Printable tells whether the secret can stand in a header: printable ASCII
// without spaces, at most 4,096 characters. No secret at all is printable.
func (s Secret) Printable() bool {
	return len(s.value) <= 4096 && strings.IndexFunc(s.value, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// Scrub replaces the secret wherever it stands in text that somebody else
// wrote.
func (s Secret) Scrub(text string) string {
	if len(s.value) < 4 {
		return text
	}
	return strings.ReplaceAll(text, s.value, redacted)
}

// ScrubBytes is Scrub for bytes; text without the secret is returned as it is.
func (s Secret) ScrubBytes(text []byte) []byte {
	if len(s.value) < 4 || !bytes.Contains(text, []byte(s.value)) {
		return text
	}
	return bytes.ReplaceAll(text, []byte(s.value), []byte(redacted))
}

// Last4 is what may be shown of it. A secret of fewer than 12 characters shows
// nothing.
func (s Secret) Last4() string {
	if len(s.value) < 12 {
		return ""
	}
	return s.value[len(s.value)-4:]
}

// Fingerprint tells two secrets apart without saying what they are: the first
// eight bytes of the SHA-256 of a labelled copy, in hex.
func (s Secret) Fingerprint() string {
	sum := sha256.Sum256([]byte("weir provider key fingerprint\x00" + s.value))
	return hex.EncodeToString(sum[:8])
}

func (s Secret) String() string { return redacted }

// GoString is what %#v prints.
func (s Secret) GoString() string { return redacted }

// Format covers every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText covers JSON and friends.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue covers slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
