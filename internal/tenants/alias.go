package tenants

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
)

// Alias is a tenant's own name of a model. A call that asks for it, by exactly
// this name, is served by one of its candidates; limits and prices are those of
// the name. Where a provider has a model of the same name, the alias stands
// before it.
type Alias struct {
	ID          uuid.UUID
	Name        string
	Description string
	Sticky      bool // calls of one conversation stay with one candidate
	Candidates  []AliasCandidate
	CreatedAt   time.Time
}

// AliasCandidate is a provider's model and through which provider keys it is
// reached: at most one of Provider, Key and Pool is set, none for any key that
// serves the model. Its model is never another alias.
type AliasCandidate struct {
	Model    string
	Provider string // slug
	Key      uuid.UUID
	Pool     uuid.UUID
	Priority int   // 1 is tried first; candidates of one priority share the calls
	Weight   int   // 1–1000, of the calls of its priority
	Named    Named // the key or pool, as it is called
}

// Reaches tells whether the candidate's model is served through a route.
func (c AliasCandidate) Reaches(r Route) bool {
	switch {
	case !r.Key.Serves(c.Model):
		return false
	case c.Provider != "":
		return r.Key.Provider == c.Provider
	case c.Key != uuid.Nil:
		return r.Key.ID == c.Key
	case c.Pool != uuid.Nil:
		return r.Pool.ID == c.Pool
	}
	return true
}

// Target is a provider's model at a provider key that a call may go to.
type Target struct {
	Route     Route
	Model     string
	Candidate int // of the alias, by its place in Candidates; 0 for a plain model
	Priority  int
	Weight    int // of the candidate, however many keys it reaches
}

// Targets are where a call that asks for a name may go: an alias's candidates in
// order, each with the routes that it reaches, and each pair of key and model
// once. For a name that is no alias they are the routes that serve the model of
// this name. The alias is zero where there is none.
func Targets(aliases map[string]Alias, routes []Route, asked string) ([]Target, Alias) {
	a, aliased := aliases[asked]
	candidates := a.Candidates
	if !aliased {
		candidates = []AliasCandidate{{Model: asked, Priority: 1, Weight: 1}}
	}
	var out []Target
	for i, c := range candidates {
		for _, r := range routes {
			twice := func(t Target) bool { return t.Route.Key.ID == r.Key.ID && t.Model == c.Model }
			if c.Reaches(r) && !slices.ContainsFunc(out, twice) {
				out = append(out, Target{Route: r, Model: c.Model, Candidate: i, Priority: c.Priority, Weight: c.Weight})
			}
		}
	}
	return out, a
}

// Aliases are the tenant's aliases by name.
func (s *Service) Aliases(ctx context.Context, tenant uuid.UUID) ([]Alias, error) {
	var list []Alias
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		list, err = readAliases(ctx, tx, tenant, uuid.Nil)
		return err
	})
	return list, err
}

// Alias reads one alias.
func (s *Service) Alias(ctx context.Context, tenant, alias uuid.UUID) (Alias, error) {
	var a Alias
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		a, err = readAlias(ctx, tx, tenant, alias)
		return err
	})
	return a, err
}

func readAlias(ctx context.Context, tx pgx.Tx, tenant, alias uuid.UUID) (Alias, error) {
	if alias == uuid.Nil {
		return Alias{}, NotFound("alias")
	}
	list, err := readAliases(ctx, tx, tenant, alias)
	if err != nil {
		return Alias{}, err
	}
	if len(list) == 0 {
		return Alias{}, NotFound("alias")
	}
	return list[0], nil
}

// readAliases reads one alias, or with a zero id all of them.
func readAliases(ctx context.Context, tx pgx.Tx, tenant, alias uuid.UUID) ([]Alias, error) {
	rows, err := tx.Query(ctx, `
		select alias_id, name, description, sticky, created_at from model_aliases
		where tenant_id = $1 and ($2::uuid is null or alias_id = $2)
		order by name`, tenant, optional(alias))
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Alias, err error) {
		err = row.Scan(&a.ID, &a.Name, &a.Description, &a.Sticky, &a.CreatedAt)
		a.CreatedAt = a.CreatedAt.UTC()
		return a, err
	})
	if err != nil {
		return nil, err
	}
	candidates, err := readCandidates(ctx, tx, tenant, alias)
	for i, a := range list {
		list[i].Candidates = candidates[a.ID]
	}
	return list, err
}

func readCandidates(ctx context.Context, tx pgx.Tx, tenant, alias uuid.UUID) (map[uuid.UUID][]AliasCandidate, error) {
	rows, err := tx.Query(ctx, `
		select c.alias_id, c.model, coalesce(c.provider, ''), c.provider_key_id, c.pool_id, c.priority, c.weight,
		       coalesce(k.name, p.name, ''), coalesce(k.provider, p.provider, ''), coalesce(k.last4, ''),
		       coalesce(k.removed_at, p.removed_at) is not null
		from alias_candidates c
		left join provider_keys k on k.tenant_id = c.tenant_id and k.provider_key_id = c.provider_key_id
		left join pools p on p.tenant_id = c.tenant_id and p.pool_id = c.pool_id
		where c.tenant_id = $1 and ($2::uuid is null or c.alias_id = $2)
		order by c.alias_id, c.position`, tenant, optional(alias))
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]AliasCandidate{}
	var of uuid.UUID
	var c AliasCandidate
	var key, pool *uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{
		&of, &c.Model, &c.Provider, &key, &pool, &c.Priority, &c.Weight, &c.Named.Name, &c.Named.Of, &c.Named.Last4, &c.Named.Gone,
	}, func() error {
		c.Key, c.Pool = orNil(key), orNil(pool)
		out[of] = append(out[of], c)
		return nil
	})
	return out, err
}

func orNil(u *uuid.UUID) uuid.UUID {
	if u == nil {
		return uuid.Nil
	}
	return *u
}

// RemoveAlias forgets an alias. From then on its name is what a provider calls
// by it, or no model.
func (s *Service) RemoveAlias(ctx context.Context, tenant, alias uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		a, err := readAlias(ctx, tx, tenant, alias)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from model_aliases where tenant_id = $1 and alias_id = $2`, tenant, alias); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "alias.removed", id.Alias.Format(alias), aliasDiff{Before: a.told()})
	})
}

// inOrder sorts candidates by priority, and leaves those of one as they stand.
func inOrder(list []AliasCandidate) {
	slices.SortStableFunc(list, func(a, b AliasCandidate) int { return cmp.Compare(a.Priority, b.Priority) })
}
