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
	"weir/internal/limits"
	"weir/internal/postgres"
	"weir/internal/tenants"
)

// Caller is the holder of a valid API key, or of a client token of one: then
// Key is already as narrow as the token.
type Caller struct {
	Tenant tenants.Tenant
	Key    tenants.APIKey
	Limits *limits.Set // of key and token, ready; a test key's have ledgers of their own
	Token  *ClientToken
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
	tokens    *TokenKeys
	callers   *cache.Cache[[32]byte, Caller]
	parents   *cache.Cache[[2]uuid.UUID, Caller] // of client tokens, by tenant and key
	contracts *cache.Cache[[2]uuid.UUID, billing.Contract]
	routes    *cache.Cache[uuid.UUID, []tenants.Route]
}

// NewDirectory makes a directory.
func NewDirectory(db *postgres.DB, t *tenants.Service, b *billing.Service, tokens *TokenKeys, now func() time.Time) *Directory {
	d := &Directory{db: db, now: now, tokens: tokens}
	o := cache.Options{Fresh: time.Second, Stale: 5 * time.Minute, Max: 100_000, Now: now}
	d.callers = cache.New(o, d.readCaller)
	d.parents = cache.New(o, func(ctx context.Context, k [2]uuid.UUID) (Caller, error) { return d.readKey(ctx, k[0], k[1]) })
	d.contracts = cache.New(o, func(ctx context.Context, k [2]uuid.UUID) (billing.Contract, error) {
		return b.ContractOf(ctx, k[0], k[1])
	})
	d.routes = cache.New(o, t.Routes)
	return d
}

// Caller is the holder of a secret or client token, calling from ip. A
// malformed or unknown one is Unauthenticated invalid_api_key, without any
// look-up where checksum or signature are wrong; a revoked, expired or misplaced
// one says so (key_revoked, key_expired, ip_not_allowed).
func (d *Directory) Caller(ctx context.Context, secret, ip string) (Caller, error) {
	c, err := d.find(ctx, secret)
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

func (d *Directory) find(ctx context.Context, secret string) (Caller, error) {
	switch {
	case tenants.WellFormed(secret):
		return d.callers.Get(ctx, [32]byte(tenants.HashSecret(secret)))
	case !looksLikeToken(secret):
		return Caller{}, unknownKey()
	}
	token, err := d.tokens.Read(secret)
	if err != nil {
		return Caller{}, err
	}
	c, err := d.parents.Get(ctx, [2]uuid.UUID{token.Tenant, token.Key})
	if fault.Is(err, fault.NotFound) {
		return Caller{}, unknownKey()
	}
	return c.narrowed(token), err
}

// narrowed is the caller as its client token leaves it: the models of both, the
// limits of both. A token can widen nothing.
func (c Caller) narrowed(t ClientToken) Caller {
	c.Token = &t
	switch {
	case t.Models == nil:
	case c.Key.Models == nil:
		c.Key.Models = t.Models
	default:
		both := []string{}
		for _, m := range t.Models {
			if slices.Contains(c.Key.Models, m) {
				both = append(both, m)
			}
		}
		c.Key.Models = both
	}
	scope := limits.Scope{Kind: limits.ScopeClientToken, ID: t.ID, Name: c.Key.Name}
	own := tenants.Placed(t.Limits, scope)
	for i := range own {
		own[i].Zone, own[i].PastZones = c.Tenant.Zones.Zone, c.Tenant.Zones.Past
	}
	c.Key.Limits = append(slices.Clone(c.Key.Limits), own...)
	return c.ready()
}

// ready is the caller with its limits made ready for decisions.
func (c Caller) ready() Caller {
	list := c.Key.Limits
	if c.Key.Test {
		list = limits.TestPlan(list)
	}
	c.Limits = limits.Compile(list)
	return c
}

// Plan is every limit of the caller's own under a contract.
func (c Caller) Plan(contract billing.Contract) []*limits.Set {
	if c.Key.Test {
		return []*limits.Set{contract.TestSet, c.Limits}
	}
	return []*limits.Set{contract.Set, c.Limits}
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
	return d.readKey(ctx, tenant, key)
}

func (d *Directory) readKey(ctx context.Context, tenant, key uuid.UUID) (Caller, error) {
	var c Caller
	err := d.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if c.Tenant, err = tenants.ReadTenant(ctx, tx, tenant, d.now()); err != nil {
			return err
		}
		c.Key, err = tenants.ReadAPIKey(ctx, tx, tenant, key)
		return err
	})
	return c.ready(), err
}

// Contract is what holds for a customer's calls now.
func (d *Directory) Contract(ctx context.Context, tenant, customer uuid.UUID) (billing.Contract, error) {
	return d.contracts.Get(ctx, [2]uuid.UUID{tenant, customer})
}

// Routes are the tenant's usable provider keys, opened.
func (d *Directory) Routes(ctx context.Context, tenant uuid.UUID) ([]tenants.Route, error) {
	return d.routes.Get(ctx, tenant)
}

// RoutesChanged has the tenant's provider keys read again before the next call
// of this process; others see a change within a second.
func (d *Directory) RoutesChanged(tenant uuid.UUID) { d.routes.Drop(tenant) }
