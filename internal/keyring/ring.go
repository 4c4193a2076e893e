// Package keyring seals the secrets that tenants give us.
//
// Each tenant has a data key, wrapped by a key-encryption key (KEK) of the
// operator's ring. A sealed secret names the data key that opens it, and is
// bound by associated data to its tenant, object and field: moved to another
// row it does not open. The ciphers are Tink's XChaCha20-Poly1305.
//
//	sealed  = 1 byte version | 16 bytes data key id | nonce, ciphertext, tag
//	wrapped = the same, of the 32-byte data key, under the KEK
//
// Rings and data keys are immutable and safe for concurrent use.
package keyring

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"

	"weir/internal/fault"
)

const version = 1

// Ring holds the key-encryption keys by id. The first one seals.
type Ring struct {
	current string
	keys    map[string]tink.AEAD
}

// NamedKey is one key of a ring.
type NamedKey struct {
	Name  string
	Bytes []byte // 32
}

// ParseKeys reads "id:base64,id:base64", the current key first, each of 32
// bytes. The text of a key never appears in an error.
func ParseKeys(s string) (keys []NamedKey, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, encoded, found := strings.Cut(strings.TrimSpace(part), ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !found || name == "" || len(name) > 40 || err != nil || len(key) != 32 {
			return nil, errors.New("a key ring is written id:base64 of 32 bytes, several joined by commas, the current one first")
		}
		if seen[name] {
			return nil, fmt.Errorf("key id %q stands in the ring twice", name)
		}
		seen[name] = true
		keys = append(keys, NamedKey{name, key})
	}
	return keys, nil
}

// ParseRing reads a ring of key-encryption keys in the form of ParseKeys.
func ParseRing(s string) (*Ring, error) {
	keys, err := ParseKeys(s)
	if err != nil {
		return nil, err
	}
	r := &Ring{current: keys[0].Name, keys: map[string]tink.AEAD{}}
	for _, k := range keys {
		if r.keys[k.Name], err = subtle.NewXChaCha20Poly1305(k.Bytes); err != nil {
			return nil, fmt.Errorf("key %q: %w", k.Name, err)
		}
	}
	return r, nil
}

// NewKey is a random key for a ring, in the form that ParseRing reads.
func NewKey(name string) string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return name + ":" + base64.StdEncoding.EncodeToString(key)
}

// Wrapped is a data key as the database keeps it.
type Wrapped struct {
	ID    uuid.UUID
	KEK   string
	Bytes []byte
}

// NewDataKey makes a data key for a tenant and wraps it with the current KEK.
func (r *Ring) NewDataKey(tenant, id uuid.UUID) (Wrapped, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return Wrapped{}, err
	}
	sealed, err := r.keys[r.current].Encrypt(key, associated(tenant, id, "data_key"))
	if err != nil {
		return Wrapped{}, fmt.Errorf("wrap data key: %w", err)
	}
	return Wrapped{ID: id, KEK: r.current, Bytes: sealed}, nil
}

// Unwrap opens a tenant's data key. A KEK that the ring does not hold, or bytes
// that do not open, are Unavailable with code credential_unavailable.
func (r *Ring) Unwrap(tenant uuid.UUID, w Wrapped) (*DataKey, error) {
	kek, ok := r.keys[w.KEK]
	if !ok {
		return nil, unavailable(fmt.Errorf("key-encryption key %q is not in the ring", w.KEK))
	}
	key, err := kek.Decrypt(w.Bytes, associated(tenant, w.ID, "data_key"))
	if err != nil {
		return nil, unavailable(err)
	}
	a, err := subtle.NewXChaCha20Poly1305(key)
	if err != nil {
		return nil, unavailable(err)
	}
	return &DataKey{id: w.ID, tenant: tenant, aead: a}, nil
}

// DataKey seals and opens one tenant's secrets.
type DataKey struct {
	id, tenant uuid.UUID
	aead       tink.AEAD
}

// Seal encrypts a secret for one field of one object of the tenant.
func (d *DataKey) Seal(object uuid.UUID, field string, s Secret) ([]byte, error) {
	ct, err := d.aead.Encrypt([]byte(s.value), associated(d.tenant, object, field))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append(append([]byte{version}, d.id[:]...), ct...), nil
}

// Open decrypts what Seal made for the same object and field. Anything else is
// Unavailable with code credential_unavailable.
func (d *DataKey) Open(object uuid.UUID, field string, sealed []byte) (Secret, error) {
	if id, err := DataKeyOf(sealed); err != nil || id != d.id {
		return Secret{}, unavailable(errors.New("sealed with another data key"))
	}
	value, err := d.aead.Decrypt(sealed[17:], associated(d.tenant, object, field))
	if err != nil {
		return Secret{}, unavailable(err)
	}
	return Secret{string(value)}, nil
}

// DataKeyOf is the id of the data key that opens sealed.
func DataKeyOf(sealed []byte) (uuid.UUID, error) {
	if len(sealed) < 17 || sealed[0] != version {
		return uuid.Nil, errors.New("keyring: not a sealed secret")
	}
	return uuid.UUID(sealed[1:17]), nil
}

func associated(tenant, object uuid.UUID, field string) []byte {
	return fmt.Appendf(nil, "weir/v%d/%s/%s/%s", version, tenant, object, field)
}

func unavailable(err error) error {
	return fault.New(fault.Unavailable, "credential_unavailable", "The stored provider credential cannot be opened right now.").Because(err)
}
