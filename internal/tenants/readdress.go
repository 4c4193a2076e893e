package tenants

import (
	"context"
	"net/url"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalogue"
	"weir/internal/fault"
	"weir/internal/keyring"
)

// address is where a provider key calls and with what, and what a live check
// said of it.
type address struct {
	from   ProviderKey // as the check found the key
	key    ProviderKey // as the check leaves it
	secret *keyring.Secret
	on     bool // it is switched on by the change
}

// readdressed makes the live check of a change of a key's secret or address, and
// of a key that is switched on; nil: the change has none.
func (s *Service) readdressed(ctx context.Context, tenant, key uuid.UUID, c KeyChange) (*address, error) {
	on := c.Disabled != nil && !*c.Disabled
	if c.Secret == nil && c.BaseURL == nil && !on {
		return nil, nil
	}
	k, err := s.ProviderKey(ctx, tenant, key)
	if err != nil {
		return nil, err
	}
	a := address{from: k, key: k, secret: c.Secret, on: on}
	p, _ := catalogue.Lookup(k.Provider)
	if err := a.check(p, c, s); err != nil {
		return nil, err
	}
	if c.Secret == nil && a.key.BaseURL == k.BaseURL && (!on || k.Status != Disabled) {
		return nil, nil
	}
	e := catalogue.Endpoint{Tenant: tenant, Provider: p, BaseURL: a.key.BaseURL}
	if c.Secret != nil {
		e.Secret = *c.Secret
		if !e.Secret.IsZero() {
			a.key.Last4, a.key.Fingerprint = e.Secret.Last4(), e.Secret.Fingerprint()
		}
	} else if _, old, err := s.Endpoint(ctx, tenant, key); err != nil {
		return nil, err
	} else {
		e.Secret = old.Secret
	}
	a.key = s.verified(ctx, a.key, e)
	if a.key.Status == Invalid && c.Secret != nil {
		return nil, fault.New(fault.Refused, "provider_key_invalid", a.key.StatusReason).
			With(fault.Field{Pointer: "/secret", Code: "provider_key_invalid", Message: a.key.StatusReason + " Nothing is changed."})
	}
	if a.key.Status == Invalid && !on {
		return nil, fault.New(fault.Refused, "provider_key_invalid", a.key.StatusReason).
			With(fault.Field{Pointer: "/base_url", Code: "provider_key_invalid", Message: "What answers there refuses this key. Nothing is changed."})
	}
	return &a, nil
}

// check takes the new address, if it may be one. A secret is only ever sent to
// the host that it was given for: whoever could move it elsewhere could read it.
func (a *address) check(p catalogue.Provider, c KeyChange, s *Service) error {
	if p.Practice && (c.Secret != nil || c.BaseURL != nil) {
		return fault.InvalidFields(fault.Field{Code: "not_for_this_kind", Message: "The practice provider has neither key nor address: it is part of this installation."})
	}
	if c.Secret != nil {
		wrong := checkSecret(*c.Secret)
		if c.Secret.IsZero() && (p.NeedsSecret || a.from.Fingerprint != "") {
			wrong = append(wrong, fault.Field{Pointer: "/secret", Code: "required", Message: "A new key is needed."})
		}
		if len(wrong) > 0 {
			return fault.InvalidFields(wrong...)
		}
	}
	if c.BaseURL == nil {
		return nil
	}
	to := *c.BaseURL
	if to == "" {
		to = p.BaseURL
	}
	if to == "" {
		return fault.InvalidFields(fault.Field{Pointer: "/base_url", Code: "required", Message: p.Name + " needs its base URL, such as " + p.ExampleURL() + "."})
	}
	if to != p.BaseURL {
		u, err := s.guard.CheckURL(to)
		if err != nil {
			f := fault.Of(err)
			return f.With(fault.Field{Pointer: "/base_url", Code: f.Code, Message: f.Message})
		}
		to = u.String()
	}
	if c.Secret == nil && a.from.Fingerprint != "" && !sameHost(to, a.from.BaseURL) {
		message := "This is another host. A key is only ever sent where it was given for: type it once more."
		return fault.New(fault.Refused, "secret_required", message).With(fault.Field{Pointer: "/secret", Code: "secret_required", Message: message})
	}
	a.key.BaseURL = to
	return nil
}

// sameHost tells whether two addresses are of one server: scheme, host and port.
func sameHost(a, b string) bool {
	x, err := url.Parse(a)
	if err != nil {
		return false
	}
	y, err := url.Parse(b)
	return err == nil && x.Scheme == y.Scheme && x.Host == y.Host
}

// readdress stores what was checked, unless somebody has changed the key
// meanwhile.
func (s *Service) readdress(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, now ProviderKey, a address) error {
	if now.BaseURL != a.from.BaseURL || now.Fingerprint != a.from.Fingerprint {
		return fault.New(fault.Conflict, "key_changed", "Somebody changed this key's secret or address in this moment. Nothing is changed; look at it and try again.")
	}
	if a.secret != nil {
		sealed, err := s.Seal(ctx, tx, tenant, now.ID, *a.secret)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update provider_keys set sealed_secret = $3, last4 = $4, fingerprint = $5
			where tenant_id = $1 and provider_key_id = $2`, tenant, now.ID, sealed, a.key.Last4, a.key.Fingerprint); err != nil {
			return err
		}
	}
	if now.Status == Disabled && !a.on {
		a.key.Status = Disabled
	}
	_, err := tx.Exec(ctx, `
		update provider_keys set base_url = $3, status = $4, status_reason = $5, models = $6, verified_at = $7
		where tenant_id = $1 and provider_key_id = $2`,
		tenant, now.ID, a.key.BaseURL, string(a.key.Status), a.key.StatusReason, a.key.Models, a.key.VerifiedAt)
	if err != nil {
		return err
	}
	return checked(ctx, tx, tenant, a.key)
}
