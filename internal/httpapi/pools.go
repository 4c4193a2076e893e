package httpapi

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

type poolBody struct {
	Name     string      `json:"name" required:"true"`
	Provider string      `json:"provider,omitempty" description:"At which the account is; absent: that of the keys" example:"openai"`
	Keys     []string    `json:"provider_keys,omitempty" description:"Keys of the account, all of one provider, each in no other pool"`
	Limits   []limitBody `json:"limits,omitempty" description:"The account's limits: one ledger for all of its keys"`
	Zone     string      `json:"zone,omitempty" description:"IANA time zone in which the provider's days end; absent: as the catalogue says" example:"America/Los_Angeles"`
}

type poolChangeBody struct {
	keyChangeBody
	Keys *[]string `json:"provider_keys,omitempty" nullable:"false" description:"The whole new set"`
	Zone *string   `json:"zone,omitempty" nullable:"false" description:"IANA time zone in which the provider's days end; it counts once the running day ends" example:"America/Los_Angeles"`
}

type poolJSON struct {
	ID        string        `json:"id" example:"pol_01kb0000000000000000000000"`
	Provider  string        `json:"provider"`
	Name      string        `json:"name"`
	Zone      string        `json:"zone" description:"IANA time zone in which the provider's day ends, as it was last corrected"`
	Keys      []string      `json:"provider_keys"`
	Limits    []limitJSON   `json:"limits"`
	Learned   []learnedJSON `json:"learned" description:"Limits learned through any of its keys, as they were stated last"`
	CreatedAt time.Time     `json:"created_at"`
}

func poolOf(p tenants.Pool) poolJSON {
	out := poolJSON{
		ID: id.Pool.Format(p.ID), Provider: p.Provider, Name: p.Name, Zone: p.Zone, Keys: make([]string, len(p.Keys)),
		Limits: limitsJSON(p.Limits), Learned: learnedOf(p.Learned, p.Limits), CreatedAt: p.CreatedAt,
	}
	for i, k := range p.Keys {
		out.Keys[i] = id.ProviderKey.Format(k)
	}
	return out
}

// optionalPool is null for none.
func optionalPool(pool uuid.UUID) *string {
	if pool == uuid.Nil {
		return nil
	}
	text := id.Pool.Format(pool)
	return &text
}

// keysFrom reads the ids of provider keys; a malformed one is one that nobody
// has.
func keysFrom(list []string) ([]uuid.UUID, error) {
	out := make([]uuid.UUID, len(list))
	for i, text := range list {
		key, err := id.ProviderKey.Parse(text)
		if err != nil {
			return nil, missing("/provider_keys/"+strconv.Itoa(i), "provider key")
		}
		out[i] = key
	}
	return out, nil
}

func missing(pointer, what string) error {
	f := fault.Of(tenants.NotFound(what))
	return f.With(fault.Field{Pointer: pointer, Code: f.Code, Message: f.Message})
}

func addPool(s *Server, r *request, _ none, b poolBody) (poolJSON, error) {
	list, err := limitsFrom(b.Limits)
	if err != nil {
		return poolJSON{}, err
	}
	keys, err := keysFrom(b.Keys)
	if err != nil {
		return poolJSON{}, err
	}
	p, err := s.tenants.AddPool(r.ctx, r.tenant(), tenants.NewPool{Name: b.Name, Provider: b.Provider, Zone: b.Zone, Limits: list, Keys: keys})
	s.directory.RoutesChanged(r.tenant())
	return poolOf(p), err
}

func listPools(s *Server, r *request, q listQuery, _ none) (page[poolJSON], error) {
	return list(s, r, q, "pools", func(after uuid.UUID, limit int) (tenants.Page[tenants.Pool], error) {
		return s.tenants.Pools(r.ctx, r.tenant(), after, limit)
	}, poolOf)
}

func getPool(s *Server, r *request, _ none, _ none) (poolJSON, error) {
	pool, err := r.path(id.Pool, "pool")
	if err != nil {
		return poolJSON{}, err
	}
	p, err := s.tenants.Pool(r.ctx, r.tenant(), pool)
	return poolOf(p), err
}

func changePool(s *Server, r *request, _ none, b poolChangeBody) (poolJSON, error) {
	pool, err := r.path(id.Pool, "pool")
	if err != nil {
		return poolJSON{}, err
	}
	common, err := b.change()
	if err != nil {
		return poolJSON{}, err
	}
	c := tenants.PoolChange{Name: common.Name, Limits: common.Limits, Zone: b.Zone}
	if b.Keys != nil {
		keys, err := keysFrom(*b.Keys)
		if err != nil {
			return poolJSON{}, err
		}
		c.Keys = &keys
	}
	p, err := s.tenants.ChangePool(r.ctx, r.tenant(), pool, c)
	s.directory.RoutesChanged(r.tenant())
	return poolOf(p), err
}

func removePool(s *Server, r *request, _ none, _ none) (none, error) {
	pool, err := r.path(id.Pool, "pool")
	if err != nil {
		return none{}, err
	}
	err = s.tenants.RemovePool(r.ctx, r.tenant(), pool)
	s.directory.RoutesChanged(r.tenant())
	return none{}, err
}
