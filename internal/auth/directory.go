// Package auth says who is calling: an API key's holder or a person with a
// session. It decides nothing about limits; the surfaces decide what a caller
// may do.
package auth

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/billing"
	"weir/internal/cache"
	"weir/internal/catalogue"
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

// Directory finds callers and what holds for them. It remembers tenants, keys,
// customers and plan versions apart, each until it changes: what changes of a
// tenant with a million keys is read once. Whoever runs Follow keeps it up to
// date; without, it reads what it is asked for again every second. It is safe
// for concurrent use.
type Directory struct {
	db      *postgres.DB
	now     func() time.Time
	tokens  *TokenKeys
	horizon *cache.Horizon
	secrets *cache.Cache[[32]byte, ref] // a secret's key never changes
	grounds *cache.Cache[uuid.UUID, *ground]
	keys    *cache.Cache[ref, *key]
	parties *cache.Cache[ref, *party]
	terms   *cache.Cache[ref, *terms]
	routes  *cache.Cache[uuid.UUID, []tenants.Route]
	aliases *cache.Cache[uuid.UUID, map[string]tenants.Alias]
	books   *cache.Cache[uuid.UUID, *catalogue.Book]

	following sync.Mutex // one looks for changes at a time
	seen      position
}

// Bounds of what is remembered.
const (
	freshFor = time.Second // how late a change may be seen
	keptFor  = 30 * time.Minute
	staleFor = 5 * time.Minute // while the database is out

	mostKeys      = 1_000_000
	mostCustomers = 250_000
	mostTenants   = 100_000
)

// NewDirectory makes a directory.
func NewDirectory(db *postgres.DB, t *tenants.Service, b *billing.Service, tokens *TokenKeys, now func() time.Time) *Directory {
	d := &Directory{db: db, now: now, tokens: tokens, horizon: cache.NewHorizon(freshFor)}
	forever := cache.Options[ref]{Fresh: math.MaxInt64, Max: mostKeys, Now: now, Horizon: d.horizon}
	d.secrets = cache.New(forever, d.readSecret)
	untilZone := remembered[*ground](d, mostTenants)
	untilZone.Until = func(g *ground) time.Time { return g.until }
	d.grounds = cache.New(untilZone, func(ctx context.Context, id uuid.UUID) (*ground, error) { return readGround(ctx, t, id, now) })
	d.keys = cache.New(remembered[*key](d, mostKeys), func(ctx context.Context, r ref) (*key, error) { return readKey(ctx, t, r) })
	d.parties = cache.New(remembered[*party](d, mostCustomers), func(ctx context.Context, r ref) (*party, error) {
		p, err := b.PartyOf(ctx, r.tenant, r.object)
		return &party{Party: p}, err
	})
	d.terms = cache.New(remembered[*terms](d, mostTenants), func(ctx context.Context, r ref) (*terms, error) {
		read, err := b.TermsOf(ctx, r.tenant, r.object)
		return &terms{Terms: read}, err
	})
	d.routes = cache.New(remembered[[]tenants.Route](d, mostTenants), t.Routes)
	d.aliases = cache.New(remembered[map[string]tenants.Alias](d, mostTenants), func(ctx context.Context, tenant uuid.UUID) (map[string]tenants.Alias, error) {
		return readAliases(ctx, t, tenant)
	})
	d.books = cache.New(remembered[*catalogue.Book](d, mostTenants), func(ctx context.Context, id uuid.UUID) (*catalogue.Book, error) {
		return catalogue.BookOf(ctx, db, id)
	})
	return d
}

