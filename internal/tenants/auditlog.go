package tenants

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// AuditEntry is one thing that somebody did.
type AuditEntry struct {
	ID             uuid.UUID
	Position       int64 // in the tenant's chain, from 1
	At             time.Time
	Actor          Actor
	Email          string // of an actor who is a member of the tenant
	Action, Object string
	Difference     json.RawMessage
	Hash, Before   []byte // Before is the hash of the entry before; nil of the first
}

// AuditEntries are the entries of a tenant's audit that were made in [from, to), in
// the order of its chain, after a position.
func (s *Service) AuditEntries(ctx context.Context, tenant uuid.UUID, from, to time.Time, after int64, limit int) (list []AuditEntry, err error) {
	err = s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select a.audit_id, a.position, a.at, a.actor_kind, a.actor_id, a.credential, a.role, a.ip, a.request_id, coalesce(u.email, ''),
			       a.action, a.object, a.difference, a.hash, a.prev_hash
			from audit_entries a
			left join (members m join users u on u.user_id = m.user_id)
			       on m.tenant_id = a.tenant_id and m.user_id = a.actor_id and a.actor_kind = 'user'
			where a.tenant_id = $1 and a.position > $2 and a.at >= $3 and a.at < $4
			order by a.position limit $5`, tenant, after, from, to, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanAudit)
		return err
	})
	return list, err
}

func scanAudit(row pgx.CollectableRow) (e AuditEntry, err error) {
	var actor, request *uuid.UUID
	var ip *netip.Addr
	err = row.Scan(&e.ID, &e.Position, &e.At, &e.Actor.Kind, &actor, &e.Actor.Credential, &e.Actor.Role, &ip, &request, &e.Email,
		&e.Action, &e.Object, &e.Difference, &e.Hash, &e.Before)
	if actor != nil {
		e.Actor.ID = *actor
	}
	if request != nil {
		e.Actor.RequestID = *request
	}
	if ip != nil {
		e.Actor.IP = ip.String()
	}
	return e, err
}
