package tenants

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/id"
)

// Bounds of aliases.
const (
	MaxAliases    = 500
	MaxCandidates = 32
	MaxPriority   = 100
	MaxWeight     = 1000

	maxDescription = 500
)

// NewAlias is what an alias starts from. A candidate's priority of 0 is one after
// the candidate before it, a weight of 0 is 1.
type NewAlias struct {
	Name        string
	Description string
	Sticky      bool
	Candidates  []AliasCandidate
}

// AliasChange is what of an alias may be changed; nil leaves it as it is.
type AliasChange struct {
	Name        *string
	Description *string
	Sticky      *bool
	Candidates  *[]AliasCandidate // the whole new list
}

// AddAlias makes an alias. A taken name is a Conflict.
func (s *Service) AddAlias(ctx context.Context, tenant uuid.UUID, n NewAlias) (Alias, error) {
	n, err := n.checked()
	if err != nil {
		return Alias{}, err
	}
	var a Alias
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		var many int
		if err := tx.QueryRow(ctx, `select count(*) from model_aliases where tenant_id = $1`, tenant).Scan(&many); err != nil {
			return err
		}
		if many >= MaxAliases {
			return fault.New(fault.Conflict, "too_many_aliases", "A tenant has at most 500 aliases. Remove one that nobody asks for.")
		}
		a = Alias{ID: id.New(), CreatedAt: s.now().UTC().Truncate(time.Microsecond)}
		if _, err := tx.Exec(ctx, `
			insert into model_aliases (tenant_id, alias_id, name, description, sticky, created_at)
			values ($1, $2, $3, $4, $5, $6)`, tenant, a.ID, n.Name, n.Description, n.Sticky, a.CreatedAt); err != nil {
			return err
		}
		if err := n.writeCandidates(ctx, tx, tenant, a.ID); err != nil {
			return err
		}
		if a, err = readAlias(ctx, tx, tenant, a.ID); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "alias.created", id.Alias.Format(a.ID), aliasDiff{After: a.told()})
	})
	return a, conflict(err)
}

// ChangeAlias changes an alias, everywhere within a second. A taken name is a
// Conflict.
func (s *Service) ChangeAlias(ctx context.Context, tenant, alias uuid.UUID, c AliasChange) (Alias, error) {
	var a Alias
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from model_aliases where tenant_id = $1 and alias_id = $2 for update`, tenant, alias); err != nil {
			return err
		}
		before, err := readAlias(ctx, tx, tenant, alias)
		if err != nil {
			return err
		}
		n, err := c.on(before).checked()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update model_aliases set name = $3, description = $4, sticky = $5
			where tenant_id = $1 and alias_id = $2`, tenant, alias, n.Name, n.Description, n.Sticky); err != nil {
			return err
		}
		if c.Candidates != nil {
			if err := n.writeCandidates(ctx, tx, tenant, alias); err != nil {
				return err
			}
		}
		if a, err = readAlias(ctx, tx, tenant, alias); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "alias.changed", id.Alias.Format(alias), aliasDiff{Before: before.told(), After: a.told()})
	})
	return a, conflict(err)
}

func (c AliasChange) on(a Alias) NewAlias {
	n := NewAlias{Name: a.Name, Description: a.Description, Sticky: a.Sticky, Candidates: a.Candidates}
	if c.Name != nil {
		n.Name = *c.Name
	}
	if c.Description != nil {
		n.Description = *c.Description
	}
	if c.Sticky != nil {
		n.Sticky = *c.Sticky
	}
	if c.Candidates != nil {
		n.Candidates = *c.Candidates
	}
	return n
}

// checked is n with defaults and in order, or every field that is wrong.
func (n NewAlias) checked() (NewAlias, error) {
	var wrong []fault.Field
	if !catalogue.ValidModel(n.Name) {
		wrong = append(wrong, fault.Field{Pointer: "/name", Code: "bad_model", Message: "A model name is 1 to 200 printable ASCII characters without spaces; callers send exactly this."})
	}
	if utf8.RuneCountInString(n.Description) > maxDescription {
		wrong = append(wrong, fault.Field{Pointer: "/description", Code: "too_long", Message: "This may have at most 500 characters."})
	}
	wrong = append(wrong, CheckText("/description", n.Description)...)
	switch {
	case len(n.Candidates) == 0:
		wrong = append(wrong, fault.Field{Pointer: "/candidates", Code: "required", Message: "An alias needs at least one model that serves it."})
	case len(n.Candidates) > MaxCandidates:
		wrong = append(wrong, fault.Field{Pointer: "/candidates", Code: "too_many", Message: "An alias has at most 32 candidates."})
	}
	list := make([]AliasCandidate, len(n.Candidates))
	last := 0
	for i, c := range n.Candidates {
		if c.Priority == 0 {
			c.Priority = last + 1
		}
		if c.Weight == 0 {
			c.Weight = 1
		}
		c.Named = Named{}
		for _, earlier := range list[:i] {
			if earlier.sameAs(c) {
				wrong = append(wrong, fault.Field{Pointer: at(i, "model"), Code: "duplicate", Message: "This candidate is in the list already; say how much of the calls it takes by its weight."})
			}
		}
		wrong = append(wrong, c.check(i)...)
		last, list[i] = c.Priority, c
	}
	if len(wrong) > 0 {
		return n, fault.InvalidFields(wrong...)
	}
	n.Candidates = list
	return n, nil
}

