package notify

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/keyring"
	"weir/internal/tenants"
)

// EndpointChange is what changes of an endpoint; nil leaves it as it is.
type EndpointChange struct {
	URL         *string
	Description *string
	Types       *[]string // none: every type
	Disabled    *bool
}

func (c EndpointChange) apply(e *Endpoint, now time.Time) (changed map[string][2]any) {
	changed = map[string][2]any{}
	for _, f := range []struct {
		name string
		to   *string
		at   *string
	}{{"url", c.URL, &e.URL}, {"description", c.Description, &e.Description}} {
		if f.to != nil && *f.to != *f.at {
			changed[f.name] = [2]any{*f.at, *f.to}
			*f.at = *f.to
			if f.name == "url" { // what failed was another place
				e.FailingSince = nil
			}
		}
	}
	if c.Types != nil && !slices.Equal(*c.Types, e.Types) {
		changed["types"] = [2]any{e.Types, *c.Types}
		e.Types = append([]string{}, *c.Types...)
	}
	if c.Disabled != nil && *c.Disabled != (e.DisabledAt != nil) {
		changed["disabled"] = [2]any{!*c.Disabled, *c.Disabled}
		e.DisabledAt, e.DisabledWhy = nil, ""
		if *c.Disabled {
			e.DisabledAt, e.DisabledWhy = &now, OffByPerson
		}
		e.FailingSince = nil
	}
	return changed
}

// ChangeEndpoint changes an endpoint. What waits for one that is switched off is
// held, for a replay.
func (s *Service) ChangeEndpoint(ctx context.Context, tenant, endpoint uuid.UUID, c EndpointChange) (Endpoint, error) {
	var e Endpoint
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if e, err = readEndpoint(ctx, tx, tenant, endpoint, "for update"); err != nil {
			return err
		}
		changed := c.apply(&e, s.instant())
		if len(changed) == 0 {
			return nil
		}
		if c.URL != nil || c.Description != nil || c.Types != nil {
			if e.URL, err = s.checkEndpoint(e.URL, e.Description, e.Types); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `
			update webhook_endpoints
			set url = $3, description = $4, types = $5, disabled_at = $6, disabled_why = $7, failing_since = $8
			where tenant_id = $1 and endpoint_id = $2`,
			tenant, endpoint, e.URL, e.Description, e.Types, e.DisabledAt, e.DisabledWhy, e.FailingSince); err != nil {
			return err
		}
		if e.DisabledAt != nil {
			if err := hold(ctx, tx, tenant, endpoint); err != nil {
				return err
			}
		}
		return tenants.Audit(ctx, tx, tenant, "webhook_endpoint.changed", id.Endpoint.Format(endpoint), changed)
	})
	return e, err
}

// hold stops what waits for an endpoint that is off. What is on its way at this
// moment may still arrive.
func hold(ctx context.Context, tx pgx.Tx, tenant, endpoint uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		update webhook_deliveries set state = 'held', lease = null
		where tenant_id = $1 and endpoint_id = $2 and state = 'waiting'`, tenant, endpoint)
	return err
}

// RemoveEndpoint forgets an endpoint's secrets and sends it nothing more. What
// it was told stays readable until it is pruned.
func (s *Service) RemoveEndpoint(ctx context.Context, tenant, endpoint uuid.UUID) error {
	return s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		e, err := readEndpoint(ctx, tx, tenant, endpoint, "for update")
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update webhook_endpoints
			set removed_at = $3, sealed_secret = null, old_sealed_secret = null, old_until = null
			where tenant_id = $1 and endpoint_id = $2`, tenant, endpoint, s.instant()); err != nil {
			return err
		}
		if err := hold(ctx, tx, tenant, endpoint); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "webhook_endpoint.removed", id.Endpoint.Format(endpoint), endpointNote{e.URL, e.Types})
	})
}

// MaxOverlap is the longest that an old signing secret signs beside a new one.
const MaxOverlap = 7 * 24 * time.Hour

// RotateSecret gives an endpoint a new signing secret and returns it, once. For
// the overlap every message carries both signatures, so that a receiver may
// change over when it likes; with none the old one ends at once.
func (s *Service) RotateSecret(ctx context.Context, tenant, endpoint uuid.UUID, overlap time.Duration) (Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Issued{}, fault.InvalidFields(fault.Field{Pointer: "/overlap_seconds", Code: "out_of_range", Message: "The overlap may be up to 604,800 seconds: seven days."})
	}
	out := Issued{Secret: newSecret()}
	secret := keyring.NewSecret(out.Secret)
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if out.Endpoint, err = readEndpoint(ctx, tx, tenant, endpoint, "for update"); err != nil {
			return err
		}
		sealed, err := s.tenants.Seal(ctx, tx, tenant, endpoint, secret)
		if err != nil {
			return err
		}
		until := s.instant().Add(overlap)
		out.OldLast4, out.OldUntil, out.Last4 = out.Last4, &until, secret.Last4()
		if _, err := tx.Exec(ctx, `
			update webhook_endpoints
			set old_sealed_secret = case when $6 then sealed_secret end, old_last4 = $4, old_until = $5, sealed_secret = $3, last4 = $7
			where tenant_id = $1 and endpoint_id = $2`,
			tenant, endpoint, sealed, out.OldLast4, until, overlap > 0, out.Last4); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenant, "webhook_endpoint.secret_rotated", id.Endpoint.Format(endpoint),
			map[string]string{"last4": out.Last4, "old": out.OldLast4, "overlap": overlap.String()})
	})
	return out, err
}
