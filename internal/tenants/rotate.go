package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/message"
)

// MaxOverlap is how long the secret of a rotated key may go on working.
const MaxOverlap = 30 * 24 * time.Hour

// RotateAPIKey makes the key that takes over from one: with a secret of its own,
// and its counter, name, limits and rights, so that no usage and no ledger
// begins anew. The old secret works until overlap has passed, or its own end.
// A key that does not work, or was rotated before, is a Conflict.
func (s *Service) RotateAPIKey(ctx context.Context, tenant, key uuid.UUID, overlap time.Duration) (old APIKey, made IssuedKey, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return old, made, fault.InvalidFields(fault.Field{Pointer: "/overlap_seconds", Code: "out_of_range", Message: "The old secret may work on for 0 to 2,592,000 seconds: 30 days."})
	}
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) (err error) {
		if err := lockCounter(ctx, tx, tenant, key); err != nil {
			return err
		}
		if old, err = ReadAPIKey(ctx, tx, tenant, key); err != nil {
			return err
		}
		if err := old.rotatable(s.now()); err != nil {
			return err
		}
		made, err = s.insertKey(ctx, tx, tenant, NewAPIKey{
			Counter: old.Counter, Kind: old.Kind, Customer: old.Customer, Name: old.Name, Test: old.Test, MaySettle: old.MaySettle,
			Scopes: old.Scopes, Models: old.Models, IPAllow: old.IPAllow, Limits: old.Limits, ExpiresAt: old.ExpiresAt,
		})
		if err != nil {
			return err
		}
		end := s.now().Add(overlap).UTC().Truncate(time.Microsecond)
		if old.ExpiresAt == nil || end.Before(*old.ExpiresAt) {
			old.ExpiresAt = &end
		}
		old.ReplacedBy = made.ID
		if _, err := tx.Exec(ctx, `
			update api_keys set expires_at = $3, replaced_by = $4
			where tenant_id = $1 and api_key_id = $2`, tenant, key, old.ExpiresAt, made.ID); err != nil {
			return err
		}
		if err := tellKey(ctx, tx, tenant, message.APIKeyRotated, old); err != nil {
			return err
		}
		return Audit(ctx, tx, tenant, "api_key.rotated", id.APIKey.Format(key), map[string]string{
			"name": old.Name, "last4": old.Last4, "new": id.APIKey.Format(made.ID), "new_last4": made.Last4, "old_works_until": old.ExpiresAt.Format(time.RFC3339),
		})
	})
	return old, made, conflict(err)
}

// lockCounter waits for whatever changes a key, or one that it shares its
// counter with. What a rotation adds shows to the statements after it only.
func lockCounter(ctx context.Context, tx pgx.Tx, tenant, key uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		select from api_keys
		where tenant_id = $1 and counter_id = (select counter_id from api_keys where tenant_id = $1 and api_key_id = $2)
		order by api_key_id for update`, tenant, key)
	return err
}

func (k APIKey) rotatable(now time.Time) error {
	switch {
	case k.ReplacedBy != uuid.Nil:
		return fault.New(fault.Conflict, "already_rotated", "This key was rotated already: "+id.APIKey.Format(k.ReplacedBy)+" took over from it. Its secret was shown then, once.")
	case k.Status(now) != "active":
		return fault.New(fault.Conflict, "key_not_active", "This key has ended, so there is nothing to take over. Make a new one.")
	}
	return nil
}