func (c AliasCandidate) sameAs(o AliasCandidate) bool {
	return c.Model == o.Model && c.Provider == o.Provider && c.Key == o.Key && c.Pool == o.Pool
}

func (c AliasCandidate) check(i int) (wrong []fault.Field) {
	if !catalogue.ValidModel(c.Model) {
		wrong = append(wrong, fault.Field{Pointer: at(i, "model"), Code: "bad_model", Message: "This is not a model name."})
	}
	if c.Priority < 1 || c.Priority > MaxPriority {
		wrong = append(wrong, fault.Field{Pointer: at(i, "priority"), Code: "out_of_range", Message: "A priority is a whole number from 1, which is tried first, to 100."})
	}
	if c.Weight < 1 || c.Weight > MaxWeight {
		wrong = append(wrong, fault.Field{Pointer: at(i, "weight"), Code: "out_of_range", Message: "A weight is a whole number from 1 to 1,000."})
	}
	places := 0
	for _, set := range []bool{c.Provider != "", c.Key != uuid.Nil, c.Pool != uuid.Nil} {
		if set {
			places++
		}
	}
	if places > 1 {
		wrong = append(wrong, fault.Field{Pointer: at(i, "provider"), Code: "not_allowed", Message: "Name a provider, a provider key or a pool, not several of them; leave all out for any key that serves the model."})
	}
	if _, known := catalogue.Lookup(c.Provider); c.Provider != "" && !known {
		wrong = append(wrong, fault.Field{Pointer: at(i, "provider"), Code: "unknown_provider", Message: "There is no such provider."})
	}
	return wrong
}

// at is the pointer to a member of a candidate.
func at(i int, member string) string { return "/candidates/" + strconv.Itoa(i) + "/" + member }

// writeCandidates puts the alias's candidates in the place of what it has.
func (n NewAlias) writeCandidates(ctx context.Context, tx pgx.Tx, tenant, alias uuid.UUID) error {
	if err := n.checkAgainst(ctx, tx, tenant); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from alias_candidates where tenant_id = $1 and alias_id = $2`, tenant, alias); err != nil {
		return err
	}
	inOrder(n.Candidates)
	for i, c := range n.Candidates {
		if _, err := tx.Exec(ctx, `
			insert into alias_candidates (tenant_id, alias_id, position, model, provider, provider_key_id, pool_id, priority, weight)
			values ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9)`,
			tenant, alias, i, c.Model, c.Provider, optional(c.Key), optional(c.Pool), c.Priority, c.Weight); err != nil {
			return err
		}
	}
	return nil
}

// checkAgainst finds candidates that name what is not there (NotFound), or an
// alias.
func (n NewAlias) checkAgainst(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	var wrong []fault.Field
	for i, c := range n.Candidates {
		var key, pool, served, alias bool
		err := tx.QueryRow(ctx, `
			select exists (select from provider_keys where tenant_id = $1 and provider_key_id = $2 and removed_at is null),
			       exists (select from pools where tenant_id = $1 and pool_id = $3 and removed_at is null),
			       exists (select from provider_keys where tenant_id = $1 and removed_at is null and $4 = any(models)),
			       exists (select from model_aliases where tenant_id = $1 and name = $4)`,
			tenant, c.Key, c.Pool, c.Model).Scan(&key, &pool, &served, &alias)
		if err != nil {
			return err
		}
		switch {
		case c.Key != uuid.Nil && !key:
			return Missing(at(i, "provider_key"), "provider key")
		case c.Pool != uuid.Nil && !pool:
			return Missing(at(i, "pool"), "pool")
		case alias && !served && c.Model == n.Name:
			wrong = append(wrong, fault.Field{Pointer: at(i, "model"), Code: "alias_of_itself", Message: "This is the alias itself, and no provider key serves a model of this name. Name the provider's model."})
		case alias && !served:
			wrong = append(wrong, fault.Field{Pointer: at(i, "model"), Code: "alias_of_alias", Message: "This is an alias, and no provider key serves a model of this name. Name the provider's model."})
		}
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong...)
	}
	return nil
}

// toldAlias is an alias as the audit keeps it.
type toldAlias struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Sticky      bool            `json:"sticky,omitempty"`
	Candidates  []toldCandidate `json:"candidates"`
}

type toldCandidate struct {
	Model    string `json:"model"`
	Provider string `json:"provider,omitempty"`
	Through  string `json:"through,omitempty"` // the key or pool, as it was called
	Priority int    `json:"priority"`
	Weight   int    `json:"weight"`
}

type aliasDiff struct {
	Before *toldAlias `json:"before,omitempty"`
	After  *toldAlias `json:"after,omitempty"`
}

func (a Alias) told() *toldAlias {
	t := &toldAlias{Name: a.Name, Description: a.Description, Sticky: a.Sticky}
	for _, c := range a.Candidates {
		t.Candidates = append(t.Candidates, toldCandidate{c.Model, c.Provider, c.Named.Name, c.Priority, c.Weight})
	}
	return t
}
