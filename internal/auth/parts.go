package auth

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/billing"
	"weir/internal/limits"
	"weir/internal/tenants"
)

// ref is an object of a tenant.
type ref struct{ tenant, object uuid.UUID }

// ground is what a directory remembers of a tenant.
type ground struct {
	*billing.Ground
	none    *limits.Set  // of a key without limits
	noTerms *placedTerms // of a customer without a subscription
	until   time.Time    // when another zone takes effect; zero: none is coming
}

func readGround(ctx context.Context, s *tenants.Service, tenant uuid.UUID, now func() time.Time) (*ground, error) {
	began := now() // a zone that takes effect meanwhile is not missed
	t, err := s.Get(ctx, tenant)
	if err != nil {
		return nil, err
	}
	g := &ground{Ground: billing.NewGround(t), none: limits.Compile()}
	g.noTerms = &placedTerms{on: g}
	if from, pending := t.Zones.Pending(began); pending {
		g.until = from
	}
	return g, nil
}

// key is what a directory remembers of an API key.
type key struct {
	tenants.APIKey
	placed atomic.Pointer[placedKey]
}

// placedKey is a key's limits on the ground that its tenant was last.
type placedKey struct {
	on   *ground
	list []limits.Limit
	set  *limits.Set
}

func readKey(ctx context.Context, s *tenants.Service, r ref) (*key, error) {
	k, err := s.APIKey(ctx, r.tenant, r.object)
	k.LastUsedAt = nil // is nothing that is remembered
	if k.Kind == tenants.ForCustomer {
		k.Kind, k.Scopes = tenants.ForCustomer, nil // one string for all of them
	}
	return &key{APIKey: k}, err
}

// at is the caller that the key stands for.
func (k *key) at(g *ground) Caller {
	c := Caller{Tenant: g.Tenant, Key: k.APIKey, Limits: g.none}
	if len(k.Limits) == 0 {
		return c
	}
	p := k.placed.Load()
	if p == nil || p.on != g {
		list := tenants.InZones(slices.Clone(k.Limits), g.Tenant.Zones)
		c.Key.Limits = list
		p = &placedKey{on: g, list: list, set: compiled(c.Key)}
		k.placed.Store(p)
	}
	c.Key.Limits, c.Limits = p.list, p.set
	return c
}

// terms are what a directory remembers of a plan version.
type terms struct {
	billing.Terms
	placed atomic.Pointer[placedTerms]
}

// placedTerms are terms on the ground that their tenant was last, for all who
// are on them.
type placedTerms struct {
	on *ground
	billing.Terms
}

func (t *terms) at(g *ground) *placedTerms {
	p := t.placed.Load()
	if p == nil || p.on != g {
		p = &placedTerms{g, t.In(g.Tenant.Zones)}
		t.placed.Store(p)
	}
	return p
}

// party is what a directory remembers of a customer.
type party struct {
	billing.Party
	placed atomic.Pointer[placedParty]
}

type placedParty struct {
	on    *ground
	by    *placedTerms
	spell int // between which overrides begin and end
	billing.Enforced
}

// under is the contract at an instant of a customer, as it stands then, on its
// plan's terms.
func (p *party) under(now time.Time, at billing.Party, g *ground, t *placedTerms) billing.Contract {
	e, spell := p.placed.Load(), at.Spell(now)
	if e == nil || e.on != g || e.by != t || e.spell != spell {
		e = &placedParty{g, t, spell, g.Compile(at, t.Terms, now)}
		p.placed.Store(e)
	}
	return g.Contract(at, t.Terms, e.Enforced)
}

// readAliases leaves out what candidates' keys and pools are called: that may
// change without the alias.
func readAliases(ctx context.Context, s *tenants.Service, tenant uuid.UUID) (map[string]tenants.Alias, error) {
	list, err := s.Aliases(ctx, tenant)
	byName := make(map[string]tenants.Alias, len(list))
	for _, a := range list {
		for i := range a.Candidates {
			a.Candidates[i].Named = tenants.Named{}
		}
		byName[a.Name] = a
	}
	return byName, err
}

func (d *Directory) readSecret(ctx context.Context, hash [32]byte) (r ref, err error) {
	err = d.db.Tx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select tenant_id, api_key_id from lookup_api_key($1)`, hash[:]).Scan(&r.tenant, &r.object)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return r, unknownKey()
	}
	return r, err
}
