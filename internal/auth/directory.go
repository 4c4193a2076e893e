// Package auth says who is calling: an API key's holder or a person with a
// session. It decides nothing about limits; the surfaces decide what a caller
// may do.
package auth

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/cache"
	"weir/internal/fault"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// Caller is the holder of a valid API key.
type Caller struct {
	Tenant tenants.Tenant
	Key    tenants.APIKey
}

// May tells whether a management key has a scope.
func (c Caller) May(scope string) bool {
	return slices.Contains(c.Key.Scopes, "*") || slices.Contains(c.Key.Scopes, scope)
}

// Directory finds callers and what holds for them, remembered for a second. It
// is safe for concurrent use.
type Directory struct {
	db        *postgres.DB
	now       func() time.Time
	callers   *cache.Cache[[32]byte, Caller]
	contracts *cache.Cache[[2]uuid.UUID, billing.Contract]
	routes    *cache.Cache[uuid.UUID, []tenants.Route]
}

// NewDirectory makes a directory.
func NewDirectory(db *postgres.DB, t *tenants.Service, b *billing.Service, now func() time.Time) *Directory {
	d := &Directory{db: db, now: now}
	o := cache.Options{Fresh: time.Second, Stale: 5 * time.Minute, Max: 100_000, Now: now}
	d.callers = cache.New(o, d.readCaller)
	d.contracts = cache.New(o, func(ctx context.Context, k [2]uuid.UUID) (billing.Contract, error) {
		return b.ContractOf(ctx, k[0], k[1])
	})
	d.routes = cache.New(o, t.Routes)
	return d
}

// Caller is the holder of a secret, calling from ip. A malformed or unknown
// secret is Unauthenticated invalid_api_key without any look-up where the
// checksum is wrong; a revoked, expired or misplaced one says so
// (key_revoked, key_expired, ip_not_allowed).
func (d *Directory) Caller(ctx context.Context, secret, ip string) (Caller, error) {
	if !tenants.WellFormed(secret) {
		return Caller{}, unknownKey()
	}
	c, err := d.callers.Get(ctx, [32]byte(tenants.HashSecret(secret)))
	if err != nil {
		return Caller{}, err
	}
	switch {
	case c.Key.RevokedAt != nil && !c.Key.RevokedAt.After(d.now()):
		return Caller{}, fault.New(fault.Unauthenticated, "key_revoked", "This API key was revoked.")
	case c.Key.ExpiresAt != nil && !c.Key.ExpiresAt.After(d.now()):
		return Caller{}, fault.New(fault.Unauthenticated, "key_expired", "This API key has expired.")
	case len(c.Key.IPAllow) > 0 && !within(c.Key.IPAllow, ip):
		return Caller{}, fault.New(fault.Unauthenticated, "ip_not_allowed", "This API key may not be used from this address.")
	case c.Tenant.SuspendedAt != nil:
		return Caller{}, fault.New(fault.Unauthenticated, "tenant_suspended", "This account is suspended.")
	}
	return c, nil
}

func unknownKey() error {
	return fault.New(fault.Unauthenticated, "invalid_api_key", "This API key is not known. A key starts with weir_live_ or weir_test_ and is sent as \"Authorization: Bearer …\".")
}

func within(allow []netip.Prefix, ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

func (d *Directory) readCaller(ctx context.Context, hash [32]byte) (Caller, error) {
	var tenant, key uuid.UUID
	err := d.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select tenant_id, api_key_id from lookup_api_key($1)`, hash[:]).Scan(&tenant, &key)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Caller{}, unknownKey()
	}
	if err != nil {
		return Caller{}, err
	}
	var c Caller
	err = d.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if c.Tenant, err = tenants.ReadTenant(ctx, tx, tenant); err != nil {
			return err
		}
		c.Key, err = tenants.ReadAPIKey(ctx, tx, tenant, key)
		return err
	})
	return c, err
}

// Contract is what holds for a customer's calls now.
func (d *Directory) Contract(ctx context.Context, tenant, customer uuid.UUID) (billing.Contract, error) {
	return d.contracts.Get(ctx, [2]uuid.UUID{tenant, customer})
}

// Routes are the tenant's usable provider keys, opened.
func (d *Directory) Routes(ctx context.Context, tenant uuid.UUID) ([]tenants.Route, error) {
	return d.routes.Get(ctx, tenant)
}
