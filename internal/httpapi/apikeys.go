package httpapi

import (
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"weir/internal/auth"
	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/tenants"
)

type keyBody struct {
	Kind      string      `json:"kind" required:"true" enum:"customer,management"`
	Name      string      `json:"name" required:"true"`
	Customer  string      `json:"customer,omitempty" description:"Of a customer key" example:"cus_01kb0000000000000000000000"`
	Test      bool        `json:"test,omitempty" description:"A test key reaches the practice provider only and is never billed"`
	Scopes    []string    `json:"scopes,omitempty" description:"Of a management key"`
	Limits    []limitBody `json:"limits,omitempty" description:"The key's own limits, beside those of the plan"`
	Models    []string    `json:"models,omitempty" description:"Absent: every model"`
	IPAllow   []string    `json:"ip_allow,omitempty" description:"CIDR blocks; absent: any address"`
	ExpiresAt *time.Time  `json:"expires_at,omitempty"`
	MaySettle bool        `json:"may_settle,omitempty" description:"A customer key may settle its own reservations; their figures are marked self_reported"`
}

type keyJSON struct {
	ID         string      `json:"id" example:"key_01kb0000000000000000000000"`
	Kind       string      `json:"kind" enum:"customer,management"`
	Name       string      `json:"name"`
	Customer   string      `json:"customer,omitempty"`
	Test       bool        `json:"test"`
	MaySettle  bool        `json:"may_settle,omitempty"`
	First4     string      `json:"first4"`
	Last4      string      `json:"last4"`
	Scopes     []string    `json:"scopes,omitempty"`
	Limits     []limitJSON `json:"limits"`
	Models     []string    `json:"models,omitempty"`
	IPAllow    []string    `json:"ip_allow,omitempty"`
	Status     string      `json:"status" enum:"active,revoked,expired"`
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  *time.Time  `json:"expires_at"`
	RevokedAt  *time.Time  `json:"revoked_at"`
	ReplacedBy string      `json:"replaced_by,omitempty" description:"The key that took over when this one was rotated; expires_at says until when this one works"`
	LastUsedAt *time.Time  `json:"last_used_at" description:"To the minute or so"`
}

type issuedKeyJSON struct {
	keyJSON
	Secret string `json:"secret" description:"This once; only its hash is kept" example:"weir_live_…"`
}

func keyOf(k tenants.APIKey) keyJSON {
	out := keyJSON{
		ID: id.APIKey.Format(k.ID), Kind: string(k.Kind), Name: k.Name, Customer: id.Customer.Format(k.Customer), Test: k.Test, MaySettle: k.MaySettle,
		First4: k.First4, Last4: k.Last4, Scopes: k.Scopes, Limits: limitsJSON(k.Limits), Models: k.Models, Status: k.Status(time.Now()),
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt, ReplacedBy: id.APIKey.Format(k.ReplacedBy), LastUsedAt: k.LastUsedAt,
	}
	for _, p := range k.IPAllow {
		out.IPAllow = append(out.IPAllow, p.String())
	}
	return out
}

func addAPIKey(s *Server, r *request, _ none, b keyBody) (issuedKeyJSON, error) {
	if err := grantable(r.caller, b.Scopes); err != nil {
		return issuedKeyJSON{}, err
	}
	n := tenants.NewAPIKey{Kind: tenants.KeyKind(b.Kind), Name: b.Name, Test: b.Test, Scopes: b.Scopes, Models: b.Models, ExpiresAt: b.ExpiresAt, MaySettle: b.MaySettle}
	var err error
	if n.Limits, err = limitsFrom(b.Limits); err != nil {
		return issuedKeyJSON{}, err
	}
	if n.IPAllow, err = prefixes(b.IPAllow); err != nil {
		return issuedKeyJSON{}, err
	}
	if n.Customer, err = optionalID(id.Customer, "customer", b.Customer); err != nil {
		return issuedKeyJSON{}, err
	}
	k, err := s.tenants.AddAPIKey(r.ctx, r.tenant(), n)
	return issuedKeyJSON{keyJSON: keyOf(k.APIKey), Secret: k.Secret}, err
}

// grantable refuses scopes that the caller does not have itself.
func grantable(caller auth.Caller, scopes []string) error {
	for i, s := range scopes {
		if slices.Contains(tenants.Scopes, s) && !caller.May(s) {
			return fault.New(fault.Forbidden, "wrong_scope", "A key cannot give a scope that it does not have itself: "+s+".").
				With(fault.Field{Pointer: "/scopes/" + itoa(i), Code: "wrong_scope", Message: "The key that makes this one does not have this scope."})
		}
	}
	return nil
}