func remembered[V any](d *Directory, most int) cache.Options[V] {
	return cache.Options[V]{Fresh: freshFor, Keep: keptFor, Stale: staleFor, Max: most, Now: d.now, Horizon: d.horizon}
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

// Suspended tells whether a tenant is suspended: what of its calls still runs has
// to end.
func (d *Directory) Suspended(ctx context.Context, tenant uuid.UUID) (bool, error) {
	g, err := d.grounds.Get(ctx, tenant)
	return err == nil && g.Tenant.SuspendedAt != nil, err
}

func (d *Directory) find(ctx context.Context, secret string) (Caller, error) {
	switch {
	case tenants.WellFormed(secret):
		r, err := d.secrets.Get(ctx, [32]byte(tenants.HashSecret(secret)))
		if err != nil {
			return Caller{}, err
		}
		return d.holder(ctx, r)
	case !looksLikeToken(secret):
		return Caller{}, unknownKey()
	}
	token, err := d.tokens.Read(secret)
	if err != nil {
		return Caller{}, err
	}
	c, err := d.holder(ctx, ref{token.Tenant, token.Key})
	if err != nil {
		return Caller{}, err
	}
	return c.narrowed(token), nil
}

// holder is the caller that a key stands for.
func (d *Directory) holder(ctx context.Context, r ref) (Caller, error) {
	k, err := d.keys.Get(ctx, r)
	if err == nil {
		var g *ground
		if g, err = d.grounds.Get(ctx, r.tenant); err == nil {
			return k.at(g), nil
		}
	}
	if fault.Is(err, fault.NotFound) {
		return Caller{}, unknownKey()
	}
	return Caller{}, err
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
	c.Key.Limits = append(slices.Clone(c.Key.Limits), tenants.InZones(own, c.Tenant.Zones)...)
	c.Limits = compiled(c.Key)
	return c
}

// compiled is a key's limits made ready for decisions.
func compiled(k tenants.APIKey) *limits.Set {
	if k.Test {
		return limits.Compile(limits.TestPlan(k.Limits))
	}
	return limits.Compile(k.Limits)
}

// Plan is every limit of the caller's own under a contract.
func (c Caller) Plan(contract billing.Contract) []*limits.Set {
	sets := contract.Sets
	if c.Key.Test {
		sets = contract.TestSets()
	}
	return append(slices.Clip(sets), c.Limits)
}

func unknownKey() error {
	return fault.New(fault.Unauthenticated, "invalid_api_key", "This API key is not known. A key starts with weir_live_ or weir_test_ and is sent as \"Authorization: Bearer …\".")
}

func within(allow []netip.Prefix, ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// Contract is what holds for a customer's calls now.
func (d *Directory) Contract(ctx context.Context, tenant, customer uuid.UUID) (billing.Contract, error) {
	g, err := d.grounds.Get(ctx, tenant)
	if err != nil {
		return billing.Contract{}, err
	}
	p, err := d.parties.Get(ctx, ref{tenant, customer})
	if err != nil {
		return billing.Contract{}, err
	}
	now := d.now()
	at := p.At(now)
	if at.Subscription == uuid.Nil {
		return p.under(now, at, g, g.noTerms), nil
	}
	t, err := d.terms.Get(ctx, ref{tenant, at.Version})
	if err != nil {
		return billing.Contract{}, err
	}
	return p.under(now, at, g, t.at(g)), nil
}

// Routes are the tenant's usable provider keys, opened.
func (d *Directory) Routes(ctx context.Context, tenant uuid.UUID) ([]tenants.Route, error) {
	return d.routes.Get(ctx, tenant)
}

// Aliases are the tenant's own model names, by name, without what keys and pools
// of candidates are called. Nobody may change the map.
func (d *Directory) Aliases(ctx context.Context, tenant uuid.UUID) (map[string]tenants.Alias, error) {
	return d.aliases.Get(ctx, tenant)
}

// RoutesChanged has the tenant's provider keys, pools and aliases read again
// before the next call of this process; others see a change within a second.
func (d *Directory) RoutesChanged(tenant uuid.UUID) {
	d.routes.Renew(tenant)
	d.aliases.Renew(tenant)
}

// Book is what the catalogue says to a tenant: models, published limits, and
// what providers charge.
func (d *Directory) Book(ctx context.Context, tenant uuid.UUID) (*catalogue.Book, error) {
	return d.books.Get(ctx, tenant)
}
