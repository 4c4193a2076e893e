package tenants

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Entry is one thing that happened, as the audit has it.
type Entry struct {
	At         time.Time
	Action     string
	Object     string
	By         string          // whoever did it, "" Weir itself
	Difference json.RawMessage // what changed
}

// Timeline is what happened to objects, by their public ids, newest first, at
// most so much.
func (s *Service) Timeline(ctx context.Context, tenant uuid.UUID, objects []string, most int) ([]Entry, error) {
	var list []Entry
	err := s.db.WithTenant(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select a.at, a.action, a.object, coalesce(nullif(u.name, ''), u.email, k.name, ''), a.difference
			from audit_entries a
			left join users u on a.actor_kind = 'user' and u.user_id = a.actor_id
			left join api_keys k on a.actor_kind = 'api_key' and k.tenant_id = a.tenant_id and k.api_key_id = a.actor_id
			where a.tenant_id = $1 and a.object = any($2)
			order by a.position desc limit $3`, tenant, objects, most)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
			return e, row.Scan(&e.At, &e.Action, &e.Object, &e.By, &e.Difference)
		})
		return err
	})
	return list, err
}