func prefixes(list []string) (out []netip.Prefix, err error) {
	for i, s := range list {
		p, err := netip.ParsePrefix(s)
		if a, one := netip.ParseAddr(s); err != nil && one == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p != p.Masked() {
			return nil, fault.InvalidFields(fault.Field{Pointer: "/ip_allow/" + itoa(i), Code: "bad_cidr", Message: "This is not a block such as 203.0.113.0/24, with no bits set beyond its length."})
		}
		out = append(out, p)
	}
	return out, nil
}

func getAPIKey(s *Server, r *request, _ none, _ none) (keyJSON, error) {
	key, err := r.path(id.APIKey, "API key")
	if err != nil {
		return keyJSON{}, err
	}
	k, err := s.tenants.APIKey(r.ctx, r.tenant(), key)
	return keyOf(k), err
}

func revokeAPIKey(s *Server, r *request, _ none, _ none) (keyJSON, error) {
	key, err := r.path(id.APIKey, "API key")
	if err != nil {
		return keyJSON{}, err
	}
	k, err := s.tenants.RevokeAPIKey(r.ctx, r.tenant(), key)
	return keyOf(k), err
}

type rotateBody struct {
	OverlapSeconds int64 `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" description:"How long the old secret goes on working; absent: it ends now"`
}

type rotatedKeyJSON struct {
	issuedKeyJSON
	Replaces      string    `json:"replaces" description:"The key that was rotated; both share usage, limits and levels" example:"key_01kb0000000000000000000000"`
	OldWorksUntil time.Time `json:"old_works_until"`
}

func rotateAPIKey(s *Server, r *request, _ none, b rotateBody) (rotatedKeyJSON, error) {
	key, err := r.path(id.APIKey, "API key")
	if err != nil {
		return rotatedKeyJSON{}, err
	}
	k, err := s.tenants.APIKey(r.ctx, r.tenant(), key)
	if err != nil {
		return rotatedKeyJSON{}, err
	}
	if err := grantable(r.caller, k.Scopes); err != nil {
		return rotatedKeyJSON{}, err
	}
	overlap := min(max(b.OverlapSeconds, -1), int64(tenants.MaxOverlap/time.Second)+1)
	old, made, err := s.tenants.RotateAPIKey(r.ctx, r.tenant(), key, time.Duration(overlap)*time.Second)
	if err != nil {
		return rotatedKeyJSON{}, err
	}
	return rotatedKeyJSON{issuedKeyJSON{keyOf(made.APIKey), made.Secret}, id.APIKey.Format(old.ID), *old.ExpiresAt}, nil
}

type keyChangeBody struct {
	Name   *string      `json:"name,omitempty"`
	Limits *[]limitBody `json:"limits,omitempty" description:"The whole new set, in the place of the old one; what is used stays"`
}

// change reads a change; limits that are absent stay.
func (b keyChangeBody) change() (tenants.KeyChange, error) {
	c := tenants.KeyChange{Name: b.Name}
	if b.Limits == nil {
		return c, nil
	}
	list, err := limitsFrom(*b.Limits)
	c.Limits = &list
	return c, err
}

func changeAPIKey(s *Server, r *request, _ none, b keyChangeBody) (keyJSON, error) {
	key, err := r.path(id.APIKey, "API key")
	if err != nil {
		return keyJSON{}, err
	}
	c, err := b.change()
	if err != nil {
		return keyJSON{}, err
	}
	k, err := s.tenants.ChangeAPIKey(r.ctx, r.tenant(), key, c)
	return keyOf(k), err
}

type keyQuery struct {
	Limit    string `query:"limit" description:"How many at the most: 1 to 100, 25 if absent"`
	Cursor   string `query:"cursor" description:"next_cursor of the page before"`
	Kind     string `query:"kind" description:"customer or management"`
	Customer string `query:"customer" description:"Only this customer's"`
}

func listAPIKeys(s *Server, r *request, q keyQuery, _ none) (page[keyJSON], error) {
	f := tenants.KeyFilter{Kind: tenants.KeyKind(q.Kind)}
	if f.Kind != "" && f.Kind != tenants.ForCustomer && f.Kind != tenants.Management {
		return page[keyJSON]{}, fault.InvalidFields(fault.Field{Pointer: "?kind", Code: "not_one_of", Message: "kind must be customer or management."})
	}
	var err error
	if f.Customer, err = optionalID(id.Customer, "customer", q.Customer); err != nil {
		return page[keyJSON]{}, err
	}
	return list(s, r, listQuery{q.Limit, q.Cursor}, "api-keys?"+q.Kind+"&"+q.Customer, func(after uuid.UUID, limit int) (tenants.Page[tenants.APIKey], error) {
		return s.tenants.APIKeys(r.ctx, r.tenant(), f, after, limit)
	}, keyOf)
}
