package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"weir/internal/fault"
)

// Argon2id's parameters: 19 MiB, 2 passes, 1 lane (OWASP's minimum for it).
const (
	argonMemory  = 19 * 1024 // KiB
	argonPasses  = 2
	argonLanes   = 1
	argonKey     = 32
	argonSalt    = 16
	hashQueue    = 32
	minPassword  = 10
	maxPassword  = 200
	passwordForm = "$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s"
)

// Hasher hashes and checks passwords, as many at once as the machine has cores:
// a flood of sign-ins waits in a short queue, and what does not fit is Limited.
// It is safe for concurrent use.
type Hasher struct {
	slots chan struct{}
	queue chan struct{}
}

// NewHasher makes one.
func NewHasher() *Hasher {
	return &Hasher{slots: make(chan struct{}, runtime.NumCPU()), queue: make(chan struct{}, hashQueue)}
}

func (h *Hasher) key(ctx context.Context, password string, salt []byte) ([]byte, error) {
	select {
	case h.queue <- struct{}{}:
		defer func() { <-h.queue }()
	default:
		return nil, fault.New(fault.Limited, "too_many_sign_ins", "Too many people sign in at this moment. Try again in a few seconds.")
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, argonPasses, argonMemory, argonLanes, argonKey), nil
}

// Hash is what is stored of a password, in the PHC string format.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt)
	key, err := h.key(ctx, password, salt)
	if err != nil {
		return "", err
	}
	enc := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(passwordForm, argonMemory, argonPasses, argonLanes, enc(salt), enc(key)), nil
}

// Matches tells whether password is the one that was hashed. Where there is no
// hash it takes as long as if there were, and is false: whether an address is
// known cannot be told by the time.
func (h *Hasher) Matches(ctx context.Context, hash, password string) (bool, error) {
	salt, want := make([]byte, argonSalt), make([]byte, argonKey)
	known := false
	if parts := strings.Split(hash, "$"); len(parts) == 6 {
		s, errSalt := base64.RawStdEncoding.DecodeString(parts[4])
		k, errKey := base64.RawStdEncoding.DecodeString(parts[5])
		if errSalt == nil && errKey == nil && len(s) == argonSalt && len(k) == argonKey {
			salt, want, known = s, k, true
		}
	}
	key, err := h.key(ctx, password, salt)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, want) == 1 && known, nil
}

//go:embed commonpasswords.txt
var commonText string

var common = func() map[string]bool {
	m := map[string]bool{}
	for line := range strings.Lines(commonText) {
		m[strings.TrimSpace(line)] = true
	}
	return m
}()

// CheckPassword collects what is wrong with a new password: too short, too
// long, on the list of common ones, or made of the person's own address.
func CheckPassword(pointer, password, email string) []fault.Field {
	lower := strings.ToLower(password)
	local, _, _ := strings.Cut(strings.ToLower(email), "@")
	at := func(code, message string) []fault.Field {
		return []fault.Field{{Pointer: pointer, Code: code, Message: message}}
	}
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		return at("too_short", "A password has at least 10 characters; a few words in a row are good.")
	case n > maxPassword:
		return at("too_long", "A password has at most 200 characters.")
	case common[lower] || common[strings.TrimRight(lower, "0123456789!.?")]:
		return at("too_common", "This password is among the most used ones, and is tried first by those who guess. Choose another.")
	case len(local) >= 4 && strings.Contains(lower, local):
		return at("too_close", "This password holds your e-mail address. Choose another.")
	}
	return nil
}
