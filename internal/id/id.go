// Package id makes and reads Weir's identifiers.
//
// Inside the program an identifier is a UUIDv7: random enough not to be
// guessed, ordered by the millisecond it was made in. At the edges it is a
// TypeID: a prefix that says what it names, an underscore, and the UUID in 26
// characters of Crockford base32 (https://github.com/jetify-com/typeid).
package id

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.jetify.com/typeid"
)

// Kind is what an identifier names; its value is the prefix.
type Kind string

// The kinds of the glossary.
const (
	Tenant       Kind = "ten"
	User         Kind = "usr"
	Member       Kind = "mem"
	ProviderKey  Kind = "pvk"
	Pool         Kind = "pol"
	Alias        Kind = "als"
	Plan         Kind = "pln"
	PlanVersion  Kind = "plv"
	Customer     Kind = "cus"
	Subscription Kind = "sub"
	APIKey       Kind = "key"
	Limit        Kind = "lim"
	Price        Kind = "prc"
	Reservation  Kind = "rsv"
	Event        Kind = "evt"
	Request      Kind = "req"
	Audit        Kind = "aud"
	Instance     Kind = "ins"
	Export       Kind = "exp"
	DeadLetter   Kind = "dlq"
	Endpoint     Kind = "whk"
	Message      Kind = "msg"
	Alert        Kind = "alr"
	Quote        Kind = "quo"
	Override     Kind = "ovr"
)

// New returns a fresh UUIDv7. It panics only when the system has no randomness.
func New() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// At returns a UUIDv7 as if it were made at t, to the millisecond.
func At(t time.Time) uuid.UUID {
	u, ms := New(), t.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	return u
}

// Parse reads an identifier of this kind. Another prefix, another length or a
// character outside the alphabet is an error; callers answer as for an id that
// does not exist.
func (k Kind) Parse(s string) (uuid.UUID, error) {
	if !strings.HasPrefix(s, string(k)+"_") {
		return uuid.Nil, fmt.Errorf("not a %s_ id", k)
	}
	t, err := typeid.FromString(s)
	if err != nil {
		return uuid.Nil, fmt.Errorf("not a %s_ id: %w", k, err)
	}
	return uuid.UUID(t.UUIDBytes()), nil
}

// Time is the instant, to the millisecond, that a UUIDv7 was made at.
func Time(u uuid.UUID) time.Time {
	ms := int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5])
	return time.UnixMilli(ms).UTC()
}
