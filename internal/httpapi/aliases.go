package httpapi

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

const exampleAlias = `{"name": "acme-fast", "description": "What the chat of our app uses", "candidates": [{"model": "practice-small", "provider": "practice"}, {"model": "practice-large"}]}`

// candidateBody is a candidate as requests give it.
type candidateBody struct {
	Model       string `json:"model" required:"true" description:"The provider's model name, exactly" example:"gpt-4o"`
	Provider    string `json:"provider,omitempty" description:"Through any key at this provider; provider, provider_key and pool absent: through any key that serves the model" example:"openai"`
	ProviderKey string `json:"provider_key,omitempty" description:"Through this key only"`
	Pool        string `json:"pool,omitempty" description:"Through the keys of this pool only"`
	Priority    *int   `json:"priority,omitempty" nullable:"false" minimum:"1" maximum:"100" description:"1 is tried first; candidates of one priority share the calls. Absent: one after the candidate before it"`
	Weight      *int   `json:"weight,omitempty" nullable:"false" minimum:"1" maximum:"1000" description:"Of the calls that candidates of one priority share; absent: 1"`
}

type aliasBody struct {
	Name        string          `json:"name" required:"true" description:"What calls ask for, exactly. It may be the name of a provider's model, and then stands before it" example:"acme-fast"`
	Description string          `json:"description,omitempty"`
	Sticky      bool            `json:"sticky,omitempty" description:"Calls of one conversation stay with one candidate"`
	Candidates  []candidateBody `json:"candidates" required:"true" nullable:"false" description:"In order, at most 32"`
}

type aliasChangeBody struct {
	Name        *string          `json:"name,omitempty" nullable:"false"`
	Description clearable        `json:"description,omitempty" description:"null clears it"`
	Sticky      *bool            `json:"sticky,omitempty" nullable:"false"`
	Candidates  *[]candidateBody `json:"candidates,omitempty" nullable:"false" description:"The whole new list"`
}

type candidateJSON struct {
	Model       string  `json:"model"`
	Provider    *string `json:"provider" description:"null: through any provider, or as provider_key or pool says"`
	ProviderKey *string `json:"provider_key"`
	Pool        *string `json:"pool"`
	Priority    int     `json:"priority"`
	Weight      int     `json:"weight"`
}

type aliasJSON struct {
	ID          string          `json:"id" example:"als_01kb0000000000000000000000"`
	Name        string          `json:"name" example:"acme-fast"`
	Description string          `json:"description,omitempty"`
	Sticky      bool            `json:"sticky"`
	Candidates  []candidateJSON `json:"candidates"`
	CreatedAt   time.Time       `json:"created_at"`
}

func aliasOf(a tenants.Alias) aliasJSON {
	out := aliasJSON{ID: id.Alias.Format(a.ID), Name: a.Name, Description: a.Description, Sticky: a.Sticky, Candidates: []candidateJSON{}, CreatedAt: a.CreatedAt}
	for _, c := range a.Candidates {
		one := candidateJSON{Model: c.Model, Pool: optionalPool(c.Pool), Priority: c.Priority, Weight: c.Weight}
		if c.Provider != "" {
			one.Provider = &c.Provider
		}
		if c.Key != uuid.Nil {
			key := id.ProviderKey.Format(c.Key)
			one.ProviderKey = &key
		}
		out.Candidates = append(out.Candidates, one)
	}
	return out
}

// candidatesFrom reads candidates; an id that is malformed is one that nobody
// has.
func candidatesFrom(list []candidateBody) ([]tenants.AliasCandidate, error) {
	out := make([]tenants.AliasCandidate, len(list))
	for i, b := range list {
		at := "/candidates/" + strconv.Itoa(i)
		c := tenants.AliasCandidate{Model: b.Model, Provider: b.Provider}
		var err error
		if c.Key, err = optionalID(id.ProviderKey, "provider key", b.ProviderKey); err != nil {
			return nil, missing(at+"/provider_key", "provider key")
		}
		if c.Pool, err = optionalID(id.Pool, "pool", b.Pool); err != nil {
			return nil, missing(at+"/pool", "pool")
		}
		if c.Priority, err = stated(b.Priority, at+"/priority"); err != nil {
			return nil, err
		}
		if c.Weight, err = stated(b.Weight, at+"/weight"); err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// stated is a number that may be absent, which is 0 here: 0 itself is refused.
func stated(n *int, pointer string) (int, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n == 0:
		return 0, fault.InvalidFields(fault.Field{Pointer: pointer, Code: "out_of_range", Message: "This is a whole number from 1; leave it out for the usual."})
	}
	return *n, nil
}

func addAlias(s *Server, r *request, _ none, b aliasBody) (aliasJSON, error) {
	list, err := candidatesFrom(b.Candidates)
	if err != nil {
		return aliasJSON{}, err
	}
	a, err := s.tenants.AddAlias(r.ctx, r.tenant(), tenants.NewAlias{Name: b.Name, Description: b.Description, Sticky: b.Sticky, Candidates: list})
	s.directory.RoutesChanged(r.tenant())
	return aliasOf(a), err
}

func listAliases(s *Server, r *request, q listQuery, _ none) (page[aliasJSON], error) {
	all, err := s.tenants.Aliases(r.ctx, r.tenant())
	if err != nil {
		return page[aliasJSON]{}, err
	}
	return listByName(s, r, q, "model-aliases", all, func(a tenants.Alias) string { return a.Name }, aliasOf)
}

func getAlias(s *Server, r *request, _ none, _ none) (aliasJSON, error) {
	alias, err := r.path(id.Alias, "alias")
	if err != nil {
		return aliasJSON{}, err
	}
	a, err := s.tenants.Alias(r.ctx, r.tenant(), alias)
	return aliasOf(a), err
}

func changeAlias(s *Server, r *request, _ none, b aliasChangeBody) (aliasJSON, error) {
	alias, err := r.path(id.Alias, "alias")
	if err != nil {
		return aliasJSON{}, err
	}
	c := tenants.AliasChange{Name: b.Name, Description: b.Description.to(), Sticky: b.Sticky}
	if b.Candidates != nil {
		list, err := candidatesFrom(*b.Candidates)
		if err != nil {
			return aliasJSON{}, err
		}
		c.Candidates = &list
	}
	a, err := s.tenants.ChangeAlias(r.ctx, r.tenant(), alias, c)
	s.directory.RoutesChanged(r.tenant())
	return aliasOf(a), err
}

func removeAlias(s *Server, r *request, _ none, _ none) (none, error) {
	alias, err := r.path(id.Alias, "alias")
	if err != nil {
		return none{}, err
	}
	err = s.tenants.RemoveAlias(r.ctx, r.tenant(), alias)
	s.directory.RoutesChanged(r.tenant())
	return none{}, err
}
