// Package tenants owns what a tenant is made of: the organisation and its
// people, its customers, their API keys, the provider keys it calls with, and
// the record of who changed what.
//
// Every method takes the tenant first and touches that tenant's rows only. One
// method is one unit of work: it validates, changes, and writes the audit entry
// in the same transaction.
package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"

	"weir/internal/catalogue"
	"weir/internal/keyring"
	"weir/internal/outbound"
	"weir/internal/postgres"
)

// Service reads and changes a tenant. It is safe for concurrent use.
type Service struct {
	db     *postgres.DB
	ring   *keyring.Ring
	guard  *outbound.Guard
	client *catalogue.Client
	now    func() time.Time
}

// New makes the service.
func New(db *postgres.DB, ring *keyring.Ring, guard *outbound.Guard, client *catalogue.Client, now func() time.Time) *Service {
	return &Service{db: db, ring: ring, guard: guard, client: client, now: now}
}

// Actor is who asks for a change, for the audit entry.
type Actor struct {
	Kind       string // user, api_key, operator, system
	ID         uuid.UUID
	Credential string // what was shown: the key's last four, "session"; never the secret
	Role       string
	IP         string
	RequestID  uuid.UUID
}

// System is the actor of what Weir does by itself.
var System = Actor{Kind: "system"}

type actorKey struct{}

// WithActor returns a context whose changes are audited as this actor's.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is who asks for the changes of a context; System where nobody does.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return System
}

// Page is a slice of a list, newest first.
type Page[T any] struct {
	Items []T
	Next  uuid.UUID // the id to continue after; zero: this was the last page
}

// PageOf cuts a list that was read with one row too many.
func PageOf[T any](items []T, limit int, id func(T) uuid.UUID) Page[T] {
	if len(items) <= limit {
		return Page[T]{Items: items}
	}
	items = items[:limit]
	return Page[T]{Items: items, Next: id(items[limit-1])}
}

// After is the keyset bound that means "from the newest": the largest UUID.
func After(id uuid.UUID) uuid.UUID {
	if id == uuid.Nil {
		return uuid.Max
	}
	return id
}
