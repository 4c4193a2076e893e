package tenants

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/internal/id"
)

// Audit writes what the transaction's change was, on behalf of the context's
// actor. difference is what changed, already free of secrets. Entries form a
// chain: each holds the SHA-256 of its own content and the one before.
func Audit(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action, object string, difference any) error {
	diff, err := json.Marshal(difference)
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	if err := takeClaim(ctx, tx, tenant); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1::text, 7))", tenant); err != nil {
		return err
	}
	position, prev, err := chainEnd(ctx, tx, tenant)
	if err != nil {
		return err
	}
	a, entry := ActorOf(ctx), id.New()
	sum := sha256.New()
	fmt.Fprintf(sum, "%x\n%s\n%d\n%s\n%s\n%s\n%s\n%s\n", prev, entry, position, a.Kind, a.ID, action, object, diff)
	_, err = tx.Exec(ctx, `
		insert into audit_entries (tenant_id, audit_id, actor_kind, actor_id, credential, role, ip, request_id,
		                           action, object, difference, prev_hash, hash, position)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		tenant, entry, a.Kind, optional(a.ID), a.Credential, a.Role, ipOrNil(a.IP), optional(a.RequestID),
		action, object, diff, prev, sum.Sum(nil), position)
	return err
}

// AuditOperator is Audit of what the operator of the installation looked at, in the
// tenant whose it is. Who of theirs it was has an id here; from where, and by which
// credential, stays in the operator's own audit.
func AuditOperator(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action, object string, difference any) error {
	a := ActorOf(ctx)
	return Audit(WithActor(ctx, Actor{Kind: "operator", ID: a.ID, RequestID: a.RequestID}), tx, tenant, action, object, difference)
}

func chainEnd(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (position int64, prev []byte, err error) {
	err = tx.QueryRow(ctx, `
		select position, hash from audit_entries
		where tenant_id = $1 order by position desc limit 1`, tenant).Scan(&position, &prev)
	if errors.Is(err, pgx.ErrNoRows) {
		return 1, nil, nil
	}
	return position + 1, prev, err
}

// optional is nil for the zero UUID, for nullable columns.
func optional(u uuid.UUID) *uuid.UUID {
	if u == uuid.Nil {
		return nil
	}
	return &u
}

func ipOrNil(s string) *netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return nil
	}
	return &a
}
